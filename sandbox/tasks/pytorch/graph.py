"""A traced module as data: what the jail hands out, so that nothing outside it ever imports torch.

Ops are core ATen after decomposition, named as torch prints them ("aten.gelu.default"). Arguments are JSON:
numbers, booleans, strings, None and lists as themselves; a tensor is `{"node": name}` (with `"output": i` for
the i-th of several results); a dtype `{"dtype": "float32"}`; a non-finite float `{"float": "-inf"}`; anything
else (device, layout, memory format) `{"other": text}`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from sandbox.types import Data

#: torch's dtype -> numpy's. A bool is one byte, 0 or 1, on every side.
DTYPES = {"float32": "float32", "float64": "float64", "int32": "int32", "int64": "int64", "bool": "uint8"}


class TensorType(Data):
    shape: list[int]  # outermost first; [] is a scalar tensor
    dtype: str  # torch's name: "float32", "int64", "bool", ...

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


class Placeholder(Data):
    """A tensor that `launch` is given: its name is the parameter's name in the prototype."""

    name: str
    kind: Literal["input", "parameter", "buffer", "constant"]
    target: str  # dotted name in the module; for inputs the position among the flattened inputs
    type: TensorType


class Node(Data):
    name: str
    op: str
    args: list[Any]
    kwargs: dict[str, Any] = Field(default_factory=dict)
    outputs: list[TensorType]  # one, or several for ops such as aten.max.dim
    line: int | None = None  # in the user's file


class Output(Data):
    name: str  # the parameter's name in the prototype
    node: str  # a node's or a placeholder's name
    output: int = 0
    type: TensorType


class Graph(Data):
    placeholders: list[Placeholder]
    nodes: list[Node]  # in an order in which every node follows what it uses
    outputs: list[Output]


def references(value: Any) -> Iterator[tuple[str, int]]:
    """Every (node, output) that an argument mentions, in order, nested lists included."""
    if isinstance(value, dict):
        if "node" in value:
            yield value["node"], value.get("output", 0)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


#: Ops whose element is a sum over many: op -> how to count the terms.
_MATMUL = {"aten.mm.default", "aten.bmm.default", "aten.addmm.default", "aten.baddbmm.default"}


def reduction_length(graph: Graph) -> int:
    """The longest chain of additions behind any output element, as far as the ops show it."""
    shapes = {p.name: [p.type] for p in graph.placeholders} | {n.name: n.outputs for n in graph.nodes}
    depth: dict[str, int] = {p.name: 0 for p in graph.placeholders}
    for node in graph.nodes:
        used = [name for name, _ in references([*node.args, *node.kwargs.values()])]
        terms = 0
        if node.op in _MATMUL:
            terms = shapes[used[-1]][0].shape[-2]
        elif node.op == "aten.convolution.default":
            terms = math.prod(shapes[used[1]][0].shape[1:])
        elif used and node.outputs[0].numel < (largest := max(shapes[u][0].numel for u in used)):
            terms = largest // max(1, node.outputs[0].numel)
        elif node.op.split(".")[1] in ("_softmax", "_log_softmax", "native_layer_norm", "cumsum"):
            terms = node.outputs[0].shape[-1] if node.outputs[0].shape else 1
        elif node.op.split(".")[1] == "native_group_norm":
            terms = node.outputs[0].numel // max(1, node.outputs[0].shape[0])
        depth[node.name] = terms + max((depth[u] for u in used), default=0)
    return max([1, *(depth[o.node] for o in graph.outputs)])

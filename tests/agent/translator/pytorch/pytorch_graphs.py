"""Traced modules written by hand, so that the translator is tested without torch."""

from __future__ import annotations

import math
from typing import Any

from sandbox.tasks.base import Inputs, Parameter, TaskSpec
from sandbox.tasks.pytorch.graph import Graph, Node, Output, Placeholder, TensorType


class Tracer:
    """Builds a graph op by op: `x = t.input("x", [2, 3])`, `y = t.op("aten.relu.default", [2, 3], x)`."""

    def __init__(self) -> None:
        self._placeholders: list[Placeholder] = []
        self._nodes: list[Node] = []

    def input(self, name: str, shape: list[int], dtype: str = "float32") -> dict[str, Any]:
        type_ = TensorType(shape=shape, dtype=dtype)
        position = str(len(self._placeholders))
        self._placeholders.append(Placeholder(name=name, kind="input", target=position, type=type_))
        return {"node": name}

    def op(
        self, op: str, shape: list[int], *args: Any, dtype: str = "float32", **kwargs: Any
    ) -> dict[str, Any]:
        return self.several(op, [TensorType(shape=shape, dtype=dtype)], *args, **kwargs)

    def several(self, op: str, outputs: list[TensorType], *args: Any, **kwargs: Any) -> dict[str, Any]:
        name = f"{op.split('.')[1]}_{len(self._nodes)}"
        line = 10 + len(self._nodes)
        self._nodes.append(Node(name=name, op=op, args=list(args), kwargs=kwargs, outputs=outputs, line=line))
        return {"node": name}

    def spec(self, *results: dict[str, Any]) -> TaskSpec:
        types = {p.name: [p.type] for p in self._placeholders} | {n.name: n.outputs for n in self._nodes}
        outputs = []
        for i, result in enumerate(results):
            output = result.get("output", 0)
            type_ = types[result["node"]][output]
            outputs.append(Output(name=f"out{i or ''}", node=result["node"], output=output, type=type_))
        graph = Graph(placeholders=self._placeholders, nodes=self._nodes, outputs=outputs)
        c_types = {"float32": "float", "int64": "long long", "bool": "bool"}
        listed = [f"const {c_types[p.type.dtype]} *{p.name}" for p in self._placeholders]
        listed += [f"{c_types[o.type.dtype]} *{o.name}" for o in outputs]
        return TaskSpec(
            language="pytorch",
            name="Model",
            source="",
            prototype=f'extern "C" void launch({", ".join(listed)})',
            parameters=[
                Parameter(name=name, kind="array", dtype="float32", c_type="", extent=str(math.prod(t.shape)))
                for name, t in [(p.name, p.type) for p in self._placeholders]
                + [(o.name, o.type) for o in outputs]
            ],
            sizes={},
            inputs=Inputs(),
            graph=graph.model_dump(mode="json"),
        )


def bias_gelu_layer_norm(rows: int = 64, width: int = 96) -> TaskSpec:
    t = Tracer()
    x, bias = t.input("x", [rows, width]), t.input("bias", [width])
    weight, shift = t.input("weight", [width]), t.input("shift", [width])
    y = t.op("aten.add.Tensor", [rows, width], x, bias)
    y = t.op("aten.gelu.default", [rows, width], y)
    types = [TensorType(shape=s, dtype="float32") for s in ([rows, width], [rows, 1], [rows, 1])]
    return t.spec(t.several("aten.native_layer_norm.default", types, y, [width], weight, shift, 1e-5))


def attention(batch: int = 2, heads: int = 3, length: int = 40, width: int = 24) -> TaskSpec:
    """softmax(q k^T / sqrt(d)) v, as scaled_dot_product_attention decomposes."""
    t = Tracer()
    q, k, v = (t.input(n, [batch, heads, length, width]) for n in "qkv")
    flat = [batch * heads, length, width]
    keys = t.op("aten.permute.default", [batch, heads, width, length], k, [0, 1, 3, 2])
    keys = t.op("aten.view.default", [batch * heads, width, length], keys, [])
    scores = t.op(
        "aten.bmm.default", [batch * heads, length, length], t.op("aten.view.default", flat, q, []), keys
    )
    scores = t.op("aten.mul.Tensor", [batch * heads, length, length], scores, width**-0.5)
    weights = t.op("aten._softmax.default", [batch * heads, length, length], scores, -1, False)
    mixed = t.op("aten.bmm.default", flat, weights, t.op("aten.view.default", flat, v, []))
    mixed = t.op("aten.view.default", [batch, heads, length, width], mixed, [])
    return t.spec(t.op("aten.permute.default", [batch, length, heads, width], mixed, [0, 2, 1, 3]))


def convolution() -> TaskSpec:
    t = Tracer()
    x, w, b = t.input("x", [2, 4, 9, 9]), t.input("w", [6, 2, 3, 3]), t.input("b", [6])
    y = t.op("aten.convolution.default", [2, 6, 5, 5], x, w, b, [2, 2], [1, 1], [1, 1], False, [0, 0], 2)
    y = t.op("aten.relu.default", [2, 6, 5, 5], y)
    types = [TensorType(shape=[2, 6, 2, 2], dtype=d) for d in ("float32", "int64")]
    return t.spec(t.several("aten.max_pool2d_with_indices.default", types, y, [2, 2], [2, 2]))


def names_that_clash() -> TaskSpec:
    """Inputs called like functions the kernels call."""
    t = Tracer()
    gelu, larger, row = t.input("gelu", [8, 32]), t.input("larger", [32]), t.input("row", [8, 1])
    y = t.op("aten.gelu.default", [8, 32], gelu)
    y = t.op("aten.maximum.default", [8, 32], y, larger)
    y = t.op("aten.sub.Tensor", [8, 32], y, row)
    top = t.op("aten.amax.default", [8], y, [1])
    index = t.op("aten.argmax.default", [8], y, 1, dtype="int64")
    return t.spec(y, top, index)


def total(length: int = 1 << 14) -> TaskSpec:
    t = Tracer()
    x = t.input("x", [length])
    return t.spec(t.op("aten.sum.default", [], t.op("aten.exp.default", [length], x)))

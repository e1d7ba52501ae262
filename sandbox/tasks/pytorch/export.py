"""In the jail: trace the module with torch.export and write the graph down as data."""

from __future__ import annotations

import keyword
import math
import operator
import re
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from sandbox.errors import TaskProblem
from sandbox.tasks.pytorch.graph import DTYPES, Graph, Node, Output, Placeholder, TensorType, references
from sandbox.tasks.pytorch.messages import FILE, Scalar
from sandbox.tasks.pytorch.module import Built, blaming
from sandbox.types import Problem

_KINDS = {
    InputKind.USER_INPUT: "input",
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}
#: Words a parameter of a CUDA function cannot be called.
_RESERVED = set(
    re.findall(
        r"\w+",
        """
        auto bool break case char class const continue default delete do double else enum extern false
        float for
        goto if inline int long namespace new operator private public register return short signed sizeof
        static
        struct switch template this true typedef union unsigned using virtual void volatile while launch
        half dim3
        """,
    )
)


def export(built: Built) -> tuple[Graph, list[str], list[Scalar]]:
    """The decomposed graph, the names of launch's arguments in order, and the scalars among them."""
    inputs = torch.utils._pytree.tree_map(
        lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else v, built.inputs
    )
    with torch.no_grad(), blaming("torch.export cannot trace the module", kind="does_not_export"):
        program = torch.export.export(built.model, tuple(inputs), strict=False)
        program = program.run_decompositions(torch.export.default_decompositions())
    return _Reader(program).read()


class _Reader:
    def __init__(self, program: Any) -> None:
        self._program = program
        self._values: dict[str, dict[str, Any]] = {}  # fx name -> reference
        self._names: set[str] = set()

    def read(self) -> tuple[Graph, list[str], list[Scalar]]:
        signature = self._program.graph_signature
        placeholders, scalars = self._placeholders(signature)
        nodes = [made for node in self._program.graph.nodes if (made := self._node(node)) is not None]
        outputs = self._outputs(signature)
        nodes = _alive(nodes, outputs)
        used = {name for node in nodes for name, _ in references([*node.args, *node.kwargs.values()])}
        used |= {o.node for o in outputs}
        kept = [p for p in placeholders if p.kind == "input" or p.name in used]
        order = [i for i in self._input_order if i in {p.name for p in kept} | {s.name for s in scalars}]
        order += [p.name for p in kept if p.kind != "input"]
        return Graph(placeholders=kept, nodes=nodes, outputs=outputs), order, scalars

    def _placeholders(self, signature: Any) -> tuple[list[Placeholder], list[Scalar]]:
        placeholders, scalars = [], []
        self._input_order: list[str] = []
        fx = {node.name: node for node in self._program.graph.nodes if node.op == "placeholder"}
        position = -1
        for spec in sorted(signature.input_specs, key=lambda s: s.kind != InputKind.USER_INPUT):
            is_input = spec.kind == InputKind.USER_INPUT
            position += is_input
            if isinstance(spec.arg, ConstantArgument):
                scalar = _scalar(self._unique(spec.arg.name), spec.arg.value)
                if scalar is not None:
                    scalars.append(scalar)
                    self._input_order.append(scalar.name)
                continue
            if spec.kind not in _KINDS:
                raise _unsupported(f"the module needs an input of kind {spec.kind.name}")
            name = self._unique(spec.arg.name if is_input else spec.target)
            self._values[spec.arg.name] = {"node": name}
            kind: Any = _KINDS[spec.kind]
            placeholder = Placeholder(
                name=name,
                kind=kind,
                target=str(position) if is_input else spec.target,
                type=_tensor_type(fx[spec.arg.name].meta["val"]),
            )
            placeholders.append(placeholder)
            if is_input:
                self._input_order.append(name)
        return placeholders, scalars

    def _node(self, node: Any) -> Node | None:
        if node.op != "call_function":
            return None
        if node.target is operator.getitem:
            source, index = node.args
            self._values[node.name] = {**self._values[source.name], "output": index}
            return None
        line = _line(node)
        results = node.meta.get("val")
        results = results if isinstance(results, tuple | list) else [results]
        if not all(isinstance(r, torch.Tensor) for r in results if r is not None):
            raise _unsupported(
                f"{node.target} gives a value that is not a tensor (data-dependent control flow)", line
            )
        name = self._unique(node.name)
        self._values[node.name] = {"node": name}
        return Node(
            name=name,
            op=str(node.target),
            args=[self._argument(a, line) for a in node.args],
            kwargs={k: self._argument(v, line) for k, v in node.kwargs.items()},
            outputs=[
                _tensor_type(r, line) if r is not None else TensorType(shape=[0], dtype="float32")
                for r in results
            ],
            line=line,
        )

    def _argument(self, value: Any, line: int | None) -> Any:
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return value if math.isfinite(value) else {"float": str(value)}
            case torch.fx.Node():
                return self._values[value.name]
            case list() | tuple():
                return [self._argument(item, line) for item in value]
            case torch.dtype():
                return {"dtype": str(value).removeprefix("torch.")}
            case torch.SymInt() | torch.SymFloat() | torch.SymBool():
                raise _unsupported("a size depends on the values of a tensor", line)
        return {"other": str(value)}

    def _outputs(self, signature: Any) -> list[Output]:
        outputs: list[Output] = []
        (final,) = (node for node in self._program.graph.nodes if node.op == "output")
        results = final.args[0]
        fx = {node.name: node for node in self._program.graph.nodes}
        for spec, result in zip(signature.output_specs, results, strict=True):
            if spec.kind != OutputKind.USER_OUTPUT:
                raise _unsupported(f"forward changes {spec.target or 'an input'} in place")
            if not isinstance(result, torch.fx.Node):
                continue
            reference = self._values[result.name]
            outputs.append(
                Output(
                    name=self._unique("out" if not outputs else f"out{len(outputs)}"),
                    node=reference["node"],
                    output=reference.get("output", 0),
                    type=_tensor_type(fx[result.name].meta["val"]),
                )
            )
        if not outputs:
            raise TaskProblem(Problem(kind="no_output", message="forward returns no tensor", file=FILE))
        return outputs

    def _unique(self, wished: str) -> str:
        name = re.sub(r"\W", "_", wished).strip("_") or "argument"
        if name in _RESERVED or keyword.iskeyword(name) or name[0].isdigit():
            name += "_"
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name


def _alive(nodes: list[Node], outputs: list[Output]) -> list[Node]:
    """Without the nodes that no output needs (masks of dropout, checks)."""
    wanted = {o.node for o in outputs}
    kept = []
    for node in reversed(nodes):
        if node.name in wanted:
            kept.append(node)
            wanted |= {name for name, _ in references([*node.args, *node.kwargs.values()])}
    return kept[::-1]


def _tensor_type(value: Any, line: int | None = None) -> TensorType:
    if not all(isinstance(n, int) for n in value.shape):
        raise _unsupported("a size depends on the values of a tensor", line)
    return TensorType(shape=list(value.shape), dtype=str(value.dtype).removeprefix("torch."))


def _scalar(name: str, value: Any) -> Scalar | None:
    match value:
        case bool():
            return Scalar(name=name, c_type="bool", value=int(value))
        case int():
            return Scalar(name=name, c_type="int", value=value)
        case float():
            return Scalar(name=name, c_type="float", value=value)
    return None


def _line(node: Any) -> int | None:
    lines = re.findall(rf'File "{re.escape(FILE)}", line (\d+)', node.meta.get("stack_trace") or "")
    return int(lines[-1]) if lines else None


def _unsupported(message: str, line: int | None = None) -> TaskProblem:
    return TaskProblem(Problem(kind="unsupported_construct", message=message, file=FILE, line=line))


def require_dtypes(graph: Graph) -> None:
    """Raises TaskProblem for a tensor of launch whose element type is not supported."""
    tensors = {p.name: p.type for p in graph.placeholders} | {o.name: o.type for o in graph.outputs}
    for name, type_ in tensors.items():
        if type_.dtype not in DTYPES:
            raise TaskProblem(
                Problem(
                    kind="unsupported_dtype",
                    message=f"{name} is {type_.dtype}; supported are {', '.join(DTYPES)}",
                    hint="use float32 tensors",
                    file=FILE,
                )
            )

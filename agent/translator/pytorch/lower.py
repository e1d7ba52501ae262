"""From the graph to the translator's tensor language, one op after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agent.translator.pytorch.index import Ix, constant, flatten, unflatten
from agent.translator.pytorch.ir import (
    C_TYPES,
    Coordinates,
    Pointwise,
    Program,
    Reduce,
    ReduceOp,
    Shape,
    Source,
    Value,
    View,
)
from sandbox.errors import TaskProblem
from sandbox.tasks.pytorch.graph import Graph, Node, TensorType
from sandbox.types import Problem

Handler = Callable[["Lowering", Node, list[Any], dict[str, Any]], "Value | Sequence[Value]"]
HANDLERS: dict[str, Handler] = {}
_MOST_ELEMENTS = 2**31 - 1  # kernels index with int
FEW_ROWS, LONG_ROW = 64, 2048  # fewer and longer ones leave most of a GPU idle


def op(*names: str) -> Callable[[Handler], Handler]:
    """Registers how to lower aten ops of these names, whatever their overload."""

    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return register


def lower(graph: Graph, *, split: bool = False) -> Program:
    """`split`: reduce a few long rows in two steps. Raises TaskProblem("unsupported_construct") naming
    the op and the line of the user's file.
    """
    from agent.translator.pytorch import ops_pointwise, ops_reduce, ops_views, ops_window  # noqa: F401

    lowering = Lowering(split)
    for p in graph.placeholders:
        lowering.results[p.name] = [lowering.source(p.name, p.type)]
    for node in graph.nodes:
        lowering.node(node)
    outputs = [(o.name, lowering.results[o.node][o.output]) for o in graph.outputs]
    return Program(lowering.values, outputs)


class Lowering:
    def __init__(self, split: bool) -> None:
        self._split = split
        self.values: list[Value] = []
        self.results: dict[str, list[Value]] = {}
        self._origin = ""
        self._line: int | None = None

    def node(self, node: Node) -> None:
        self._origin, self._line = node.name, node.line
        name = node.op.split(".")[1] if node.op.startswith("aten.") else node.op
        handler = HANDLERS.get(name)
        if handler is None:
            raise self.unsupported(f"{node.op} is not supported by the built-in translator")
        for type_ in node.outputs[:1]:
            if type_.dtype not in C_TYPES:
                raise self.unsupported(f"{node.op} works in {type_.dtype}, which is not supported")
            if type_.numel > _MOST_ELEMENTS:
                raise self.unsupported(f"{node.op} has {type_.numel} elements; kernels index with 32 bits")
        made = handler(self, node, [self._argument(a) for a in node.args], self._keywords(node))
        values = [made] if isinstance(made, Value) else list(made)
        for value, type_ in zip(values, node.outputs, strict=False):
            if list(value.shape) != type_.shape:
                raise AssertionError(f"{node.op}: lowered to shape {value.shape}, traced {type_.shape}")
        self.results[node.name] = [
            self.cast(v, t.dtype) if t.numel else v for v, t in zip(values, node.outputs, strict=False)
        ]

    def _keywords(self, node: Node) -> dict[str, Any]:
        return {name: self._argument(value) for name, value in node.kwargs.items()}

    def _argument(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._argument(item) for item in value]
        if isinstance(value, dict):
            if "node" in value:
                results, index = self.results[value["node"]], value.get("output", 0)
                if index >= len(results):
                    raise self.unsupported(f"result {index} of {value['node']} is not supported")
                return results[index]
            if "float" in value:
                return float(value["float"])
            return value.get("dtype", value.get("other"))
        return value

    def unsupported(self, message: str) -> TaskProblem:
        return TaskProblem(
            Problem(
                kind="unsupported_construct",
                message=message,
                hint="write it with other operations",
                line=self._line,
            )
        )

    # Making values. Every one is recorded in order.

    def _keep(self, value: Value) -> Value:
        self.values.append(value)
        return value

    @property
    def common(self) -> dict[str, Any]:
        return {"origin": self._origin, "order": len(self.values)}

    def source(self, name: str, type_: TensorType) -> Value:
        return self._keep(Source(tuple(type_.shape), type_.dtype, name, len(self.values), name))

    def add(self, value: Value) -> Value:
        """Record a value that a handler made with `**lowering.common`."""
        return self._keep(value)

    def literal(self, number: float | int | bool, dtype: str, shape: Shape = ()) -> Value:
        return self._keep(
            Pointwise(shape, dtype, **self.common, template=c_literal(number, dtype), inputs=())
        )

    def pointwise(
        self,
        template: str,
        *operands: Value,
        dtype: str | None = None,
        helpers: Sequence[str] = (),
        label: str = "",
    ) -> Value:
        """Broadcasts. The element type is the first operand's when not said."""
        shape = tuple(np.broadcast_shapes(*(o.shape for o in operands)))
        spread = tuple(self.broadcast(o, shape) for o in operands)
        return self._keep(
            Pointwise(
                shape,
                dtype or operands[0].dtype,
                **self.common,
                template=template,
                inputs=spread,
                helpers=tuple(helpers),
                label=label,
            )
        )

    def cast(self, value: Value, dtype: str) -> Value:
        if value.dtype == dtype:
            return value
        template = "({0} != 0)" if dtype == "bool" else f"({C_TYPES[dtype]})({{0}})"
        return self.pointwise(template, value, dtype=dtype)

    def view(
        self, base: Value, shape: Sequence[int], map_: Callable[[Coordinates], list[Ix]], **more: Any
    ) -> Value:
        return self._keep(View(tuple(shape), base.dtype, **self.common, base=base, map=map_, **more))

    def reshape(self, base: Value, shape: Sequence[int]) -> Value:
        """Same elements in the same row-major order."""
        wished, had = tuple(shape), base.shape
        if wished == had:
            return base
        if math.prod(wished) != math.prod(had):
            raise AssertionError(f"reshape {had} to {wished}")
        return self.view(base, wished, reshaping(wished, had), keeps_order=True)

    def permute(self, base: Value, axes: Sequence[int]) -> Value:
        axes = [axis % len(axes) for axis in axes]
        if list(axes) == sorted(axes):
            return base
        back = [axes.index(i) for i in range(len(axes))]
        return self.view(base, [base.shape[a] for a in axes], lambda at: [at[i] for i in back])

    def broadcast(self, base: Value, shape: Shape) -> Value:
        if base.shape == shape:
            return base
        if base.numel == 1 and math.prod(shape) == 1:
            return self.reshape(base, shape)
        lead = len(shape) - len(base.shape)

        def map_(at: Coordinates) -> list[Ix]:
            return [constant(0) if n == 1 else at[lead + i] for i, n in enumerate(base.shape)]

        return self.view(base, shape, map_)

    def reduce(
        self,
        op_: ReduceOp,
        base: Value,
        axes: Sequence[int],
        *,
        keepdim: bool = False,
        rereads: bool = False,
        product: tuple[Value, Value] | None = None,
        label: str = "",
    ) -> Value:
        """No axes: all of them, as torch means it."""
        rank, had = len(base.shape), base.shape
        reduced = tuple(sorted({a % rank for a in axes})) if axes else tuple(range(rank))
        kept = tuple(n for i, n in enumerate(had) if i not in reduced)
        value = self._reduced(op_, base, reduced, kept, rereads, product, label)
        if not keepdim:
            return value
        return self.reshape(value, [1 if i in reduced else n for i, n in enumerate(had)])

    def _reduced(
        self,
        op_: ReduceOp,
        base: Value,
        axes: Shape,
        kept: Shape,
        rereads: bool,
        product: tuple[Value, Value] | None,
        label: str,
    ) -> Value:
        """Neighbouring axes become one. With `split`, a few long rows are first reduced in parts."""
        first = axes[0]
        if not rereads and axes == tuple(range(first, first + len(axes))):
            length = math.prod(base.shape[a] for a in axes)
            base = self.reshape(base, [*base.shape[:first], length, *base.shape[first + len(axes) :]])
            axes = (first,)
            parts = _parts(math.prod(kept), length) if self._split else 1
            if parts > 1 and op_ not in ("argmax", "argmin"):
                shape = [*base.shape[:first], parts, length // parts, *base.shape[first + 1 :]]
                inner = tuple(n for a, n in enumerate(shape) if a != first + 1)
                base = self._keep_reduce(
                    op_, self.reshape(base, shape), (first + 1,), inner, False, None, "part"
                )
        return self._keep_reduce(op_, base, axes, kept, rereads, product, label)

    def _keep_reduce(
        self,
        op_: ReduceOp,
        base: Value,
        axes: Shape,
        kept: Shape,
        rereads: bool,
        product: tuple[Value, Value] | None,
        label: str,
    ) -> Value:
        return self._keep(
            Reduce(
                kept,
                "int64" if op_ in ("argmax", "argmin") else base.dtype,
                **self.common,
                op=op_,
                base=base,
                axes=axes,
                rereads=rereads,
                product=product,
                label=label,
            )
        )


def _parts(rows: int, length: int) -> int:
    """Into how many parts a row is split: a divisor of its length, so that every part is as long."""
    if rows >= FEW_ROWS or length < LONG_ROW:
        return 1
    wished = min(1024 // max(1, rows), int(length**0.5))
    return next((p for p in range(wished, 1, -1) if length % p == 0), 1)


def reshaping(shape: Shape, had: Shape) -> Callable[[Coordinates], list[Ix]]:
    """The map of a reshape from `had` to `shape`, taken apart into the blocks of axes that mix.

    Only axes of one block go through a flat position, so that a coordinate which is merely passed on
    stays plain.
    """
    blocks: list[tuple[tuple[int, int], tuple[int, int]]] = []  # (from, to) axes in `shape`, in `had`
    i = j = 0
    while i < len(shape) or j < len(had):
        start_i, start_j = i, j
        new = shape[i] if i < len(shape) else 1
        old = had[j] if j < len(had) else 1
        i, j = min(i + 1, len(shape)), min(j + 1, len(had))
        while new != old:
            if new < old:
                new, i = new * shape[i], i + 1
            else:
                old, j = old * had[j], j + 1
        blocks.append(((start_i, i), (start_j, j)))

    def map_(at: Coordinates) -> list[Ix]:
        placed: list[Ix] = []
        for (a, b), (c, d) in blocks:
            placed += unflatten_block(at[a:b], shape[a:b], had[c:d])
        return placed

    return map_


def unflatten_block(at: Coordinates, shape: Shape, had: Shape) -> list[Ix]:
    big = [k for k, n in enumerate(had) if n != 1]
    if len(big) == 1:  # merged, or merely passed on
        flat = flatten(at, shape)
        return [flat if k == big[0] else constant(0) for k in range(len(had))]
    return unflatten(flatten(at, shape), had)


def c_literal(number: float | int | bool, dtype: str) -> str:
    """A C constant of exactly the value that torch would use."""
    if dtype == "bool":
        return "true" if number else "false"
    if dtype in ("int32", "int64"):
        value = int(number)
        if dtype == "int64" and abs(value) > _MOST_ELEMENTS:
            return f"{value}LL"
        return f"({value})" if value < 0 else str(value)
    value_ = float(np.float32(number)) if dtype == "float32" else float(number)
    suffix = "f" if dtype == "float32" else ""
    if math.isinf(value_):
        infinity = "INFINITY" if dtype == "float32" else "(double)INFINITY"
        return infinity if value_ > 0 else f"(-{infinity})"
    if math.isnan(value_):
        return "NAN" if dtype == "float32" else "(double)NAN"
    text = str(np.float32(number)) if dtype == "float32" else repr(value_)
    if "." not in text and "e" not in text:
        text += ".0"
    return f"({text}{suffix})" if value_ < 0 else text + suffix

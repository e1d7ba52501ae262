"""Ops that only move elements: each is a map from the result's coordinates to the operand's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent.translator.pytorch.index import Ix, constant
from agent.translator.pytorch.ir import Coordinates, Gather, Inside, Iota, Value
from agent.translator.pytorch.lower import Lowering, c_literal, op
from sandbox.tasks.pytorch.graph import Node


@op("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "unflatten", "view_copy")
def _reshape(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return lowering.reshape(args[0], node.outputs[0].shape)


@op("permute")
def _permute(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return lowering.permute(args[0], args[1])


@op("t", "transpose", "numpy_T", "mT")
def _transpose(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    rank = len(args[0].shape)
    axes = list(range(rank))
    if rank >= 2:
        a, b = (args[1] % rank, args[2] % rank) if len(args) > 2 else (rank - 2, rank - 1)
        axes[a], axes[b] = axes[b], axes[a]
    return lowering.permute(args[0], axes)


@op("expand")
def _expand(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return lowering.broadcast(args[0], tuple(node.outputs[0].shape))


@op("slice")
def _slice(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    base = args[0]
    given: list[Any] = [*args[1:], *[0, None, None, 1][len(args) - 1 :]]
    axis, step = given[0] % len(base.shape), given[3]
    start = _from_start(given[1] or 0, base.shape[axis])
    return _along(lowering, base, node, axis, lambda i: i * step + start)


@op("select")
def _select(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    base, axis, index = args
    axis %= len(base.shape)
    index = _from_start(index, base.shape[axis])
    return lowering.view(base, node.outputs[0].shape, lambda at: [*at[:axis], constant(index), *at[axis:]])


@op("flip")
def _flip(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    base = args[0]
    axes = {a % len(base.shape) for a in args[1]}
    return lowering.view(
        base,
        base.shape,
        lambda at: [
            i * -1 + (base.shape[a] - 1) if a in axes and base.shape[a] > 1 else i for a, i in enumerate(at)
        ],
    )


@op("repeat")
def _repeat(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    base, shape = args[0], node.outputs[0].shape
    lead = len(shape) - len(base.shape)
    return lowering.view(base, shape, lambda at: [at[lead + i] % n for i, n in enumerate(base.shape)])


@op("roll")
def _roll(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    base, shifts = args[0], args[1]
    axes = [a % len(base.shape) for a in args[2]] if len(args) > 2 and args[2] else []
    if not axes:
        raise lowering.unsupported("aten.roll without dimensions is not supported")
    moved = dict(zip(axes, shifts, strict=True))
    return lowering.view(
        base,
        base.shape,
        lambda at: [
            (i + (-moved[a]) % base.shape[a]) % base.shape[a] if a in moved else i for a, i in enumerate(at)
        ],
    )


@op("split_with_sizes", "split_with_sizes_copy", "split", "chunk", "unbind")
def _split(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Sequence[Value]:
    base = args[0]
    unbind = node.op.startswith("aten.unbind")
    axis = (args[1] if unbind and len(args) > 1 else args[2] if len(args) > 2 else 0) % len(base.shape)
    pieces, start = [], 0
    for type_ in node.outputs:
        extent = 1 if unbind else type_.shape[axis]
        piece = _piece(lowering, base, axis, start, extent)
        pieces.append(lowering.reshape(piece, type_.shape) if unbind else piece)
        start += extent
    return pieces


def _piece(lowering: Lowering, base: Value, axis: int, start: int, extent: int) -> Value:
    shape = [extent if a == axis else n for a, n in enumerate(base.shape)]
    return lowering.view(base, shape, lambda at: [i + start if a == axis else i for a, i in enumerate(at)])


def _along(lowering: Lowering, base: Value, node: Node, axis: int, place: Any) -> Value:
    return lowering.view(
        base, node.outputs[0].shape, lambda at: [place(i) if a == axis else i for a, i in enumerate(at)]
    )


def _from_start(index: int, extent: int) -> int:
    return max(0, index + extent) if index < 0 else min(index, extent)


@op("cat")
def _cat(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return _joined(lowering, node, args[0], args[1] if len(args) > 1 else 0)


def _joined(lowering: Lowering, node: Node, given: Sequence[Value], axis: int) -> Value:
    """Every part padded to the whole by a guard, and the parts told apart by position."""
    shape, dtype = tuple(node.outputs[0].shape), node.outputs[0].dtype
    parts = [lowering.cast(p, dtype) for p in given if p.numel]
    axis %= len(shape)
    ends, total = [], 0
    padded = []
    for part in parts:
        padded.append(padded_view(lowering, part, shape, {axis: -total}, "0", [axis]))
        total += part.shape[axis]
        ends.append(total)
    template = f"{{{len(parts) - 1}}}"
    for i in range(len(parts) - 2, -1, -1):
        template = f"(({{{len(parts)}}}) < {ends[i]} ? {{{i}}} : {template})"
    position = lowering.add(Iota(shape, "int32", **lowering.common, of=lambda at: at[axis]))
    return lowering.pointwise(template, *padded, position, dtype=dtype)


@op("stack")
def _stack(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    shape = node.outputs[0].shape
    axis = (args[1] if len(args) > 1 else 0) % len(shape)
    thin = [n if a != axis else 1 for a, n in enumerate(shape)]
    return _joined(lowering, node, [lowering.reshape(p, thin) for p in args[0]], axis)


@op("constant_pad_nd")
def _pad(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    base, pads = args[0], args[1]
    value = args[2] if len(args) > 2 else 0
    rank, shape = len(base.shape), tuple(node.outputs[0].shape)
    shifts = {rank - 1 - i: -pads[2 * i] for i in range(len(pads) // 2)}
    return padded_view(lowering, base, shape, shifts, c_literal(value, base.dtype), list(shifts))


def padded_view(
    lowering: Lowering,
    base: Value,
    shape: Sequence[int],
    shifts: dict[int, int],
    fill: str,
    guarded: Sequence[int],
) -> Value:
    """`base` seen through a larger window: element `at + shift`, `fill` where that is outside."""

    def place(at: Coordinates) -> list[Ix]:
        return [i + shifts.get(a, 0) for a, i in enumerate(at)]

    def guard(at: Coordinates) -> list[Inside]:
        return [Inside(place(at)[a], base.shape[a]) for a in guarded]

    return lowering.view(base, shape, place, guard=guard, fill=fill)


@op("embedding")
def _embedding(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    table, indices = args[:2]
    rank = len(indices.shape)
    return lowering.add(
        Gather(
            tuple(node.outputs[0].shape),
            table.dtype,
            **lowering.common,
            base=table,
            indices=(indices,),
            index_at=lambda at: [list(at[:rank])],
            map=lambda at, loaded: [loaded[0], at[rank]],
            extents=(table.shape[0],),
        )
    )


@op("index_select")
def _index_select(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    base, axis, indices = args
    axis %= len(base.shape)
    return lowering.add(
        Gather(
            tuple(node.outputs[0].shape),
            base.dtype,
            **lowering.common,
            base=base,
            indices=(indices,),
            index_at=lambda at: [[at[axis]]],
            map=lambda at, loaded: [*at[:axis], loaded[0], *at[axis + 1 :]],
            extents=(base.shape[axis],),
        )
    )


@op("gather")
def _gather(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    base, axis, indices = args[:3]
    axis %= len(base.shape)
    return lowering.add(
        Gather(
            tuple(node.outputs[0].shape),
            base.dtype,
            **lowering.common,
            base=base,
            indices=(indices,),
            index_at=lambda at: [list(at)],
            map=lambda at, loaded: [*at[:axis], loaded[0], *at[axis + 1 :]],
            extents=(base.shape[axis],),
        )
    )


@op("index")
def _index(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """x[i], x[:, i, j]: integer tensors for adjacent axes; their broadcast shape takes the axes' place."""
    base, given = args
    axes = [a for a, i in enumerate(given) if i is not None]
    indices = [given[a] for a in axes]
    if any(i.dtype == "bool" for i in indices):
        raise lowering.unsupported("indexing with a boolean mask gives a size that depends on values")
    if axes != list(range(axes[0], axes[-1] + 1)):
        raise lowering.unsupported("indexing with tensors on axes that are not neighbours is not supported")
    shape = tuple(node.outputs[0].shape)
    rank = len(shape) - (len(base.shape) - len(axes))
    first = axes[0]
    spread = tuple(lowering.broadcast(i, shape[first : first + rank]) for i in indices)
    return lowering.add(
        Gather(
            shape,
            base.dtype,
            **lowering.common,
            base=base,
            indices=spread,
            index_at=lambda at: [list(at[first : first + rank])] * len(spread),
            map=lambda at, loaded: [*at[:first], *loaded, *at[first + rank :]],
            extents=tuple(base.shape[a] for a in axes),
            wraps=True,
        )
    )

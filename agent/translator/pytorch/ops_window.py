"""Convolution and pooling: reductions over a window, read through guarded views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from agent.translator.pytorch.index import Ix
from agent.translator.pytorch.ir import Coordinates, Inside, Iota, Value
from agent.translator.pytorch.lower import Lowering, c_literal, op
from sandbox.tasks.pytorch.graph import Node


def _spread(value: Any, rank: int, default: int) -> list[int]:
    if value is None or value == []:
        return [default] * rank
    listed = [value] if isinstance(value, int) else list(value)
    return listed * rank if len(listed) == 1 else listed


def _windows(
    lowering: Lowering,
    x: Value,
    positions: Sequence[int],
    window: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    fill: str,
) -> Value:
    """x[lead..., spatial...] as [lead..., positions..., window...]."""
    rank = len(window)
    lead = len(x.shape) - rank
    shape = [*x.shape[:lead], *positions, *window]

    def place(at: Coordinates) -> list[Ix]:
        inner = [
            at[lead + i] * stride[i] + at[lead + rank + i] * dilation[i] - padding[i] for i in range(rank)
        ]
        return [*at[:lead], *inner]

    def guard(at: Coordinates) -> list[Inside]:
        return [Inside(place(at)[lead + i], x.shape[lead + i]) for i in range(rank) if _may_leave(i)]

    def _may_leave(i: int) -> bool:
        last = (positions[i] - 1) * stride[i] + (window[i] - 1) * dilation[i] - padding[i]
        return padding[i] > 0 or last >= x.shape[lead + i]

    guarded = guard if any(_may_leave(i) for i in range(rank)) else None
    return lowering.view(x, shape, place, guard=guarded, fill=fill)


@op("convolution")
def _convolution(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, weight, bias, stride, padding, dilation, transposed, _, groups = args
    rank = len(weight.shape) - 2
    stride, padding, dilation = (_spread(v, rank, d) for v, d in ((stride, 1), (padding, 0), (dilation, 1)))
    positions = node.outputs[0].shape[2:]
    window = list(weight.shape[2:])
    batch, channels = x.shape[0], node.outputs[0].shape[1]
    if transposed:
        x, weight, stride, padding = _as_ordinary(lowering, x, weight, stride, padding, dilation, groups)
    per_group, inputs = channels // groups, x.shape[1] // groups
    split = lowering.reshape(x, [batch, groups, inputs, *x.shape[2:]])
    seen = _windows(lowering, split, positions, window, stride, padding, dilation, c_literal(0, x.dtype))
    # [batch, groups, inputs, positions..., window...] -> [batch, groups, per_group, positions...,
    # inputs, window...]
    axes = [0, 1, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank)]
    seen = lowering.permute(seen, axes)
    whole = (batch, groups, per_group, *positions, inputs, *window)
    seen = lowering.broadcast(lowering.reshape(seen, [batch, groups, 1, *positions, inputs, *window]), whole)
    kernel = lowering.reshape(weight, [1, groups, per_group, *([1] * rank), inputs, *window])
    terms = lowering.pointwise("{0} * {1}", seen, lowering.broadcast(kernel, whole), label="term")
    total = lowering.reduce("sum", terms, list(range(3 + rank, 4 + 2 * rank)), rereads=True)
    result = lowering.reshape(total, node.outputs[0].shape)
    if bias is None:
        return result
    return lowering.pointwise("{0} + {1}", result, lowering.reshape(bias, [1, channels, *([1] * rank)]))


def _as_ordinary(
    lowering: Lowering,
    x: Value,
    weight: Value,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> tuple[Value, Value, list[int], list[int]]:
    """A transposed convolution as an ordinary one: input spread by the stride, window turned around."""
    rank = len(stride)
    window = list(weight.shape[2:])
    if any(s != 1 for s in stride):
        x = _spread_out(lowering, x, stride)
    inputs, per_group = weight.shape[0] // groups, weight.shape[1]
    turned = lowering.view(
        weight,
        weight.shape,
        lambda at: [*at[:2], *(at[2 + i] * -1 + (window[i] - 1) for i in range(rank))],
    )
    split = lowering.reshape(turned, [groups, inputs, per_group, *window])
    swapped = lowering.permute(split, [0, 2, 1, *range(3, 3 + rank)])
    kernel = lowering.reshape(swapped, [groups * per_group, inputs, *window])
    return x, kernel, [1] * rank, [dilation[i] * (window[i] - 1) - padding[i] for i in range(rank)]


def _spread_out(lowering: Lowering, x: Value, stride: list[int]) -> Value:
    """Zeros between the elements of the spatial axes."""
    shape = [*x.shape[:2], *((n - 1) * s + 1 for n, s in zip(x.shape[2:], stride, strict=True))]
    near = lowering.view(x, shape, lambda at: [*at[:2], *(at[2 + i] // s for i, s in enumerate(stride))])
    on_grid = None
    for i, s in enumerate(stride):
        if s == 1:
            continue
        off = lowering.add(
            Iota(tuple(shape), "int32", **lowering.common, of=lambda at, i=i, s=s: at[2 + i] % s)  # type: ignore[misc]
        )
        here = lowering.pointwise("{0} == 0", off, dtype="bool")
        on_grid = here if on_grid is None else lowering.pointwise("{0} && {1}", on_grid, here)
    assert on_grid is not None
    zero = lowering.literal(0, x.dtype)
    return lowering.pointwise("({0} ? {1} : {2})", on_grid, near, zero, dtype=x.dtype)


@op("max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool1d", "max_pool2d")
def _max_pool(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Sequence[Value]:
    x, kernel, *rest = args
    rank = len(_rank_of(node, kernel))
    window = _spread(kernel, rank, 1)
    stride = _spread(rest[0] if rest else None, rank, 0)
    stride = window if stride == [0] * rank else stride
    padding = _spread(rest[1] if len(rest) > 1 else None, rank, 0)
    dilation = _spread(rest[2] if len(rest) > 2 else None, rank, 1)
    positions = node.outputs[0].shape[-rank:]
    lowest = c_literal(-math.inf, x.dtype)
    seen = _windows(lowering, x, positions, window, stride, padding, dilation, lowest)
    axes = list(range(len(seen.shape) - rank, len(seen.shape)))
    return [lowering.reduce("max", seen, axes, rereads=True)]


def _rank_of(node: Node, kernel: Any) -> range:
    digit = next((c for c in node.op if c in "123"), None)
    return range(int(digit) if digit else len(kernel))


@op("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, kernel, *rest = args
    rank = len(_rank_of(node, kernel))
    window = _spread(kernel, rank, 1)
    stride = _spread(rest[0] if rest else None, rank, 0)
    stride = window if stride == [0] * rank else stride
    padding = _spread(rest[1] if len(rest) > 1 else None, rank, 0)
    ceil_mode, count_pad = (rest[2] if len(rest) > 2 else False), (rest[3] if len(rest) > 3 else True)
    divisor = rest[4] if len(rest) > 4 else None
    if ceil_mode or (not count_pad and any(padding)):
        raise lowering.unsupported(f"{node.op} with ceil_mode or count_include_pad=False is not supported")
    positions = node.outputs[0].shape[-rank:]
    seen = _windows(lowering, x, positions, window, stride, padding, [1] * rank, c_literal(0, x.dtype))
    axes = list(range(len(seen.shape) - rank, len(seen.shape)))
    total = lowering.reduce("sum", seen, axes, rereads=True)
    return lowering.pointwise("{0} / {1}", total, lowering.literal(divisor or math.prod(window), x.dtype))


@op("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")
def _adaptive_avg_pool(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x = args[0]
    rank = len(args[1])
    positions = node.outputs[0].shape[-rank:]
    sizes = x.shape[-rank:]
    if any(n % p for n, p in zip(sizes, positions, strict=True)):
        raise lowering.unsupported(f"{node.op} with windows of unequal size is not supported")
    window = [n // p for n, p in zip(sizes, positions, strict=True)]
    seen = _windows(lowering, x, positions, window, window, [0] * rank, [1] * rank, "0")
    axes = list(range(len(seen.shape) - rank, len(seen.shape)))
    total = lowering.reduce("sum", seen, axes, rereads=math.prod(positions) > 1)
    return lowering.pointwise("{0} / {1}", total, lowering.literal(math.prod(window), x.dtype))

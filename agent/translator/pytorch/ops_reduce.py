"""Reductions, softmax and the norms, in terms of elementwise values and `Reduce`; matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from agent.translator.pytorch.ir import ReduceOp, Value
from agent.translator.pytorch.lower import Lowering, op
from agent.translator.pytorch.ops_pointwise import function, operand, result_type
from sandbox.tasks.pytorch.graph import Node


def _axes(value: Any) -> list[int]:
    return [] if value is None else [value] if isinstance(value, int) else list(value)


def _keepdim(args: list[Any], kwargs: dict[str, Any], position: int) -> bool:
    return bool(kwargs.get("keepdim", args[position] if len(args) > position else False))


@op("sum", "prod", "amax", "amin", "any", "all")
def _plain(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    name = node.op.split(".")[1]
    ops: dict[str, ReduceOp] = {
        "amax": "max",
        "amin": "min",
        "sum": "sum",
        "prod": "prod",
        "any": "any",
        "all": "all",
    }
    axes = _axes(args[1] if len(args) > 1 else kwargs.get("dim"))
    x = lowering.cast(args[0], "bool" if name in ("any", "all") else result_type(node))
    if not x.shape:
        return x
    return lowering.reduce(ops[name], x, axes, keepdim=_keepdim(args, kwargs, 2))


@op("mean")
def _mean(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    axes = _axes(args[1] if len(args) > 1 else kwargs.get("dim"))
    x = lowering.cast(args[0], result_type(node))
    return mean(lowering, x, axes, keepdim=_keepdim(args, kwargs, 2))


def mean(lowering: Lowering, x: Value, axes: Sequence[int], *, keepdim: bool) -> Value:
    count = math.prod(x.shape[a] for a in (axes or range(len(x.shape))))
    total = lowering.reduce("sum", x, axes, keepdim=keepdim)
    if _power_of_two(count):  # the reciprocal is exact
        return lowering.pointwise("{0} * {1}", total, lowering.literal(1 / count, x.dtype))
    return lowering.pointwise("{0} / {1}", total, lowering.literal(count, x.dtype))


def _power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


@op("max", "min")
def _extreme(
    lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]
) -> Value | Sequence[Value]:
    name: ReduceOp = "max" if node.op.startswith("aten.max") else "min"
    if len(node.outputs) == 1:
        return lowering.reduce(name, args[0], [])
    axis, keepdim = args[1], _keepdim(args, kwargs, 2)
    at: ReduceOp = "argmax" if name == "max" else "argmin"
    return (
        lowering.reduce(name, args[0], [axis], keepdim=keepdim),
        lowering.reduce(at, args[0], [axis], keepdim=keepdim),
    )


@op("argmax", "argmin")
def _arg(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    name: ReduceOp = "argmax" if node.op.startswith("aten.argmax") else "argmin"
    axes = _axes(args[1] if len(args) > 1 else kwargs.get("dim"))
    return lowering.reduce(name, args[0], axes, keepdim=_keepdim(args, kwargs, 2))


def moments(lowering: Lowering, x: Value, axes: Sequence[int]) -> tuple[Value, Value]:
    """Mean and sum of squared deviations, both with the axes kept as 1.

    The sum of deviations, which is zero but for rounding, corrects both: in float32 a plain mean of many
    large numbers is not good enough to subtract.
    """
    count = lowering.literal(math.prod(x.shape[a] for a in axes), x.dtype)
    total = lowering.reduce("sum", x, axes, keepdim=True, label="total")
    rough = lowering.pointwise("{0} / {1}", total, count, label="rough_mean")
    off = lowering.pointwise("{0} - {1}", x, rough, label="off")
    excess = lowering.reduce("sum", off, axes, keepdim=True, label="excess")
    rest = lowering.pointwise("{0} / {1}", excess, count, label="correction")
    squares = lowering.pointwise("{0} * {0}", off, label="squared")
    squares = lowering.reduce("sum", squares, axes, keepdim=True, label="squares")
    exact = lowering.pointwise("{0} + {1}", rough, rest, label="mean")
    return exact, lowering.pointwise("{0} - {1} * {1} * {2}", squares, rest, count, label="spread")


@op("var", "std", "var_mean")
def _var(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value | Sequence[Value]:
    x = args[0]
    axes = [a % len(x.shape) for a in _axes(args[1] if len(args) > 1 else kwargs.get("dim"))]
    axes = axes or list(range(len(x.shape)))
    correction = kwargs.get("correction", 1)
    count = math.prod(x.shape[a] for a in axes)
    middle, squares = moments(lowering, x, axes)
    divisor = lowering.literal(max(0, count - (1 if correction is None else correction)), x.dtype)
    result = lowering.pointwise("{0} / {1}", squares, divisor)
    if node.op.startswith("aten.std"):
        result = lowering.pointwise(f"{function('sqrt', x.dtype)}({{0}})", result)
    shaped = lowering.reshape(result, node.outputs[0].shape)
    return (shaped, lowering.reshape(middle, node.outputs[1].shape)) if len(node.outputs) > 1 else shaped


@op("_softmax", "_log_softmax", "softmax", "log_softmax", "_safe_softmax")
def _softmax(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x = lowering.cast(args[0], result_type(node))
    if not x.shape:
        return lowering.literal(0 if "log" in node.op else 1, x.dtype)
    top = lowering.reduce("max", x, [args[1]], keepdim=True, label="largest")
    shifted = lowering.pointwise("{0} - {1}", x, top, label="shifted")
    exponential = lowering.pointwise(f"{function('exp', x.dtype)}({{0}})", shifted, label="exponential")
    total = lowering.reduce("sum", exponential, [args[1]], keepdim=True, label="total")
    if "log" in node.op:
        logarithm = lowering.pointwise(f"{function('log', x.dtype)}({{0}})", total, label="log_total")
        return lowering.pointwise("{0} - {1}", shifted, logarithm)
    return lowering.pointwise("{0} / {1}", exponential, total)


@op("native_layer_norm", "layer_norm")
def _layer_norm(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Sequence[Value]:
    x, normalized, weight, bias, eps = args
    axes = list(range(len(x.shape) - len(normalized), len(x.shape)))
    middle, inverse = _standardise(lowering, x, axes, eps)
    result = lowering.pointwise("({0} - {1}) * {2}", x, middle, inverse, label="normalised")
    result = _affine(lowering, result, weight, bias)
    return result, middle, inverse


def _standardise(lowering: Lowering, x: Value, axes: Sequence[int], eps: float) -> tuple[Value, Value]:
    """Mean and reciprocal standard deviation over the axes."""
    middle, squares = moments(lowering, x, axes)
    count = lowering.literal(math.prod(x.shape[a] for a in axes), x.dtype)
    template = f"{function('rsqrt', x.dtype)}({{0}} / {{1}} + {{2}})"
    epsilon = lowering.literal(eps, x.dtype)
    return middle, lowering.pointwise(template, squares, count, epsilon, label="inverse_deviation")


def _affine(lowering: Lowering, x: Value, weight: Value | None, bias: Value | None) -> Value:
    if weight is not None and bias is not None:
        return lowering.pointwise("{0} * {1} + {2}", x, weight, bias)
    if weight is not None:
        return lowering.pointwise("{0} * {1}", x, weight)
    return lowering.pointwise("{0} + {1}", x, bias) if bias is not None else x


@op("native_group_norm")
def _group_norm(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Sequence[Value]:
    x, weight, bias, batch, channels, inner, groups, eps = args
    grouped = lowering.reshape(x, [batch, groups, channels // groups * inner])
    middle, inverse = _standardise(lowering, grouped, [2], eps)
    result = lowering.pointwise("({0} - {1}) * {2}", grouped, middle, inverse, label="normalised")
    result = lowering.reshape(result, x.shape)
    per_channel = [1, channels, *([1] * (len(x.shape) - 2))]
    weight, bias = (None if p is None else lowering.reshape(p, per_channel) for p in (weight, bias))
    shape = [batch, groups]
    return (
        _affine(lowering, result, weight, bias),
        lowering.reshape(middle, shape),
        lowering.reshape(inverse, shape),
    )


@op("_native_batch_norm_legit_no_training")
def _batch_norm(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Sequence[Value]:
    x, weight, bias, middle, variance, _, eps = args
    return [_normalise_channels(lowering, x, weight, bias, middle, variance, eps)]


@op("_native_batch_norm_legit")
def _instance_norm(
    lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]
) -> Sequence[Value]:
    """The overload without running statistics: normalised by its own, over all axes but the channels."""
    if not node.op.endswith(".no_stats"):
        raise lowering.unsupported(f"{node.op} updates running statistics: call eval() on the module")
    x, weight, bias, _, _, eps = args
    axes = [a for a in range(len(x.shape)) if a != 1]
    middle, inverse = _standardise(lowering, x, axes, eps)
    result = lowering.pointwise("({0} - {1}) * {2}", x, middle, inverse, label="normalised")
    per_channel = [1, x.shape[1], *([1] * (len(x.shape) - 2))]
    weight, bias = (None if p is None else lowering.reshape(p, per_channel) for p in (weight, bias))
    return [_affine(lowering, result, weight, bias)]


def _normalise_channels(
    lowering: Lowering,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    middle: Value,
    variance: Value,
    eps: float,
) -> Value:
    per_channel = [1, x.shape[1], *([1] * (len(x.shape) - 2))]
    template = f"{function('rsqrt', x.dtype)}({{0}} + {{1}})"
    inverse = lowering.pointwise(template, lowering.cast(variance, x.dtype), lowering.literal(eps, x.dtype))
    result = lowering.pointwise(
        "({0} - {1}) * {2}", x, lowering.reshape(middle, per_channel), lowering.reshape(inverse, per_channel)
    )
    weight, bias = (None if p is None else lowering.reshape(p, per_channel) for p in (weight, bias))
    return _affine(lowering, result, weight, bias)


@op("_fused_rms_norm")
def _rms_norm(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Sequence[Value]:
    x, normalized, weight, eps = args
    axes = list(range(len(x.shape) - len(normalized), len(x.shape)))
    square = mean(lowering, lowering.pointwise("{0} * {0}", x), axes, keepdim=True)
    eps = lowering.literal(1.1920929e-07 if eps is None else eps, x.dtype)
    inverse = lowering.pointwise(
        f"{function('rsqrt', x.dtype)}({{0}} + {{1}})", square, eps, label="inverse_rms"
    )
    result = lowering.pointwise("{0} * {1}", x, inverse)
    return _affine(lowering, result, weight, None), inverse


# Matrix products


def matmul(lowering: Lowering, a: Value, b: Value) -> Value:
    """a[batch, m, k] times b[batch, k, n]."""
    batch, m, k = a.shape
    n = b.shape[2]
    whole = (batch, m, n, k)
    left = lowering.broadcast(lowering.reshape(a, [batch, m, 1, k]), whole)
    right = lowering.permute(b, [0, 2, 1])
    right = lowering.broadcast(lowering.reshape(right, [batch, 1, n, k]), whole)
    terms = lowering.pointwise("{0} * {1}", left, right, label="term")
    return lowering.reduce("sum", terms, [3], rereads=True, product=(a, b))


def _matrices(lowering: Lowering, a: Value, b: Value) -> Value:
    return matmul(lowering, lowering.reshape(a, [1, *a.shape]), lowering.reshape(b, [1, *b.shape]))


@op("mm", "bmm", "addmm", "baddbmm", "mv", "dot")
def _mm(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    name, shape = node.op.split(".")[1], node.outputs[0].shape
    if name in ("mm", "addmm"):
        product = lowering.reshape(_matrices(lowering, *args[-2:]), shape)
    elif name in ("bmm", "baddbmm"):
        product = matmul(lowering, *args[-2:])
    elif name == "mv":
        return lowering.reduce("sum", lowering.pointwise("{0} * {1}", args[0], args[1]), [1])
    else:
        return lowering.reduce("sum", lowering.pointwise("{0} * {1}", args[0], args[1]), [])
    if name not in ("addmm", "baddbmm"):
        return product
    alpha, beta, dtype = kwargs.get("alpha", 1), kwargs.get("beta", 1), result_type(node)
    if alpha != 1:
        product = lowering.pointwise("{0} * {1}", product, lowering.literal(alpha, dtype))
    added = operand(lowering, args[0], dtype)
    if beta != 1:
        added = lowering.pointwise("{0} * {1}", added, lowering.literal(beta, dtype))
    return lowering.pointwise("{0} + {1}", product, added)


@op("linear")
def _linear(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, weight, bias = [*args, None][:3]
    rows = math.prod(x.shape[:-1])
    product = _matrices(lowering, lowering.reshape(x, [rows, x.shape[-1]]), lowering.permute(weight, [1, 0]))
    shaped = lowering.reshape(product, node.outputs[0].shape)
    return shaped if bias is None else lowering.pointwise("{0} + {1}", shaped, bias)

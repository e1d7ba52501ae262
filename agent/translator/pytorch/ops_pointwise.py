"""Ops that work element by element, as C expressions."""

from __future__ import annotations

from typing import Any

from agent.translator.pytorch.index import constant
from agent.translator.pytorch.ir import Iota, Value
from agent.translator.pytorch.lower import HANDLERS, Handler, Lowering, op
from sandbox.tasks.pytorch.graph import Node

#: name -> C function of float (double: without the f)
_FUNCTIONS = {
    "exp": "expf", "exp2": "exp2f", "expm1": "expm1f", "log": "logf", "log2": "log2f", "log10": "log10f",
    "log1p": "log1pf", "sqrt": "sqrtf", "rsqrt": "rsqrtf", "sin": "sinf", "cos": "cosf", "tan": "tanf",
    "asin": "asinf", "acos": "acosf", "atan": "atanf", "sinh": "sinhf", "cosh": "coshf", "tanh": "tanhf",
    "asinh": "asinhf", "acosh": "acoshf", "atanh": "atanhf", "erf": "erff", "erfc": "erfcf",
    "floor": "floorf", "ceil": "ceilf", "round": "rintf", "trunc": "truncf",
}  # fmt: skip
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ARITHMETIC = {
    "mul": "{0} * {1}",
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
}
_LOGICAL = {"logical_and": "{0} && {1}", "logical_or": "{0} || {1}", "logical_xor": "{0} != {1}"}


def result_type(node: Node) -> str:
    return node.outputs[0].dtype


def operand(lowering: Lowering, value: Any, dtype: str) -> Value:
    """A tensor or a number as a value of this element type."""
    if isinstance(value, Value):
        return lowering.cast(value, dtype)
    return lowering.literal(value, dtype)


def promoted(*values: Any) -> str:
    """torch's common type of tensors and numbers: a number only matters where its kind is higher."""
    tensors = [v for v in values if isinstance(v, Value)]
    kinds = {"bool": 0, "int32": 1, "int64": 1, "float32": 2, "float64": 2}
    ranked = sorted([v for v in tensors if v.shape] or tensors, key=lambda v: _RANK[v.dtype])
    best = ranked[-1].dtype
    for value in values:
        kind = kinds[value.dtype] if isinstance(value, Value) else _number_kind(value)
        if kind > kinds[best]:
            best = value.dtype if isinstance(value, Value) else ("float32" if kind == 2 else "int64")
    return best


_RANK = {"bool": 0, "int32": 1, "int64": 2, "float32": 3, "float64": 4}


def _number_kind(value: Any) -> int:
    return 0 if isinstance(value, bool) else 1 if isinstance(value, int) else 2


def function(name: str, dtype: str) -> str:
    """The C function for float or double."""
    return _FUNCTIONS[name] if dtype == "float32" else _FUNCTIONS[name].removesuffix("f")


def _unary_function(name: str) -> Handler:
    def handler(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
        dtype = result_type(node)
        x = operand(lowering, args[0], dtype)
        if dtype not in ("float32", "float64"):
            return x  # floor, ceil, round, trunc of an integer
        return lowering.pointwise(f"{function(name, dtype)}({{0}})", x)

    return handler


def _comparison(symbol: str) -> Handler:
    def handler(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
        dtype = promoted(*args[:2])
        a, b = (operand(lowering, v, dtype) for v in args[:2])
        return lowering.pointwise(f"{{0}} {symbol} {{1}}", a, b, dtype="bool")

    return handler


def _binary(template: str) -> Handler:
    def handler(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
        dtype = result_type(node)
        a, b = (operand(lowering, v, dtype) for v in args[:2])
        return lowering.pointwise(template, a, b)

    return handler


def _logical(template: str) -> Handler:
    def handler(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
        a, b = (operand(lowering, v, "bool") for v in args[:2])
        return lowering.pointwise(template, a, b)

    return handler


for _name in _FUNCTIONS:
    HANDLERS[_name] = _unary_function(_name)
for _name, _symbol in _COMPARISONS.items():
    HANDLERS[_name] = _comparison(_symbol)
for _name, _template in _ARITHMETIC.items():
    HANDLERS[_name] = _binary(_template)
for _name, _template in _LOGICAL.items():
    HANDLERS[_name] = _logical(_template)


@op("add", "sub", "rsub")
def _add(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    dtype = result_type(node)
    a, b = (operand(lowering, v, dtype) for v in args[:2])
    alpha = kwargs.get("alpha", args[2] if len(args) > 2 else 1)
    if node.op.startswith("aten.rsub"):
        a, b = b, a
    sign = "+" if node.op.startswith("aten.add") else "-"
    if alpha == 1:
        return lowering.pointwise(f"{{0}} {sign} {{1}}", a, b)
    return lowering.pointwise(f"{{0}} {sign} {{2}} * {{1}}", a, b, lowering.literal(alpha, dtype))


@op("div")
def _div(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    dtype, mode = result_type(node), kwargs.get("rounding_mode")
    a, b = (operand(lowering, v, dtype) for v in args[:2])
    if mode is None:
        return lowering.pointwise("{0} / {1}", a, b)
    if dtype in ("int32", "int64"):
        if mode == "trunc":
            return lowering.pointwise("{0} / {1}", a, b)
        return lowering.pointwise("floor_divide({0}, {1})", a, b, helpers=("floor_divide",))
    return lowering.pointwise(f"{function(mode, dtype)}({{0}} / {{1}})", a, b)


@op("remainder")
def _remainder(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    dtype = result_type(node)
    a, b = (operand(lowering, v, dtype) for v in args[:2])
    return lowering.pointwise("remainder_like_divisor({0}, {1})", a, b, helpers=("remainder_like_divisor",))


@op("fmod")
def _fmod(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    dtype = result_type(node)
    a, b = (operand(lowering, v, dtype) for v in args[:2])
    template = {"float32": "fmodf({0}, {1})", "float64": "fmod({0}, {1})"}.get(dtype, "{0} % {1}")
    return lowering.pointwise(template, a, b)


@op("atan2", "hypot", "copysign")
def _two_argument_function(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    dtype = result_type(node)
    a, b = (operand(lowering, v, dtype) for v in args[:2])
    name = node.op.split(".")[1] + ("f" if dtype == "float32" else "")
    return lowering.pointwise(f"{name}({{0}}, {{1}})", a, b)


@op("maximum", "minimum")
def _extreme(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    dtype = result_type(node)
    a, b = (operand(lowering, v, dtype) for v in args[:2])
    name = "larger" if node.op.startswith("aten.maximum") else "smaller"
    return lowering.pointwise(f"{name}({{0}}, {{1}})", a, b, helpers=(name,))


@op("pow")
def _pow(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    dtype = result_type(node)
    a = operand(lowering, args[0], dtype)
    exponent = args[1]
    short = {2: "{0} * {0}", 3: "{0} * {0} * {0}", 1: "{0}"}
    if not isinstance(exponent, Value) and exponent in short:
        return lowering.pointwise(short[exponent], a)
    if dtype not in ("float32", "float64"):
        raise lowering.unsupported(
            "an integer power of an integer tensor other than 1, 2 and 3 is not supported"
        )
    named = {0.5: "sqrt", -0.5: "rsqrt"}
    if not isinstance(exponent, Value) and exponent in named:
        return lowering.pointwise(f"{function(named[exponent], dtype)}({{0}})", a)
    if not isinstance(exponent, Value) and exponent == -1:
        return lowering.pointwise("{1} / {0}", a, lowering.literal(1, dtype))
    power = "powf" if dtype == "float32" else "pow"
    return lowering.pointwise(f"{power}({{0}}, {{1}})", a, operand(lowering, exponent, dtype))


@op(
    "neg",
    "bitwise_not",
    "logical_not",
    "abs",
    "reciprocal",
    "relu",
    "sigmoid",
    "silu",
    "sign",
    "sgn",
    "isnan",
    "isinf",
)
def _simple(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    name, dtype = node.op.split(".")[1], result_type(node)
    x = args[0]
    if name in ("isnan", "isinf"):
        template = "{0} != {0}" if name == "isnan" else "isinf({0})"
        return lowering.pointwise(template, x, dtype="bool")
    if name == "logical_not" or (name == "bitwise_not" and dtype == "bool"):
        return lowering.pointwise("!{0}", lowering.cast(x, "bool"))
    x = lowering.cast(x, dtype)
    if name in ("sigmoid", "silu", "sign", "sgn", "abs", "relu"):
        helper = {"sgn": "sign", "abs": "magnitude"}.get(name, name)
        return lowering.pointwise(f"{helper}({{0}})", x, helpers=(helper,))
    if name == "reciprocal":
        return lowering.pointwise("{1} / {0}", x, lowering.literal(1, dtype))
    return lowering.pointwise("-{0}" if name == "neg" else "~{0}", x)


@op("gelu")
def _gelu(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    name = "gelu_tanh" if kwargs.get("approximate", "none") == "tanh" else "gelu"
    return lowering.pointwise(f"{name}({{0}})", args[0], helpers=(name,))


@op("leaky_relu")
def _leaky_relu(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    slope = lowering.literal(args[1] if len(args) > 1 else 0.01, args[0].dtype)
    return lowering.pointwise("({0} > 0 ? {0} : {1} * {0})", args[0], slope)


@op("elu")
def _elu(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, (alpha, scale, input_scale) = args[0], (args[1:] + [1.0, 1.0, 1.0][len(args) - 1 :])
    negative = lowering.literal(alpha * scale, x.dtype)
    positive, inner = lowering.literal(scale, x.dtype), lowering.literal(input_scale, x.dtype)
    template = f"({{0}} > 0 ? {{0}} * {{2}} : {{1}} * {function('expm1', x.dtype)}({{0}} * {{3}}))"
    return lowering.pointwise(template, x, negative, positive, inner)


@op("softplus")
def _softplus(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x = args[0]
    beta = args[1] if len(args) > 1 else kwargs.get("beta", 1)
    threshold = args[2] if len(args) > 2 else kwargs.get("threshold", 20)
    log1p, exp = function("log1p", x.dtype), function("exp", x.dtype)
    return lowering.pointwise(
        f"({{0}} * {{1}} > {{2}} ? {{0}} : {log1p}({exp}({{0}} * {{1}})) / {{1}})",
        x,
        lowering.literal(beta, x.dtype),
        lowering.literal(threshold, x.dtype),
    )


@op("clamp", "hardtanh", "clamp_min", "clamp_max")
def _clamp(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    dtype, name = result_type(node), node.op.split(".")[1]
    limits = args[1:] + [None] * (3 - len(args))
    low, high = kwargs.get("min", limits[0]), kwargs.get("max", limits[1])
    if name == "hardtanh":
        low, high = (-1.0 if low is None else low), (1.0 if high is None else high)
    if name == "clamp_max":
        low, high = None, low
    x: Value = lowering.cast(args[0], dtype)
    if low is not None:
        x = lowering.pointwise("({0} < {1} ? {1} : {0})", x, operand(lowering, low, dtype))
    if high is not None:
        x = lowering.pointwise("({0} > {1} ? {1} : {0})", x, operand(lowering, high, dtype))
    return x


@op("where")
def _where(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    dtype = result_type(node)
    condition = lowering.cast(args[0], "bool")
    a, b = (operand(lowering, v, dtype) for v in args[1:3])
    return lowering.pointwise("({0} ? {1} : {2})", condition, a, b, dtype=dtype)


@op(
    "_to_copy",
    "clone",
    "alias",
    "lift_fresh_copy",
    "detach",
    "dropout",
    "native_dropout",
    "lift",
    "contiguous",
)
def _same(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return lowering.cast(args[0], result_type(node))


@op("copy")
def _copy(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return lowering.broadcast(lowering.cast(args[1], result_type(node)), tuple(node.outputs[0].shape))


@op(
    "full",
    "full_like",
    "scalar_tensor",
    "zeros",
    "ones",
    "zeros_like",
    "ones_like",
    "new_full",
    "new_zeros",
    "new_ones",
)
def _full(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    name = node.op.split(".")[1]
    number = 0 if "zeros" in name else 1 if "ones" in name else args[-1]
    return lowering.literal(number, result_type(node), tuple(node.outputs[0].shape))


@op("arange")
def _arange(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    start, step = (0, 1) if len(args) == 1 else (args[0], args[2] if len(args) > 2 else 1)
    dtype, shape = result_type(node), tuple(node.outputs[0].shape)
    if not (isinstance(start, int) and isinstance(step, int)) or start < 0:
        steps = lowering.add(Iota(shape, "int64", **lowering.common, of=lambda at: at[0]))
        first, by = lowering.literal(start, dtype), lowering.literal(step, dtype)
        return lowering.pointwise("{1} + {0} * {2}", lowering.cast(steps, dtype), first, by)
    value = lowering.add(
        Iota(
            shape,
            "int64",
            **lowering.common,
            of=lambda at: (at[0] if shape[0] > 1 else constant(0)) * step + start,
        )
    )
    return lowering.cast(value, dtype)


@op("lerp")
def _lerp(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    dtype = result_type(node)
    a, b, weight = (operand(lowering, v, dtype) for v in args[:3])
    return lowering.pointwise("{0} + {2} * ({1} - {0})", a, b, weight)


@op("addcmul", "addcdiv")
def _addc(lowering: Lowering, node: Node, args: list[Any], kwargs: dict[str, Any]) -> Value:
    dtype = result_type(node)
    a, b, c = (operand(lowering, v, dtype) for v in args[:3])
    value = lowering.literal(kwargs.get("value", 1), dtype)
    sign = "*" if node.op.startswith("aten.addcmul") else "/"
    return lowering.pointwise(f"{{0}} + {{3}} * {{1}} {sign} {{2}}", a, b, c, value)

"""Approximations: within the errors that the PTX ISA documents, from the exact value in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable

from exact_floats import F64, FORMATS
from instruction_forms import Bound, Table, near, number

TABLE = Table("approximations")
form = TABLE.add
SMALLEST = 2.0**-149


def exact(function: Callable[..., float], kind: str, ftz: bool = False) -> Callable[..., float]:
    """A function of floats as one of patterns."""

    def apply(*bits: int) -> float:
        one = FORMATS[kind]
        values = [number(kind, one.flushed(pattern) if ftz else pattern) for pattern in bits]
        if any(math.isnan(value) for value in values):
            return math.nan
        result = function(*values)
        if abs(result) >= number(kind, one.largest) * (1 + 2.0 ** -(one.fraction_bits + 2)):
            return math.copysign(math.inf, result)
        if ftz and 0 < abs(result) < 2.0**one.lowest:
            return math.copysign(0.0, result)
        return result

    return apply


def reciprocal(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1 / x


def root(x: float) -> float:
    return math.nan if x < 0 else math.sqrt(x)


def inverse_root(x: float) -> float:
    return math.nan if x < 0 else reciprocal(math.copysign(math.sqrt(x), x))


def logarithm(x: float) -> float:
    return -math.inf if x == 0 else math.nan if x < 0 else math.log2(x)


def power(x: float) -> float:
    return math.inf if x > 1000 else 0.0 if x < -1000 else math.pow(2.0, x)


def wave(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: math.nan if math.isinf(x) else function(x)


def quotient(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 else math.copysign(math.inf, a) * math.copysign(1, b)
    if math.isinf(a) and math.isinf(b):
        return math.nan
    return a / b


def approximate_quotient(a: float, b: float) -> float:
    """Divisors above 2^126 give zero."""
    if 2.0**126 < abs(b) < math.inf:
        return math.nan if math.isinf(a) else math.copysign(0.0, a) * math.copysign(1, b)
    return quotient(a, b)


ULP = 2.0**-23
for ftz in ("", ".ftz"):
    flush = bool(ftz)
    least = 0.0 if flush else SMALLEST
    for name, function, bound, values in (
        ("rcp.approx", reciprocal, Bound(ULP, least), near(-126, 125)),
        ("sqrt.approx", root, Bound(ULP, least), near(-126, 127)),
        ("rsqrt.approx", inverse_root, Bound(2**-22.9, least), near(-126, 127)),
        ("sin.approx", wave(math.sin), Bound(0.0, 2**-20.5), near(-20, 2.6)),
        ("cos.approx", wave(math.cos), Bound(0.0, 2**-20.5), near(-20, 2.6)),
        ("lg2.approx", logarithm, Bound(2.0**-22, 2.0**-22), near(-126, 127)),
        ("ex2.approx", power, Bound(2**-22.5, least), near(-10, 7)),
    ):
        form(
            f"{name}{ftz}.f32 {{d}}, {{a}}",
            "f32 : f32",
            exact(function, "f32", flush),
            bound=bound,
            values=values,
        )
    for name, function, sizes in (
        ("div.approx", approximate_quotient, near(-30, 30)),
        ("div.full", quotient, near(-30, 30)),
    ):
        form(
            f"{name}{ftz}.f32 {{d}}, {{a}}, {{b}}",
            "f32 : f32 f32",
            exact(function, "f32", flush),
            bound=Bound(2 * ULP, least),
            values=sizes,
        )
form("tanh.approx.f32 {d}, {a}", "f32 : f32", exact(math.tanh, "f32"), bound=Bound(2.0**-11, SMALLEST))


# In double precision they read the upper word of the operand and give 20 bits of fraction.
def upper(function: Callable[[float], float]) -> Callable[[int], float]:
    return lambda bits: exact(function, "f64", True)(bits if F64.is_nan(bits) else bits >> 32 << 32)


for name, function in (("rcp", reciprocal), ("rsqrt", inverse_root)):
    form(
        f"{name}.approx.ftz.f64 {{d}}, {{a}}",
        "f64 : f64",
        upper(function),
        bound=Bound(2.0**-19),
        values=near(-1000, 1000),
    )
form(
    "rsqrt.approx.f64 {d}, {a}",
    "f64 : f64",
    exact(inverse_root, "f64"),
    bound=Bound(2.0**-40),
    values=near(-1000, 1000),
)


# 16 bits: single and packed.
def by_halves(function: Callable[[int], float]) -> Callable[[int], tuple[float, ...]]:
    return lambda bits: (function(bits & 0xFFFF), function(bits >> 16))


for name, function, kind, bound in (
    ("ex2.approx", power, "f16", Bound(2**-9.9, 2.0**-24)),
    ("ex2.approx.ftz", power, "bf16", Bound(2.0**-7, 0.0)),
    ("tanh.approx", math.tanh, "f16", Bound(0.0, 2**-10.987)),
    ("tanh.approx", math.tanh, "bf16", Bound(2.0**-8, 2.0**-133)),
):
    meaning = exact(function, kind, "ftz" in name)
    more = {"bound": bound}
    form(f"{name}.{kind} {{d}}, {{a}}", f"{kind} : {kind}", meaning, **more)
    form(
        f"mov.b32 %w1, {{a}}; {name}.{kind}x2 %w1, %w1; mov.b32 {{{{{{d}}, {{e}}}}}}, %w1",
        f"{kind} {kind} : {kind}x2",
        by_halves(meaning),
        **more,
    )

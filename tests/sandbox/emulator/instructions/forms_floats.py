"""Floating-point arithmetic of 32 and 64 bits: exact in Python's integers, rounded once.

NaN results may have any sign and payload (any_nan): the ISA leaves them open for these types but for f32
arithmetic, where the hardware gives 0x7fffffff and the emulator does not spend time on it.
"""

from __future__ import annotations

from collections.abc import Callable

from exact_floats import (
    F32,
    FORMATS,
    Format,
    add,
    arithmetic,
    divide,
    extreme,
    fused,
    multiply,
    negated,
    square_root,
)
from instruction_forms import Table

TABLE = Table("floats")
MODES = ("rn", "rz", "rm", "rp")


def form(text: str, types: str, meaning: Callable[..., int], **more: object) -> None:
    TABLE.add(text, types, meaning, any_nan=True, **more)


def saturated(bits: int, kind: Format = F32) -> int:
    one = ((1 << (kind.exponent_bits - 1)) - 1) << kind.fraction_bits
    if kind.is_nan(bits) or bits & kind.sign:
        return 0
    return min(bits, one)


def operation(name: str, mode: str) -> Callable[..., object]:
    return {
        "add": lambda a, b: add(a, b, mode),
        "sub": lambda a, b: add(a, negated(b), mode),
        "mul": multiply,
        "fma": lambda a, b, c: fused(a, b, c, mode),
        "mad": lambda a, b, c: fused(a, b, c, mode),
    }[name]


for kind in ("f32", "f64"):
    one = FORMATS[kind]
    for name in ("add", "sub", "mul", "fma", "mad"):
        count = 3 if name in ("fma", "mad") else 2
        types = f"{kind} : " + " ".join([kind] * count)
        slots = ", ".join(["{d}", "{a}", "{b}", "{c}"][: count + 1])
        for mode in MODES:
            for modifiers in ("", ".ftz", ".sat", ".ftz.sat") if kind == "f32" else ("",):
                meaning = arithmetic(one, operation(name, mode), mode, ftz="ftz" in modifiers)  # type: ignore[arg-type]
                clamped = (lambda *bits, f=meaning: saturated(f(*bits))) if "sat" in modifiers else meaning
                form(f"{name}.{mode}{modifiers}.{kind} {slots}", types, clamped)
        if count == 2:
            form(f"{name}.{kind} {slots}", types, arithmetic(one, operation(name, "rn")))  # type: ignore[arg-type]
    for mode in MODES:
        for ftz in ("", ".ftz") if kind == "f32" else ("",):

            def ready(bits: int, flush: bool = bool(ftz), one: Format = one) -> int:
                return one.flushed(bits) if flush else bits

            form(
                f"div.{mode}{ftz}.{kind} {{d}}, {{a}}, {{b}}",
                f"{kind} : {kind} {kind}",
                lambda a, b, one=one, m=mode, r=ready: r(divide(one, r(a), r(b), m)),
            )
            form(
                f"rcp.{mode}{ftz}.{kind} {{d}}, {{a}}",
                f"{kind} : {kind}",
                lambda a, one=one, m=mode, r=ready: r(divide(one, one.pack((0, 1, 0)), r(a), m)),
            )
            form(
                f"sqrt.{mode}{ftz}.{kind} {{d}}, {{a}}",
                f"{kind} : {kind}",
                lambda a, one=one, m=mode, r=ready: r(square_root(one, r(a), m)),
            )
    for ftz in ("", ".ftz") if kind == "f32" else ("",):

        def ready(bits: int, flush: bool = bool(ftz), one: Format = one) -> int:
            return one.flushed(bits) if flush else bits

        form(f"neg{ftz}.{kind} {{d}}, {{a}}", f"{kind} : {kind}", lambda a, r=ready, s=one.sign: r(a) ^ s)
        form(f"abs{ftz}.{kind} {{d}}, {{a}}", f"{kind} : {kind}", lambda a, r=ready, s=one.sign: r(a) & ~s)
        for name in ("min", "max"):
            for nan in ("", ".NaN") if kind == "f32" else ("",):
                types = f"{kind} : {kind} {kind}"
                form(
                    f"{name}{ftz}{nan}.{kind} {{d}}, {{a}}, {{b}}",
                    types,
                    lambda a, b, g=name == "max", n=bool(nan), r=ready, one=one: extreme(
                        one, g, r(a), r(b), n
                    ),
                )
                if kind == "f32":
                    form(
                        f"{name}{ftz}{nan}.xorsign.abs.f32 {{d}}, {{a}}, {{b}}",
                        types,
                        lambda a, b, g=name == "max", n=bool(nan), r=ready: (
                            extreme(F32, g, r(a) & ~F32.sign, r(b) & ~F32.sign, n) | (a ^ b) & F32.sign
                        ),
                    )
    form(
        f"copysign.{kind} {{d}}, {{a}}, {{b}}",
        f"{kind} : {kind} {kind}",
        lambda a, b, s=one.sign: b & ~s | a & s,
    )
    for name, test in {
        "finite": lambda n, sub: n is not None and n[1] >= 0,
        "infinite": lambda n, sub: n is not None and n[1] < 0,
        "number": lambda n, sub: n is not None,
        "notanumber": lambda n, sub: n is None,
        "normal": lambda n, sub: n is not None and n[1] > 0 and not sub,
        "subnormal": lambda n, sub: n is not None and n[1] > 0 and sub,
    }.items():
        form(
            f"testp.{name}.{kind} {{d}}, {{a}}",
            f"pred : {kind}",
            lambda a, f=test, one=one: int(f(one.unpack(a), one.flushed(a) != a)),
        )

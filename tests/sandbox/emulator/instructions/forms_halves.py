"""Arithmetic of 16-bit floats, single and packed: exact, rounded once; NaN is 0x7fff."""

from __future__ import annotations

from collections.abc import Callable

from exact_floats import FORMATS, Format, arithmetic, extreme
from forms_floats import operation, saturated
from instruction_forms import Table, halves

TABLE = Table("halves")


def form(text: str, kind: str, count: int, meaning: Callable[..., int], **more: object) -> None:
    """The form for one value and for two in a register."""
    slots = ", ".join(["{d}", "{a}", "{b}", "{c}"][: count + 1])
    TABLE.add(f"{text}.{kind} {slots}", f"{kind} : {' '.join([kind] * count)}", meaning, **more)
    packed = f"{kind}x2"
    TABLE.add(f"{text}.{packed} {slots}", f"{packed} : {' '.join([packed] * count)}", halves(meaning), **more)


def rectified(bits: int, one: Format) -> int:
    return bits if one.is_nan(bits) or not bits & one.sign else 0


for kind in ("f16", "bf16"):
    one = FORMATS[kind]
    for name in ("add", "sub", "mul"):
        plain = arithmetic(one, operation(name, "rn"))  # type: ignore[arg-type]
        form(name, kind, 2, plain)
        form(f"{name}.rn", kind, 2, plain)
        if kind == "f16":
            flushed = arithmetic(one, operation(name, "rn"), ftz=True)  # type: ignore[arg-type]
            form(f"{name}.ftz", kind, 2, flushed)
            form(f"{name}.sat", kind, 2, lambda a, b, f=plain, one=one: saturated(f(a, b), one))
            form(f"{name}.rn.ftz.sat", kind, 2, lambda a, b, f=flushed, one=one: saturated(f(a, b), one))
    plain = arithmetic(one, operation("fma", "rn"))  # type: ignore[arg-type]
    form("fma.rn", kind, 3, plain)
    form("fma.rn.relu", kind, 3, lambda a, b, c, f=plain, one=one: rectified(f(a, b, c), one))
    if kind == "f16":
        flushed = arithmetic(one, operation("fma", "rn"), ftz=True)  # type: ignore[arg-type]
        form("fma.rn.ftz", kind, 3, flushed)
        form("fma.rn.sat", kind, 3, lambda a, b, c, f=plain, one=one: saturated(f(a, b, c), one))
        form("fma.rn.ftz.relu", kind, 3, lambda a, b, c, f=flushed, one=one: rectified(f(a, b, c), one))
    for ftz in ("", ".ftz") if kind == "f16" else ("",):

        def ready(bits: int, flush: bool = bool(ftz), one: Format = one) -> int:
            return one.flushed(bits) if flush else bits

        form(f"neg{ftz}", kind, 1, lambda a, r=ready, s=one.sign: r(a) ^ s)
        form(f"abs{ftz}", kind, 1, lambda a, r=ready, s=one.sign: r(a) & ~s)
        for name in ("min", "max"):
            for nan in ("", ".NaN"):
                form(
                    f"{name}{ftz}{nan}",
                    kind,
                    2,
                    lambda a, b, g=name == "max", n=bool(nan), r=ready, one=one: extreme(
                        one, g, r(a), r(b), n
                    ),
                )

                def of_magnitudes(
                    a: int,
                    b: int,
                    g: bool = name == "max",
                    n: bool = bool(nan),
                    one: Format = one,
                    r: Callable[[int], int] = ready,
                ) -> int:
                    found = extreme(one, g, r(a) & ~one.sign, r(b) & ~one.sign, n)
                    return found if one.is_nan(found) else found | (a ^ b) & one.sign

                form(f"{name}{ftz}{nan}.xorsign.abs", kind, 2, of_magnitudes)

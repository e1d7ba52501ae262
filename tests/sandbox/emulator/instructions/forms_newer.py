"""What came with sm_100: pairs of float32, operands of mixed precision, three-input minimum and maximum."""

from __future__ import annotations

from collections.abc import Callable

from exact_floats import F32, FORMATS, TF32, add, arithmetic, extreme, fused, negated
from forms_conversions import converted
from forms_floats import MODES, operation, saturated
from instruction_forms import Table

TABLE = Table("newer", target="sm_100")


def form(text: str, types: str, meaning: Callable[..., object]) -> None:
    TABLE.add(text, types, meaning, any_nan=True)  # type: ignore[arg-type]


for name in ("add", "sub", "mul", "fma"):
    count = 3 if name == "fma" else 2
    slots = ", ".join(["{a}", "{b}", "{c}"][:count])
    for mode in MODES:
        for ftz in ("", ".ftz") if mode in ("rn", "rp") else ("",):
            one = arithmetic(F32, operation(name, mode), mode, ftz=bool(ftz))  # type: ignore[arg-type]
            form(  # taken apart, so that a NaN of any payload will do
                f"{name}.{mode}{ftz}.f32x2 %v3, {slots}; mov.b64 {{{{{{d}}, {{e}}}}}}, %v3",
                f"f32 f32 : {' '.join(['f32x2'] * count)}",
                lambda *both, f=one: (f(*(v & 0xFFFFFFFF for v in both)), f(*(v >> 32 for v in both))),
            )
for kind in ("f16", "bf16"):
    half = FORMATS[kind]
    for mode in MODES:
        for sat in ("", ".sat"):

            def finished(number: object, mode: str = mode, clamp: bool = bool(sat)) -> int:
                result = F32.pack(number, mode)  # type: ignore[arg-type]
                return saturated(result) if clamp else result

            form(
                f"add.{mode}{sat}.f32.{kind} {{d}}, {{a}}, {{b}}",
                f"f32 : {kind} f32",
                lambda a, b, h=half, m=mode, f=finished: f(add(h.unpack(a), F32.unpack(b), m)),
            )
            form(
                f"sub.{mode}{sat}.f32.{kind} {{d}}, {{a}}, {{b}}",
                f"f32 : {kind} f32",
                lambda a, b, h=half, m=mode, f=finished: f(add(h.unpack(a), negated(F32.unpack(b)), m)),
            )
            form(
                f"fma.{mode}{sat}.f32.{kind} {{d}}, {{a}}, {{b}}, {{c}}",
                f"f32 : {kind} {kind} f32",
                lambda a, b, c, h=half, m=mode, f=finished: f(
                    fused(h.unpack(a), h.unpack(b), F32.unpack(c), m)
                ),
            )
for name in ("min", "max"):
    for nan in ("", ".NaN"):
        for size in ("", ".abs"):

            def of_three(
                a: int,
                b: int,
                c: int,
                greater: bool = name == "max",
                wins: bool = bool(nan),
                size: str = size,
            ) -> int:
                if size:
                    a, b, c = (bits & ~F32.sign for bits in (a, b, c))
                return extreme(F32, greater, extreme(F32, greater, a, b, wins), c, wins)

            form(f"{name}{nan}{size}.f32 {{d}}, {{a}}, {{b}}, {{c}}", "f32 : f32 f32 f32", of_three)
for relu in ("", ".relu"):
    meaning = converted("f32", TF32, "rn", relu=bool(relu), finite=True)
    form(f"cvt.rn.satfinite{relu}.tf32.f32 {{d}}, {{a}}", "f32 : f32", lambda a, f=meaning: f(a) << 13)

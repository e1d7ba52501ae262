"""cvt between all types, in exact arithmetic, and saturating packs."""

from __future__ import annotations

from collections.abc import Callable

from exact_floats import (
    E4M3,
    E5M2,
    FORMATS,
    TF32,
    Format,
    Number,
    from_integer,
    integer_of,
    to_integral,
)
from forms_floats import saturated
from forms_integer import clamp, signed
from instruction_forms import Table, near

TABLE = Table("conversions")
INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")
WHOLE = ("rni", "rzi", "rmi", "rpi")
MODES = ("rn", "rz", "rm", "rp")


def form(text: str, types: str, meaning: Callable[..., int], **more: object) -> None:
    TABLE.add(text, types, meaning, any_nan=True, **more)


def held(kind: str) -> str:
    """The type of the register that a narrow type stands in."""
    return {"s8": "s16", "u8": "u16"}.get(kind, kind)


def narrow(value: int, kind: str) -> int:
    """What an integer type sees of a register."""
    bits = int(kind[1:])
    return signed(value, bits) if kind[0] == "s" else value & (1 << bits) - 1


# Between integers.
for source in INTEGERS:
    for target in INTEGERS:
        for sat in ("", ".sat"):
            may_not_fit = clamp(-(1 << 70), source) < clamp(-(1 << 70), target)
            may_not_fit |= clamp(1 << 70, source) > clamp(1 << 70, target)
            if source != target and (may_not_fit or not sat):
                form(
                    f"cvt{sat}.{target}.{source} {{d}}, {{a}}",
                    f"{held(target)} : {held(source)}",
                    lambda a, s=source, t=target, c=bool(sat): (
                        clamp(narrow(a, s), t) if c else narrow(narrow(a, s), t)
                    ),
                )
for target, source in (("s32", "s8"), ("u32", "u8"), ("s64", "s16"), ("u32", "u16")):  # from wider registers
    form(
        f"cvt.{target}.{source} {{d}}, {{a}}",
        f"{target} : b32",
        lambda a, s=source: narrow(a, s),
    )
form("cvt.u8.u32 {d}, {a}", "u32 : u32", lambda a: a & 0xFF)
form("cvt.s8.s32 {d}, {a}", "s32 : s32", lambda a: signed(a, 8))


# From floats to integers.
def whole(source: str, target: str, mode: str, ftz: bool = False) -> Callable[[int], int]:
    one, bits = FORMATS[source], int(target[1:])

    def apply(pattern: int) -> int:
        number = one.unpack(one.flushed(pattern) if ftz else pattern)
        if number is None:
            return 1 << (bits - 1) if source == "f64" or bits == 64 else 0
        value = integer_of(to_integral(number, mode))
        if value is None:
            value = -(1 << 80) if number[0] else 1 << 80
        return narrow(clamp(value, target), target)

    def extended(pattern: int) -> int:
        return narrow(apply(pattern), target)

    return extended


SIZES = {"f32": near(-2, 66), "f64": near(-2, 66), "f16": near(-2, 16), "bf16": None}
for source in FLOATS:
    for target in INTEGERS if source != "bf16" else INTEGERS[2:]:
        for mode in WHOLE:
            form(
                f"cvt.{mode}.{target}.{source} {{d}}, {{a}}",
                f"{held(target)} : {source}",
                whole(source, target, mode),
                values=SIZES[source],
            )
for target in ("s32", "u64"):
    form(f"cvt.rpi.ftz.{target}.f32 {{d}}, {{a}}", f"{target} : f32", whole("f32", target, "rpi", ftz=True))
    form(f"cvt.rzi.sat.{target}.f64 {{d}}, {{a}}", f"{target} : f64", whole("f64", target, "rzi"))

# From integers to floats.
for source in INTEGERS:
    for target in FLOATS if source[1:] != "8" else ("f16", "f32", "f64"):
        for mode in MODES:
            form(
                f"cvt.{mode}.{target}.{source} {{d}}, {{a}}",
                f"{target} : {held(source)}",
                lambda a, s=source, t=FORMATS[target], m=mode: t.pack(from_integer(narrow(a, s)), m),
            )
for source in ("s32", "u64"):
    form(
        f"cvt.rn.sat.f32.{source} {{d}}, {{a}}",
        f"f32 : {source}",
        lambda a: 0x3F800000 if a > 0 else 0,
    )


# Between floats.
def converted(
    source: str,
    target: Format,
    mode: str,
    *,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    finite: bool = False,
) -> Callable[[int], int]:
    one = FORMATS[source]

    def apply(pattern: int) -> int:
        number: Number = one.unpack(one.flushed(pattern) if ftz and source == "f32" else pattern)
        if relu and number is not None and number[0]:
            return 0
        if mode in WHOLE:
            result = target.pack(to_integral(number, mode))
        else:
            result = target.pack(number, mode)
        if finite and number is not None and result & (target.sign - 1) > target.largest:
            result = result & target.sign | target.largest
        if sat:
            result = saturated(result, target)
        if ftz and target is FORMATS["f32"]:
            result = target.flushed(result)
        return result

    return apply


def modifiers_of(target: str, source: str) -> list[str]:
    """Combinations of .ftz and .sat that a conversion has."""
    single = "f32" in (target, source)
    plain = ["", ".sat"] if target not in ("bf16",) and source != "bf16" else [""]
    return [ftz + sat for ftz in ("", ".ftz") for sat in plain if single or not ftz]


for source in FLOATS:
    for target in FLOATS:
        wider = FORMATS[target].fraction_bits > FORMATS[source].fraction_bits and source != "f16"
        wider = wider or (source == "f16" and target in ("f32", "f64"))
        if source == target:
            modes: tuple[str, ...] = WHOLE
        elif (wider and "bf16" not in (source, target)) or (source, target) == ("bf16", "f32"):
            modes = ("",)
        elif "bf16" in (source, target) and source != "f32":
            modes = MODES if not (source == "bf16" and target == "f64") else ("",)
        elif target == "bf16":
            modes = ("rn", "rz")
        else:
            modes = MODES
        for mode in modes:
            for modifiers in modifiers_of(target, source):
                form(
                    f"cvt{'.' if mode else ''}{mode}{modifiers}.{target}.{source} {{d}}, {{a}}",
                    f"{target} : {source}",
                    converted(
                        source, FORMATS[target], mode or "rn", ftz="ftz" in modifiers, sat="sat" in modifiers
                    ),
                )
for target in ("f16", "bf16"):
    for mode in ("rn", "rz"):
        for relu in ("", ".relu"):
            for finite in ("", ".satfinite"):
                meaning = converted("f32", FORMATS[target], mode, relu=bool(relu), finite=bool(finite))
                if relu or finite:
                    form(f"cvt.{mode}{relu}{finite}.{target}.f32 {{d}}, {{a}}", f"{target} : f32", meaning)
                form(
                    f"cvt.{mode}{relu}{finite}.{target}x2.f32 {{d}}, {{a}}, {{b}}",
                    f"{target}x2 : f32 f32",
                    lambda a, b, f=meaning: f(a) << 16 | f(b),
                )
for name, mode, relu, finite in (
    ("rna", "rna", False, False),
    ("rna.satfinite", "rna", False, True),
    ("rn", "rn", False, False),
    ("rz", "rz", False, False),
    ("rn.relu", "rn", True, False),
    ("rz.relu", "rz", True, False),
):
    form(
        f"cvt.{name}.tf32.f32 {{d}}, {{a}}",
        "f32 : f32",
        lambda a, f=converted("f32", TF32, mode, relu=relu, finite=finite): f(a) << 13,  # noqa: B008
    )

# 8-bit floats, two in 16 bits.
for name, eight in (("e4m3x2", E4M3), ("e5m2x2", E5M2)):
    for relu in ("", ".relu"):
        meaning = converted("f32", eight, "rn", relu=bool(relu), finite=True)
        form(
            f"cvt.rn.satfinite{relu}.{name}.f32 {{d}}, {{a}}, {{b}}",
            "b16 : f32 f32",
            lambda a, b, f=meaning: f(a) << 8 | f(b),
        )
        meaning = converted("f16", eight, "rn", relu=bool(relu), finite=True)
        form(
            f"cvt.rn.satfinite{relu}.{name}.f16x2 {{d}}, {{a}}",
            "b16 : f16x2",
            lambda a, f=meaning: f(a >> 16) << 8 | f(a & 0xFFFF),
        )

        def widened(bits: int, eight: Format = eight, relu: bool = bool(relu)) -> int:
            number = eight.unpack(bits)
            return 0 if relu and number is not None and number[0] else FORMATS["f16"].pack(number)

        form(
            f"cvt.rn{relu}.f16x2.{name} {{d}}, {{a}}",
            f"f16x2 : {name}",
            lambda a, f=widened: f(a >> 8) << 16 | f(a & 0xFF),
        )

# Packs: b lowest, then a, then what c held.
for kind in ("u16", "s16"):
    form(
        f"cvt.pack.sat.{kind}.s32 {{d}}, {{a}}, {{b}}",
        "b32 : s32 s32",
        lambda a, b, k=kind: narrow(clamp(a, k), "u16") << 16 | narrow(clamp(b, k), "u16"),
    )
for kind in ("u8", "s8", "u4", "s4", "u2", "s2"):
    bits = int(kind[1:])
    form(
        f"cvt.pack.sat.{kind}.s32.b32 {{d}}, {{a}}, {{b}}, {{c}}",
        "b32 : s32 s32 b32",
        lambda a, b, c, k=kind, n=bits: (
            c << 2 * n | narrow(clamp(a, k), f"u{n}") << n | narrow(clamp(b, k), f"u{n}")
        ),
    )

"""Comparisons and selections, by the order of exact numbers."""

from __future__ import annotations

from collections.abc import Callable

from exact_floats import FORMATS, order
from instruction_forms import Table

TABLE = Table("choices")
form = TABLE.add
INTEGERS = ("s16", "u16", "s32", "u32", "s64", "u64")
COMPARISONS: dict[str, Callable[[int], bool]] = {
    "eq": lambda o: o == 0,
    "ne": lambda o: o != 0,
    "lt": lambda o: o < 0,
    "le": lambda o: o <= 0,
    "gt": lambda o: o > 0,
    "ge": lambda o: o >= 0,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def compared(kind: str, name: str, ftz: bool = False) -> Callable[[int, int], bool]:
    """Whether `name` holds between two operands of a type."""
    if kind not in FORMATS:
        test = COMPARISONS[UNSIGNED.get(name, name)]
        return lambda a, b: test((a > b) - (a < b))

    def apply(a: int, b: int) -> bool:
        one = FORMATS[kind]
        if ftz:
            a, b = one.flushed(a), one.flushed(b)
        found = order(one.unpack(a), one.unpack(b))
        if name in ("num", "nan"):
            return (found is None) == (name == "nan")
        if found is None:
            return name.endswith("u")
        return COMPARISONS[name.removesuffix("u") if name not in COMPARISONS else name](found)

    return apply


def names_of(kind: str) -> list[str]:
    if kind in FORMATS:
        return [*COMPARISONS, *(f"{name}u" for name in COMPARISONS), "num", "nan"]
    if kind[0] == "b":
        return ["eq", "ne"]
    return [*COMPARISONS, *(UNSIGNED if kind[0] == "u" else ())]


for kind in (*INTEGERS, "b16", "b32", "b64", "f32", "f64", "f16", "bf16"):
    for name in names_of(kind):
        holds = compared(kind, name)
        form(
            f"setp.{name}.{kind} {{d}}, {{a}}, {{b}}",
            f"pred : {kind} {kind}",
            lambda a, b, f=holds: int(f(a, b)),
        )
    holds = compared(kind, "ne")
    both = "" if kind in ("f16", "bf16") else "|{e}"  # these compare into one predicate
    preds = "pred pred" if both else "pred"
    for boolean, join in (("and", "__and__"), ("or", "__or__"), ("xor", "__xor__")):
        for negated in ("", "!"):

            def combined(a, b, c, f=holds, j=join, n=negated, two=both):  # type: ignore[no-untyped-def]
                first, second = (
                    getattr(int(f(a, b) == wanted), j)(1 - c if n else c) for wanted in (True, False)
                )
                return (first, second) if two else first

            form(
                f"setp.ne.{boolean}.{kind} {{d}}{both}, {{a}}, {{b}}, {negated}{{c}}",
                f"{preds} : {kind} {kind} pred",
                combined,
            )
    if both:
        holds = compared(kind, "eq")
        form(
            f"setp.eq.{kind} {{d}}|{{e}}, {{a}}, {{b}}",
            f"pred pred : {kind} {kind}",
            lambda a, b, f=holds: (int(f(a, b)), int(not f(a, b))),
        )
for name in names_of("f32"):
    holds = compared("f32", name, ftz=True)
    form(f"setp.{name}.ftz.f32 {{d}}, {{a}}, {{b}}", "pred : f32 f32", lambda a, b, f=holds: int(f(a, b)))
for kind in ("f16", "bf16"):
    for name in ("lt", "neu", "geu", "num"):
        two = compared(kind, name)
        form(
            f"setp.{name}.{kind}x2 {{d}}|{{e}}, {{a}}, {{b}}",
            f"pred pred : {kind}x2 {kind}x2",
            lambda a, b, f=two: (int(f(a & 0xFFFF, b & 0xFFFF)), int(f(a >> 16, b >> 16))),
        )
        form(
            f"setp.{name}.or.{kind}x2 {{d}}|{{e}}, {{a}}, {{b}}, {{c}}",
            f"pred pred : {kind}x2 {kind}x2 pred",
            lambda a, b, c, f=two: (int(f(a & 0xFFFF, b & 0xFFFF)) | c, int(f(a >> 16, b >> 16)) | c),
        )
holds = compared("f16", "gt", ftz=True)
form("setp.gt.ftz.f16 {d}, {a}, {b}", "pred : f16 f16", lambda a, b, f=holds: int(f(a, b)))

# set: all ones or 1.0.
ONE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}
for kind in (*INTEGERS, "b32", "f32", "f64", "f16"):
    name = "ne" if kind[0] == "b" else "le"
    holds = compared(kind, name)
    for result in ("u32", "s32") if kind == "f16" else ("u32", "s32", "f32"):
        ones = ONE.get(result, -1)
        form(
            f"set.{name}.{result}.{kind} {{d}}, {{a}}, {{b}}",
            f"{result} : {kind} {kind}",
            lambda a, b, f=holds, ones=ones: ones if f(a, b) else 0,
        )
    form(
        f"set.{name}.xor.u32.{kind} {{d}}, {{a}}, {{b}}, !{{c}}",
        f"u32 : {kind} {kind} pred",
        lambda a, b, c, f=holds: -(int(f(a, b)) ^ 1 - c),
    )
holds = compared("f32", "ltu", ftz=True)
form(
    "set.ltu.and.ftz.f32.f32 {d}, {a}, {b}, {c}",
    "f32 : f32 f32 pred",
    lambda a, b, c, f=holds: ONE["f32"] if f(a, b) and c else 0,
)
for kind in ("f16", "bf16"):
    for name in ("lt", "gtu"):
        holds = compared(kind, name)
        for result, value in ((kind, ONE[kind]), ("u16", 0xFFFF), ("s16", 0xFFFF), ("u32", -1)):
            form(
                f"set.{name}.{result}.{kind} {{d}}, {{a}}, {{b}}",
                f"{result} : {kind} {kind}",
                lambda a, b, f=holds, v=value: v if f(a, b) else 0,
            )
        for result, value in ((f"{kind}x2", ONE[kind]), ("u32", 0xFFFF), ("s32", 0xFFFF)):
            form(
                f"set.{name}.{result}.{kind}x2 {{d}}, {{a}}, {{b}}",
                f"b32 : {kind}x2 {kind}x2",
                lambda a, b, f=holds, v=value: (
                    (v if f(a & 0xFFFF, b & 0xFFFF) else 0) | (v if f(a >> 16, b >> 16) else 0) << 16
                ),
            )

for kind in ("b16", "b32", "b64", *INTEGERS, "f32", "f64"):
    form(
        f"selp.{kind} {{d}}, {{a}}, {{b}}, {{c}}",
        f"{kind} : {kind} {kind} pred",
        lambda a, b, c: a if c else b,
    )
    form(
        f"slct.{kind}.s32 {{d}}, {{a}}, {{b}}, {{c}}",
        f"{kind} : {kind} {kind} s32",
        lambda a, b, c: a if c >= 0 else b,
    )
    for ftz in ("", ".ftz"):
        holds = compared("f32", "ge", ftz=bool(ftz))
        form(
            f"slct{ftz}.{kind}.f32 {{d}}, {{a}}, {{b}}, {{c}}",
            f"{kind} : {kind} {kind} f32",
            lambda a, b, c, f=holds: a if f(c, 0) else b,
        )

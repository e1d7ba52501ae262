"""Integer arithmetic, in Python's integers."""

from __future__ import annotations

from collections.abc import Callable

from instruction_forms import Table

TABLE = Table("integer")
form = TABLE.add
TYPES = ("s16", "u16", "s32", "u32", "s64", "u64")


def clamp(value: int, kind: str) -> int:
    bits = int(kind[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    return max(low, min(high, value))


def quotient(a: int, b: int) -> int:
    """Truncated; all ones for a zero divisor, which is what the hardware gives."""
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return a if b == 0 else (abs(a) % abs(b)) * (1 if a >= 0 else -1)


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


for kind in TYPES:
    bits = int(kind[1:])
    for name, function in (
        ("add", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("mul.lo", lambda a, b: a * b),
        ("mul.hi", lambda a, b, n=bits: a * b >> n),
        ("div", quotient),
        ("rem", remainder),
        ("min", min),
        ("max", max),
    ):
        form(f"{name}.{kind} {{d}}, {{a}}, {{b}}", f"{kind} : {kind} {kind}", function)
    three = f"{kind} : {kind} {kind} {kind}"
    form(f"mad.lo.{kind} {{d}}, {{a}}, {{b}}, {{c}}", three, lambda a, b, c: a * b + c)
    form(f"mad.hi.{kind} {{d}}, {{a}}, {{b}}, {{c}}", three, lambda a, b, c, n=bits: (a * b >> n) + c)
    form(
        f"sad.{kind} {{d}}, {{a}}, {{b}}, {{c}}",
        f"u{bits} : {kind} {kind} u{bits}",
        lambda a, b, c: c + abs(a - b),
    )
    if bits < 64:
        wide = f"{kind[0]}{2 * bits}"
        form(f"mul.wide.{kind} {{d}}, {{a}}, {{b}}", f"{wide} : {kind} {kind}", lambda a, b: a * b)
        form(
            f"mad.wide.{kind} {{d}}, {{a}}, {{b}}, {{c}}",
            f"{wide} : {kind} {kind} {wide}",
            lambda a, b, c: a * b + c,
        )
    if kind[0] == "s":
        form(f"neg.{kind} {{d}}, {{a}}", f"{kind} : {kind}", lambda a: -a)
        form(f"abs.{kind} {{d}}, {{a}}", f"{kind} : {kind}", abs)

form("add.sat.s32 {d}, {a}, {b}", "s32 : s32 s32", lambda a, b: clamp(a + b, "s32"))
form("sub.sat.s32 {d}, {a}, {b}", "s32 : s32 s32", lambda a, b: clamp(a - b, "s32"))
form(
    "mad.hi.sat.s32 {d}, {a}, {b}, {c}",
    "s32 : s32 s32 s32",
    lambda a, b, c: clamp((a * b >> 32) + c, "s32"),
)
for name, function in (("min", min), ("max", max)):
    form(
        f"{name}.relu.s32 {{d}}, {{a}}, {{b}}",
        "s32 : s32 s32",
        lambda a, b, f=function: max(0, f(a, b)),
    )


# Packed 16-bit integers.
def pairwise(function: Callable[[int, int], int], is_signed: bool) -> Callable[[int, int], int]:
    def part(value: int, shift: int) -> int:
        return signed(value >> shift, 16) if is_signed else value >> shift & 0xFFFF

    def apply(a: int, b: int) -> int:
        low, high = (function(part(a, shift), part(b, shift)) & 0xFFFF for shift in (0, 16))
        return high << 16 | low

    return apply


for kind in ("s16x2", "u16x2"):
    for name, function in (("add", lambda a, b: a + b), ("min", min), ("max", max)):
        form(
            f"{name}.{kind} {{d}}, {{a}}, {{b}}",
            f"b32 : {kind} {kind}",
            pairwise(function, kind[0] == "s"),
        )
for name, function in (("min", min), ("max", max)):
    form(f"{name}.s32.relu {{d}}, {{a}}, {{b}}", "s32 : s32 s32", lambda a, b, f=function: max(0, f(a, b)))
    form(
        f"{name}.s16x2.relu {{d}}, {{a}}, {{b}}",
        "b32 : s16x2 s16x2",
        pairwise(lambda a, b, f=function: max(0, f(a, b)), True),
    )
    form(
        f"{name}.relu.s16x2 {{d}}, {{a}}, {{b}}",
        "b32 : s16x2 s16x2",
        pairwise(lambda a, b, f=function: max(0, f(a, b)), True),
    )

# 24 bits of each factor.
for kind in ("s32", "u32"):

    def narrow(value: int, is_signed: bool = kind[0] == "s") -> int:
        return signed(value, 24) if is_signed else value & 0xFFFFFF

    for part, shift in (("lo", 0), ("hi", 16)):
        form(
            f"mul24.{part}.{kind} {{d}}, {{a}}, {{b}}",
            f"{kind} : {kind} {kind}",
            lambda a, b, n=shift, f=narrow: f(a) * f(b) >> n,
        )
        form(
            f"mad24.{part}.{kind} {{d}}, {{a}}, {{b}}, {{c}}",
            f"{kind} : {kind} {kind} {kind}",
            lambda a, b, c, n=shift, f=narrow: signed(f(a) * f(b) >> n, 32) + c,
        )
form(
    "mad24.hi.sat.s32 {d}, {a}, {b}, {c}",
    "s32 : s32 s32 s32",
    lambda a, b, c: clamp(signed(signed(a, 24) * signed(b, 24) >> 16, 32) + c, "s32"),
)


# Dot products of bytes.
def pieces(value: int, bits: int, is_signed: bool) -> list[int]:
    parts = [value >> shift & (1 << bits) - 1 for shift in range(0, 32, bits)]
    return [signed(part, bits) for part in parts] if is_signed else parts


for first in ("u32", "s32"):
    for second in ("u32", "s32"):
        result = "s32" if "s32" in (first, second) else "u32"
        types = f"{result} : b32 b32 {result}"
        signs = (first == "s32", second == "s32")
        form(
            f"dp4a.{first}.{second} {{d}}, {{a}}, {{b}}, {{c}}",
            types,
            lambda a, b, c, s=signs: (
                c + sum(x * y for x, y in zip(pieces(a, 8, s[0]), pieces(b, 8, s[1]), strict=True))
            ),
        )
        for half, start in (("lo", 0), ("hi", 2)):
            form(
                f"dp2a.{half}.{first}.{second} {{d}}, {{a}}, {{b}}, {{c}}",
                types,
                lambda a, b, c, s=signs, n=start: (
                    c
                    + sum(
                        x * y for x, y in zip(pieces(a, 16, s[0]), pieces(b, 8, s[1])[n : n + 2], strict=True)
                    )
                ),
            )

# Extended precision: the flag that one instruction leaves is what the next takes.
for bits in (32, 64):
    mask = (1 << bits) - 1
    for sign in "us":
        kind = f"{sign}{bits}"
        four = f"b{bits} b{bits} : " + " ".join([f"b{bits}"] * 4)
        form(
            f"add.cc.{kind} {{d}}, {{a}}, {{b}}; addc.{kind} {{e}}, {{c}}, {{f}}",
            four,
            lambda a, b, c, f, n=bits: (a + b, c + f + (a + b >> n)),
        )
        form(
            f"sub.cc.{kind} {{d}}, {{a}}, {{b}}; subc.{kind} {{e}}, {{c}}, {{f}}",
            four,
            lambda a, b, c, f: (a - b, c - f - (a < b)),
        )
        temporary = "%w1" if bits == 32 else "%v3"
        form(
            f"add.cc.{kind} {temporary}, {{a}}, {{b}}; addc.cc.{kind} {{d}}, {{c}}, {{f}}; "
            f"addc.{kind} {{e}}, 0, 0",
            four,
            lambda a, b, c, f, n=bits: (c + f + (a + b >> n), c + f + (a + b >> n) >> n),
        )
        form(
            f"sub.cc.{kind} {temporary}, {{a}}, {{b}}; subc.cc.{kind} {{d}}, {{c}}, {{f}}; "
            f"subc.{kind} {{e}}, 0, 0",
            four,
            lambda a, b, c, f: (c - f - (a < b), -(c - f - (a < b) < 0)),
        )
        three = f"b{bits} b{bits} : {kind} {kind} b{bits}"
        form(
            f"mad.lo.cc.{kind} {{d}}, {{a}}, {{b}}, {{c}}; madc.hi.{kind} {{e}}, {{a}}, {{b}}, 0",
            three,
            lambda a, b, c, n=bits, m=mask: (a * b + c, (a * b >> n) + ((a * b & m) + c >> n)),
        )
        form(
            f"mad.hi.cc.{kind} {{d}}, {{a}}, {{b}}, {{c}}; "
            f"madc.lo.cc.{kind} {temporary}, {{a}}, {{b}}, {{c}}; addc.{kind} {{e}}, 0, 0",
            three,
            lambda a, b, c, n=bits, m=mask: (
                (a * b >> n) + c,
                (a * b & m) + c + (((a * b >> n) & m) + c >> n) >> n,
            ),
        )

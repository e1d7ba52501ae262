"""Logic, shifts, bit fields, permutations, moves: bit by bit in Python's integers."""

from __future__ import annotations

from instruction_forms import Table, small

TABLE = Table("bits")
form = TABLE.add

for bits in (16, 32, 64):
    kind = f"b{bits}"
    two = f"{kind} : {kind} {kind}"
    form(f"and.{kind} {{d}}, {{a}}, {{b}}", two, lambda a, b: a & b)
    form(f"or.{kind} {{d}}, {{a}}, {{b}}", two, lambda a, b: a | b)
    form(f"xor.{kind} {{d}}, {{a}}, {{b}}", two, lambda a, b: a ^ b)
    form(f"not.{kind} {{d}}, {{a}}", f"{kind} : {kind}", lambda a: ~a)
    form(f"cnot.{kind} {{d}}, {{a}}", f"{kind} : {kind}", lambda a: int(a == 0))
    for sign in "bus":
        typed = f"{sign}{bits}"
        if sign == "b":
            form(
                f"shl.{typed} {{d}}, {{a}}, {{b}}",
                f"{typed} : {typed} u32",
                lambda a, b: 0 if b >= 64 else a << b,
                values=small,
            )
        form(
            f"shr.{typed} {{d}}, {{a}}, {{b}}",
            f"{typed} : {typed} u32",
            lambda a, b: a >> min(b, 64),
            values=small,
        )
form("and.pred {d}, {a}, {b}", "pred : pred pred", lambda a, b: a & b)
form("or.pred {d}, {a}, {b}", "pred : pred pred", lambda a, b: a | b)
form("xor.pred {d}, {a}, {b}", "pred : pred pred", lambda a, b: a ^ b)
form("not.pred {d}, {a}", "pred : pred", lambda a: 1 - a)

# lop3: bit i of the table is the result for the three bits of i, the first operand's the highest.
for table in (0x00, 0xFF, 0x96, 0xEA, 0xCA, 0x1B, 0xFE, 0x01, 0x80, 0xF0, 0x3C, 0x69):

    def look_up(a: int, b: int, c: int, table: int = table) -> int:
        bits = range(32)
        return sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i for i in bits)

    form(f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table:#x}", "b32 : b32 b32 b32", look_up)
    if table in (0x96, 0x80, 0x00):
        form(
            f"lop3.or.b32 {{d}}|{{e}}, {{a}}, {{b}}, {{c}}, {table:#x}, {{f}}",
            "b32 pred : b32 b32 b32 pred",
            lambda a, b, c, f, g=look_up: (g(a, b, c), int(g(a, b, c) != 0) | f),
        )
        form(
            f"lop3.and.b32 _|{{d}}, {{a}}, {{b}}, {{c}}, {table:#x}, {{f}}",
            "pred : b32 b32 b32 pred",
            lambda a, b, c, f, g=look_up: int(g(a, b, c) != 0) & f,
        )

for mode in ("wrap", "clamp"):

    def amount(count: int, wrap: bool = mode == "wrap") -> int:
        return count & 31 if wrap else min(count, 32)

    types = "b32 : b32 b32 u32"
    form(
        f"shf.l.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}",
        types,
        lambda a, b, c, f=amount: (b << 32 | a) << f(c) >> 32,
        values=small,
    )
    form(
        f"shf.r.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}",
        types,
        lambda a, b, c, f=amount: (b << 32 | a) >> f(c),
        values=small,
    )
    form(
        f"bmsk.{mode}.b32 {{d}}, {{a}}, {{b}}",
        "b32 : u32 u32",
        (lambda a, b: sum(1 << i for i in range(a & 31, min(32, (a & 31) + (b & 31)))))
        if mode == "wrap"
        else (lambda a, b: sum(1 << i for i in range(min(a, 32), min(32, a + b)))),
        values=small,
    )
    for sign in "us":

        def extend(a: int, b: int, wrap: bool = mode == "wrap", is_signed: bool = sign == "s") -> int:
            if not wrap and b >= 32:
                return a
            b &= 31
            low = a & (1 << b) - 1
            return low - (1 << b) if is_signed and b and low >> (b - 1) else low

        form(f"szext.{mode}.{sign}32 {{d}}, {{a}}, {{b}}", f"{sign}32 : {sign}32 b32", extend, values=small)

for bits in (32, 64):
    kind = f"b{bits}"
    form(f"popc.{kind} {{d}}, {{a}}", f"u32 : {kind}", lambda a: a.bit_count())
    form(f"clz.{kind} {{d}}, {{a}}", f"u32 : {kind}", lambda a, n=bits: n - a.bit_length())
    form(f"brev.{kind} {{d}}, {{a}}", f"{kind} : {kind}", lambda a, n=bits: int(f"{a:0{n}b}"[::-1], 2))
    for sign in "us":
        typed = f"{sign}{bits}"

        def highest(a: int) -> int:
            a = ~a if a < 0 else a
            return a.bit_length() - 1 if a else 0xFFFFFFFF

        form(f"bfind.{typed} {{d}}, {{a}}", f"u32 : {typed}", highest)
        form(
            f"bfind.shiftamt.{typed} {{d}}, {{a}}",
            f"u32 : {typed}",
            lambda a, n=bits, f=highest: f(a) if f(a) > 64 else n - 1 - f(a),
        )

        def field(
            value: int, position: int, length: int, n: int = bits, is_signed: bool = sign == "s"
        ) -> int:
            position, length = position & 0xFF, length & 0xFF
            raw = value & (1 << n) - 1
            top = min(position + length - 1, n - 1)
            fill = raw >> top & 1 if is_signed and length else 0
            inside = [i < length and position + i < n for i in range(n)]
            return sum((raw >> position + i & 1 if inside[i] else fill) << i for i in range(n))

        form(
            f"bfe.{typed} {{d}}, {{a}}, {{b}}, {{c}}",
            f"{typed} : {typed} u32 b32",
            field,
            values=small,
        )

    def insert(a: int, b: int, position: int, length: int, n: int = bits) -> int:
        for i in range(min(length & 0xFF, n)):
            place = (position & 0xFF) + i
            if place < n:
                b = b & ~(1 << place) | (a >> i & 1) << place
        return b

    form(
        f"bfi.{kind} {{d}}, {{a}}, {{b}}, {{c}}, {{f}}",
        f"{kind} : {kind} {kind} u32 b32",
        insert,
        values=small,
    )


def find(mask: int, base: int, offset: int) -> int:
    places = [i for i in range(32) if mask >> i & 1]
    if offset == 0:
        return base if base in places else 0xFFFFFFFF
    ahead = [i for i in places if i >= base] if offset > 0 else [i for i in reversed(places) if i <= base]
    return ahead[abs(offset) - 1] if abs(offset) <= len(ahead) else 0xFFFFFFFF


form(
    "and.b32 %w1, {b}, 31; fns.b32 {d}, {a}, %w1, {c}",
    "b32 : b32 b32 s32",
    lambda a, b, c: find(a, b & 31, c),
)
form(
    "and.b32 %w1, {b}, 31; and.b32 %w2, {c}, 15; sub.s32 %w2, %w2, 8; fns.b32 {d}, {a}, %w1, %w2",
    "b32 : b32 b32 b32",
    lambda a, b, c: find(a, b & 31, (c & 15) - 8),
)


# prmt: eight bytes, of which a selector takes four.
def permute(a: int, b: int, selector: int) -> int:
    data = (a | b << 32).to_bytes(8, "little")
    result = 0
    for index in range(4):
        nibble = selector >> 4 * index & 15
        byte = data[nibble & 7]
        result |= ((0xFF if byte & 0x80 else 0) if nibble & 8 else byte) << 8 * index
    return result


def take(*places: int) -> int:
    """A selector; places[0] is the lowest byte."""
    return sum(place << 4 * index for index, place in enumerate(places))


MODES = {
    "f4e": lambda c: take(*(c + i for i in range(4))),
    "b4e": lambda c: take(*((c - i) % 8 for i in range(4))),
    "rc8": lambda c: take(c, c, c, c),
    "ecl": lambda c: take(*(max(i, c) for i in range(4))),
    "ecr": lambda c: take(*(min(i, c) for i in range(4))),
    "rc16": lambda c: take(*(2 * (c & 1) + (i & 1) for i in range(4))),
}
form("prmt.b32 {d}, {a}, {b}, {c}", "b32 : b32 b32 b32", permute)
for mode, selector in MODES.items():
    form(
        f"prmt.b32.{mode} {{d}}, {{a}}, {{b}}, {{c}}",
        "b32 : b32 b32 b32",
        lambda a, b, c, f=selector: permute(a, b, f(c & 3)),
    )

# Moves, and registers taken apart and put together.
for kind in ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"):
    form(f"mov.{kind} {{d}}, {{a}}", f"{kind} : {kind}", lambda a: a)
form("mov.pred {d}, {a}", "pred : pred", lambda a: a)
form("mov.b32 {d}, {{{a}, {b}}}", "b32 : b16 b16", lambda a, b: a | b << 16)
form("mov.b64 {d}, {{{a}, {b}}}", "b64 : b32 b32", lambda a, b: a | b << 32)
form(
    "mov.b64 {d}, {{{a}, {b}, {c}, {f}}}",
    "b64 : b16 b16 b16 b16",
    lambda a, b, c, f: a | b << 16 | c << 32 | f << 48,
)
form("mov.b32 {{{d}, {e}}}, {a}", "b16 b16 : b32", lambda a: (a, a >> 16))
form("mov.b64 {{{d}, {e}}}, {a}", "b32 b32 : b64", lambda a: (a, a >> 32))
form("mov.b64 {{_, {d}}}, {a}", "b32 : b64", lambda a: a >> 32)
form("mov.b64 {{_, {d}, _, {e}}}, {a}", "b16 b16 : b64", lambda a: (a >> 16, a >> 48))

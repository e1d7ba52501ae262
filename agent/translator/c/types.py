"""C's arithmetic types as the translator needs them: names, sizes and the usual conversions (LP64)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scalar:
    """An arithmetic type. `name` is what CUDA C++ calls it."""

    name: str

    @property
    def is_float(self) -> bool:
        return self.name in ("float", "double")

    @property
    def is_integer(self) -> bool:
        return self.name in _INTEGERS

    @property
    def size(self) -> int:
        """Bytes."""
        return {"float": 4, "double": 8}.get(self.name) or _INTEGERS[self.name][0]

    @property
    def signed(self) -> bool:
        return self.is_float or _INTEGERS[self.name][1]


#: name: (bytes, signed)
_INTEGERS: dict[str, tuple[int, bool]] = {
    "bool": (1, False),
    "char": (1, True),
    "signed char": (1, True),
    "unsigned char": (1, False),
    "short": (2, True),
    "unsigned short": (2, False),
    "int": (4, True),
    "unsigned int": (4, False),
    "long": (8, True),
    "unsigned long": (8, False),
    "long long": (8, True),
    "unsigned long long": (8, False),
}

INT = Scalar("int")
UINT = Scalar("unsigned int")
LONG = Scalar("long")
SIZE = Scalar("unsigned long")
FLOAT = Scalar("float")
DOUBLE = Scalar("double")
BOOL = Scalar("bool")
VOID = Scalar("void")

#: Names that headers would have defined.
WELL_KNOWN: dict[str, Scalar] = {
    "int8_t": Scalar("signed char"),
    "uint8_t": Scalar("unsigned char"),
    "int16_t": Scalar("short"),
    "uint16_t": Scalar("unsigned short"),
    "int32_t": INT,
    "uint32_t": UINT,
    "int64_t": LONG,
    "uint64_t": SIZE,
    "size_t": SIZE,
    "ssize_t": LONG,
    "ptrdiff_t": LONG,
    "intptr_t": LONG,
    "uintptr_t": SIZE,
    "_Bool": BOOL,
    "bool": BOOL,
    "__int64_t": LONG,
    "__uint64_t": SIZE,
    "__int32_t": INT,
    "__uint32_t": UINT,
    "__int16_t": Scalar("short"),
    "__uint16_t": Scalar("unsigned short"),
    "__int8_t": Scalar("signed char"),
    "__uint8_t": Scalar("unsigned char"),
    "float_t": FLOAT,
    "double_t": DOUBLE,
}


def from_words(words: list[str]) -> Scalar | None:
    """["unsigned", "long"] -> unsigned long. None for what is no arithmetic type we know."""
    if len(words) == 1 and words[0] in WELL_KNOWN:
        return WELL_KNOWN[words[0]]
    if words == ["void"]:
        return VOID
    rest = sorted(word for word in words if word not in ("const", "volatile", "int", "signed"))
    match rest:
        case []:
            return INT
        case ["float"] | ["double"]:
            return Scalar(rest[0])
        case ["char"]:
            return Scalar("signed char" if "signed" in words else "char")
        case ["char", "unsigned"]:
            return Scalar("unsigned char")
        case ["short"] | ["long"]:
            return Scalar(rest[0])
        case ["short", "unsigned"]:
            return Scalar("unsigned short")
        case ["unsigned"]:
            return UINT
        case ["long", "unsigned"]:
            return SIZE
        case ["long", "long"]:
            return Scalar("long long")
        case ["long", "long", "unsigned"]:
            return Scalar("unsigned long long")
        case _:
            return None


def promote(kind: Scalar) -> Scalar:
    """C's integer promotion."""
    return INT if kind.is_integer and kind.size < 4 else kind


def common(left: Scalar, right: Scalar) -> Scalar:
    """C's usual arithmetic conversions."""
    for wide in (DOUBLE, FLOAT):
        if wide in (left, right):
            return wide
    left, right = promote(left), promote(right)
    if left == right:
        return left
    wider, narrower = (left, right) if left.size >= right.size else (right, left)
    if left.size == right.size:
        return left if not left.signed else right if not right.signed else wider
    if not narrower.signed and wider.signed and wider.size == narrower.size:
        return Scalar("unsigned " + wider.name)
    return wider

"""What lowerings of instructions are written with: operations on values, and the register of handlers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from sandbox.emulator.lowering.builder import BITS, FLOATS, Builder, Value, element_type
from sandbox.ptx.model import Immediate, Instruction

Handler = Callable[[Builder, Instruction], None]
HANDLERS: dict[str, Handler] = {}
PARTS: dict[str, frozenset[str]] = {}  # what may stand behind an opcode's name
# Exponent field and sign bit of each format.
_FIELDS = {
    "half": (0x7C00, 0x8000),
    "bfloat": (0x7F80, 0x8000),
    "float": (0x7F80_0000, 0x8000_0000),
    "double": (0x7FF << 52, 1 << 63),
}
ROUNDINGS = frozenset({"rm", "rp", "rz"})  # directed ones; rn is what the CPU does anyway


def handles(*names: str, parts: str = "") -> Callable[[Handler], Handler]:
    """Registers a handler. `parts`: all modifiers and types it knows; any other is refused."""

    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
            if parts:
                PARTS[name] = frozenset(parts.split())
        return handler

    return register


_TYPE = re.compile(r"(?:[busf]\d+|bf16|f16|tf32|pred)(?:x2)?|e\dm\dx2")


def checked(build: Builder, instruction: Instruction) -> Instruction:
    """An instruction whose modifiers are all known, its types last.

    A modifier that nobody looks at would be ignored silently. ptxas takes modifiers in any order, and CUDA's
    own headers write `min.s32.relu`.
    """
    name, *rest = instruction.parts
    known = PARTS.get(name)
    if known is None or not rest:
        return instruction
    for part in rest:
        if part not in known:
            raise build.unsupported(f"{instruction.opcode} (.{part})")
    if _TYPE.fullmatch(rest[-1]):
        return instruction
    types = [part for part in rest if _TYPE.fullmatch(part)]
    others = [part for part in rest if not _TYPE.fullmatch(part)]
    return replace(instruction, parts=(name, *others, *types))


def directed_rounding(parts: tuple[str, ...]) -> str | None:
    return next((part for part in parts if part in ROUNDINGS), None)


def flushed(build: Builder, value: Value, parts: tuple[str, ...]) -> Value:
    """`.ftz`: subnormals become zero of their sign."""
    if "ftz" not in parts or value.type not in FLOATS:
        return value
    exponent, sign = _FIELDS[value.type]
    kind = value.type
    bits = build.convert("bitcast", value, f"i{BITS[kind]}")
    field = binary(build, "and", bits, integer(build, exponent, bits.type))
    small = compare(build, "icmp eq", field, integer(build, 0, bits.type))
    kept = select(build, small, binary(build, "and", bits, integer(build, sign, bits.type)), bits)
    return build.convert("bitcast", kept, kind)


def constant(kind: str, value: int) -> Value:
    """0 or 1 as a float of element type `kind`."""
    return Value(str(0x3F80 * value) if kind == "bfloat" else f"{value}.0", kind, True)


def saturated(build: Builder, value: Value) -> Value:
    """`.sat` of floating point: clamped to [0, 1]; NaN and -0 give +0."""
    zero, one = constant(value.type, 0), constant(value.type, 1)
    low = select(build, compare(build, "fcmp ogt", value, zero), value, zero)
    return select(build, compare(build, "fcmp ogt", low, one), one, low)


def rectified(build: Builder, value: Value) -> Value:
    """`.relu`: what is not above zero becomes +0; NaN stays."""
    zero = constant(value.type, 0)
    return select(build, compare(build, "fcmp ugt", value, zero), value, zero)


def canonical(build: Builder, value: Value) -> Value:
    """Any NaN of 16 bits becomes the one that operations give."""
    nan = Value("0xH7FFF" if value.type == "half" else str(0x7FFF), value.type, True)
    return select(build, compare(build, "fcmp uno", value, value), nan, value)


def intrinsic(build: Builder, name: str, values: list[Value], extra: str = "") -> Value:
    values = build.together(*values)
    kind, scalar = values[0].type, values[0].scalar
    suffix = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(kind, kind)
    suffix = suffix if scalar else f"v32{suffix}"
    full = values[0].full_type
    flag = ", i1" if extra else ""
    types = ", ".join(full for _ in values)
    build.context.declarations[f"{name}.{suffix}"] = f"declare {full} @{name}.{suffix}({types}{flag})"
    arguments = ", ".join(f"{full} {value.text}" for value in values)
    return Value(build.op(f"call {full} @{name}.{suffix}({arguments}{extra})"), kind, scalar)


def binary(build: Builder, operation: str, first: Value, second: Value) -> Value:
    first, second = build.together(first, second)
    return Value(
        build.op(f"{operation} {first.full_type} {first.text}, {second.text}"), first.type, first.scalar
    )


def integer(build: Builder, value: int, kind: str) -> Value:
    return build.operand(Immediate(value), kind)


def compare(build: Builder, operation: str, first: Value, second: Value) -> Value:
    if first.type == "bfloat":
        first, second = (build.convert("fpext", value, "float") for value in (first, second))
    first, second = build.together(first, second)
    return Value(build.op(f"{operation} {first.full_type} {first.text}, {second.text}"), "i1", first.scalar)


def select(build: Builder, condition: Value, first: Value, second: Value) -> Value:
    if condition.type == "mask":
        condition = Value(build.as_lanes(condition), "i1")
    condition, first, second = build.together(condition, first, second)
    text = build.op(
        f"select {condition.full_type} {condition.text}, {first.full_type} {first.text}, "
        f"{second.full_type} {second.text}"
    )
    return Value(text, first.type, first.scalar)


def kind_of(parts: tuple[str, ...]) -> str:
    return element_type(parts[-1])


def signed(parts: tuple[str, ...]) -> bool:
    return parts[-1][0] == "s"


def sources_of(build: Builder, instruction: Instruction, kind: str, count: int) -> list[Value]:
    return [build.operand(operand, kind) for operand in instruction.operands[1 : 1 + count]]


def packed(parts: tuple[str, ...]) -> bool:
    return parts[-1].endswith("x2")


PACKED = {
    "f16x2": "half",
    "bf16x2": "bfloat",
    "f32x2": "float",
    "s16x2": "i16",
    "u16x2": "i16",
}


def unpacked(build: Builder, value: Value, kind: str) -> list[Value]:
    """The lower and the upper half of a packed value as two of element type `kind`."""
    bits = BITS[kind]
    pieces = [value, binary(build, "lshr", value, integer(build, bits, value.type))]
    return [build.convert("bitcast", build.convert("trunc", piece, f"i{bits}"), kind) for piece in pieces]


def repacked(build: Builder, low: Value, high: Value) -> Value:
    bits = BITS[low.type]
    wide = f"i{2 * bits}"
    halves = [build.convert("zext", build.convert("bitcast", half, f"i{bits}"), wide) for half in (low, high)]
    return binary(build, "or", halves[0], binary(build, "shl", halves[1], integer(build, bits, wide)))


def by_halves(
    build: Builder, instruction: Instruction, count: int, apply: Callable[[list[Value]], Value]
) -> None:
    """The same on both halves of `count` packed operands."""
    kind = PACKED[instruction.parts[-1]]
    sources = sources_of(build, instruction, f"i{2 * BITS[kind]}", count)
    columns = [unpacked(build, source, kind) for source in sources]
    low, high = (apply([column[half] for column in columns]) for half in (0, 1))
    build.write(instruction.operands[0], repacked(build, low, high))

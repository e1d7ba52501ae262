"""Lowering of comparisons, selections, moves and address conversions."""

from __future__ import annotations

from sandbox.emulator.lowering.abi import LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW
from sandbox.emulator.lowering.arithmetic import (
    binary,
    compare,
    flushed,
    handles,
    integer,
    kind_of,
    packed,
    select,
    signed,
    sources_of,
)
from sandbox.emulator.lowering.bits import combine
from sandbox.emulator.lowering.builder import BITS, FLOATS, Builder, Value, element_type
from sandbox.ptx.model import Immediate, Instruction, Operand, Pair, Vector

_INTEGER_COMPARISONS = {
    "eq": ("eq", "eq"),
    "ne": ("ne", "ne"),
    "lt": ("slt", "ult"),
    "le": ("sle", "ule"),
    "gt": ("sgt", "ugt"),
    "ge": ("sge", "uge"),
    "lo": ("ult", "ult"),
    "ls": ("ule", "ule"),
    "hi": ("ugt", "ugt"),
    "hs": ("uge", "uge"),
}
_FLOAT_COMPARISONS = {
    "eq": "oeq",
    "ne": "one",
    "lt": "olt",
    "le": "ole",
    "gt": "ogt",
    "ge": "oge",
    "equ": "ueq",
    "neu": "une",
    "ltu": "ult",
    "leu": "ule",
    "gtu": "ugt",
    "geu": "uge",
    "num": "ord",
    "nan": "uno",
}


def comparison(build: Builder, parts: tuple[str, ...], first: Operand, second: Operand) -> Value:
    kind = kind_of(parts)
    values = [flushed(build, build.operand(operand, kind), parts) for operand in (first, second)]
    if kind in FLOATS:
        return compare(build, f"fcmp {_FLOAT_COMPARISONS[parts[1]]}", *values)
    return compare(build, f"icmp {_INTEGER_COMPARISONS[parts[1]][0 if signed(parts) else 1]}", *values)


@handles("setp")
def set_predicate(build: Builder, instruction: Instruction) -> None:
    parts, operands = instruction.parts, instruction.operands
    if packed(parts):
        raise build.unsupported(instruction.opcode)
    result = comparison(build, parts, operands[1], operands[2])
    boolean = next((part for part in parts[2:] if part in ("and", "or", "xor")), None)
    inverse: Value | None = None
    target = operands[0]
    if isinstance(target, Pair) and target.second is not None:
        inverse = combine(build, "xor", result, Value("true", "i1", True))
    if boolean is not None:
        third = build.operand(operands[3], "i1")
        result = combine(build, boolean, result, third)
        inverse = combine(build, boolean, inverse, third) if inverse is not None else None
    if isinstance(target, Pair):
        build.write(target.first, result)
        if inverse is not None:
            build.write(target.second, inverse)
    else:
        build.write(target, result)


@handles("set")
def set_value(build: Builder, instruction: Instruction) -> None:
    """set.cmp.dtype.stype: all ones (or 1.0) where the comparison holds."""
    parts = instruction.parts
    if len(instruction.operands) != 3 or packed(parts):
        raise build.unsupported(instruction.opcode)
    kind = element_type(parts[-2])
    result = comparison(build, parts, instruction.operands[1], instruction.operands[2])
    if kind in FLOATS:
        build.write(
            instruction.operands[0],
            select(build, result, Value("1.0", kind, True), Value("0.0", kind, True)),
        )
    else:
        build.write(
            instruction.operands[0], select(build, result, integer(build, -1, kind), integer(build, 0, kind))
        )


@handles("selp")
def select_by_predicate(build: Builder, instruction: Instruction) -> None:
    kind = kind_of(instruction.parts)
    first, second = sources_of(build, instruction, kind, 2)
    build.write(
        instruction.operands[0],
        select(build, build.operand(instruction.operands[3], "i1"), first, second),
    )


@handles("slct")
def select_by_sign(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    kind, test = element_type(parts[-2]), kind_of(parts)
    first, second = sources_of(build, instruction, kind, 2)
    third = build.operand(instruction.operands[3], test)
    operation = "fcmp oge" if test in FLOATS else "icmp sge"
    zero = Value("0.0", test, True) if test in FLOATS else integer(build, 0, test)
    build.write(instruction.operands[0], select(build, compare(build, operation, third, zero), first, second))


# Moves --------------------------------------------------------------------------------------------------


@handles("mov")
def move(build: Builder, instruction: Instruction) -> None:
    target, source = instruction.operands
    kind = kind_of(instruction.parts)
    if isinstance(source, Vector):
        build.write(target, _packed_value(build, source, kind))
    elif isinstance(target, Vector):
        _unpack(build, target, build.operand(source, kind))
    elif kind == "i1" and isinstance(source, Immediate):
        build.write(target, Value("true" if source.value else "false", "i1", True))
    else:
        build.write(target, build.operand(source, kind))


def _packed_value(build: Builder, source: Vector, kind: str) -> Value:
    part = BITS[kind] // len(source.items)
    result: Value | None = None
    for index, item in enumerate(source.items):
        piece = build.convert("zext", build.operand(item, f"i{part}"), kind)
        if index:
            piece = binary(build, "shl", piece, integer(build, index * part, kind))
        result = piece if result is None else binary(build, "or", result, piece)
    assert result is not None
    return result


def _unpack(build: Builder, target: Vector, value: Value) -> None:
    part = BITS[value.type] // len(target.items)
    if value.type in FLOATS:
        value = build.convert("bitcast", build.splat(value), f"i{BITS[value.type]}")
    for index, item in enumerate(target.items):
        if item is None:
            continue
        moved = value
        if index:
            moved = binary(build, "lshr", value, integer(build, index * part, value.type))
        build.write(item, build.convert("trunc", moved, f"i{part}"))


@handles("cvta")
def convert_address(build: Builder, instruction: Instruction) -> None:
    """Between a state space and generic addresses: a window a space (abi.py); device memory is its own."""
    parts = instruction.parts
    kind = kind_of(parts)
    value = build.operand(instruction.operands[1], kind)
    window = 0
    if "shared" in parts:
        window = SHARED_WINDOW
    elif "local" in parts:
        window = LOCAL_WINDOW
    elif "param" in parts:
        window = PARAMETER_WINDOW
    if window:
        value = binary(build, "sub" if "to" in parts else "add", value, integer(build, window, kind))
    build.write(instruction.operands[0], value)

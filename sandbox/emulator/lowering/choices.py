"""Lowering of comparisons, selections, moves and address conversions."""

from __future__ import annotations

from sandbox.emulator.lowering.abi import LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW
from sandbox.emulator.lowering.arithmetic import (
    PACKED,
    binary,
    compare,
    constant,
    flushed,
    handles,
    integer,
    kind_of,
    packed,
    repacked,
    select,
    signed,
    sources_of,
    unpacked,
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
_BOOLEANS = ("and", "or", "xor")
_TYPES = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"
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
_COMPARED = " ".join(
    (*_INTEGER_COMPARISONS, *_FLOAT_COMPARISONS, *_BOOLEANS, "ftz", _TYPES, "f16", "bf16", "f16x2", "bf16x2")
)


def comparison(build: Builder, parts: tuple[str, ...], first: Operand, second: Operand) -> Value:
    kind = kind_of(parts)
    return compared(build, parts, [build.operand(operand, kind) for operand in (first, second)])


def compared(build: Builder, parts: tuple[str, ...], values: list[Value]) -> Value:
    values = [flushed(build, value, parts) for value in values]
    if values[0].type in FLOATS:
        return compare(build, f"fcmp {_FLOAT_COMPARISONS[parts[1]]}", *values)
    return compare(build, f"icmp {_INTEGER_COMPARISONS[parts[1]][0 if signed(parts) else 1]}", *values)


def halves_compared(build: Builder, parts: tuple[str, ...], first: Operand, second: Operand) -> list[Value]:
    """The comparisons of the lower and of the upper halves of two packed operands."""
    kind = PACKED[parts[-1]]
    columns = [unpacked(build, build.operand(operand, "i32"), kind) for operand in (first, second)]
    return [compared(build, parts, [column[half] for column in columns]) for half in (0, 1)]


def _with_boolean(build: Builder, instruction: Instruction, result: Value) -> Value:
    boolean = next((part for part in instruction.parts[2:] if part in _BOOLEANS), None)
    if boolean is None:
        return result
    return combine(build, boolean, result, build.operand(instruction.operands[3], "i1"))


@handles("setp", parts=_COMPARED)
def set_predicate(build: Builder, instruction: Instruction) -> None:
    """p|q: the comparison and its opposite, or those of the two halves of packed operands."""
    parts, (target, first, second, *_) = instruction.parts, instruction.operands
    if packed(parts):
        results = halves_compared(build, parts, first, second)
    else:
        results = [comparison(build, parts, first, second)]
        if isinstance(target, Pair):
            results.append(combine(build, "xor", results[0], Value("true", "i1", True)))
    results = [_with_boolean(build, instruction, result) for result in results]
    targets = (target.first, target.second) if isinstance(target, Pair) else (target,)
    for one, result in zip(targets, results, strict=False):
        build.write(one, result)


@handles("set", parts=_COMPARED)
def set_value(build: Builder, instruction: Instruction) -> None:
    """set.cmp.dtype.stype: all ones (or 1.0) where the comparison holds."""
    parts = instruction.parts
    target, first, second, *_ = instruction.operands
    name = parts[-2]
    if packed(parts):
        kind = PACKED.get(name, "i16")
        low, high = (
            _ones(build, _with_boolean(build, instruction, result), kind)
            for result in halves_compared(build, parts, first, second)
        )
        build.write(target, repacked(build, low, high))
        return
    result = _with_boolean(build, instruction, comparison(build, parts, first, second))
    build.write(target, _ones(build, result, element_type(name)))


def _ones(build: Builder, condition: Value, kind: str) -> Value:
    if kind in FLOATS:
        return select(build, condition, constant(kind, 1), constant(kind, 0))
    return select(build, condition, integer(build, -1, kind), integer(build, 0, kind))


@handles("selp", parts=_TYPES)
def select_by_predicate(build: Builder, instruction: Instruction) -> None:
    kind = kind_of(instruction.parts)
    first, second = sources_of(build, instruction, kind, 2)
    build.write(
        instruction.operands[0],
        select(build, build.operand(instruction.operands[3], "i1"), first, second),
    )


@handles("slct", parts=f"ftz {_TYPES}")
def select_by_sign(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    kind, test = element_type(parts[-2]), kind_of(parts)
    first, second = sources_of(build, instruction, kind, 2)
    third = flushed(build, build.operand(instruction.operands[3], test), parts)
    operation = "fcmp oge" if test in FLOATS else "icmp sge"
    zero = constant(test, 0) if test in FLOATS else integer(build, 0, test)
    build.write(instruction.operands[0], select(build, compare(build, operation, third, zero), first, second))


# Moves --------------------------------------------------------------------------------------------------


@handles("mov", parts=f"pred b128 {_TYPES}")
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


@handles("cvta", parts="to global shared shared::cta shared::cluster local const param u32 u64")
def convert_address(build: Builder, instruction: Instruction) -> None:
    """Between a state space and generic addresses: a window a space (abi.py); device memory is its own."""
    parts = instruction.parts
    kind = kind_of(parts)
    value = build.operand(instruction.operands[1], kind)
    # A device function's parameters are copied to its local memory.
    parameter = PARAMETER_WINDOW if build.function.entry else LOCAL_WINDOW
    windows = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": parameter}
    window = sum(windows.get(part.partition("::")[0], 0) for part in parts)
    if window:
        value = binary(build, "sub" if "to" in parts else "add", value, integer(build, window, kind))
    build.write(instruction.operands[0], value)

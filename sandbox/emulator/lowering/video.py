"""Lowering of SIMD video instructions: the same on two halves or four bytes of a word.

Their elements are computed in 32 bits, where every intermediate result is exact: then they are clamped, and
either put back where they stood or added to the third operand.
"""

from __future__ import annotations

from sandbox.emulator.lowering.arithmetic import (
    binary,
    compare,
    handles,
    integer,
    intrinsic,
    sources_of,
)
from sandbox.emulator.lowering.builder import Builder, Value
from sandbox.ptx.model import Instruction, Part, Register

_COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}


@handles(
    *(f"{name}{count}" for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax") for count in (2, 4)),
    parts="u32 s32 sat add",
)
def arithmetic(build: Builder, instruction: Instruction) -> None:
    """v….dtype.atype.btype{.sat|.add} d, a, b, c."""
    parts = instruction.parts
    (result_type, *types), modifiers = _signature(build, instruction, 3)
    if len(modifiers) > 1:  # a sum is not clamped
        raise build.unsupported(instruction.opcode)
    name, bits = parts[0][:-1], _element_bits(parts)
    results = [_result(build, name, a, b) for a, b in _elements(build, instruction, types)]
    if "sat" in modifiers:
        results = [_clamped(build, result, bits, result_type) for result in results]
    _finish(build, instruction, results)


@handles("vset2", "vset4", parts=f"u32 s32 add {' '.join(_COMPARISONS)}")
def comparison(build: Builder, instruction: Instruction) -> None:
    """vset….atype.btype.cmp{.add} d, a, b, c: elements of 0 or 1."""
    types, modifiers = _signature(build, instruction, 2)
    relations = [part for part in modifiers if part in _COMPARISONS]
    if len(relations) != 1 or len(modifiers) > 2:
        raise build.unsupported(instruction.opcode)
    operation = f"icmp {_COMPARISONS[relations[0]]}"
    results = [
        build.convert("zext", compare(build, operation, a, b), "i32")
        for a, b in _elements(build, instruction, types)
    ]
    _finish(build, instruction, results)


def _signature(build: Builder, instruction: Instruction, count: int) -> tuple[list[str], list[str]]:
    """The instruction's types and its modifiers, each in their order.

    Refuses another number of types, and operands that are no registers: PTX has no constants here, and
    `%r1.b3210`, which names the elements to take or to write, is not known.
    """
    types = [part for part in instruction.parts[1:] if part in ("u32", "s32")]
    modifiers = [part for part in instruction.parts[1:] if part not in types]
    if len(types) != count or len(instruction.operands) != 4:
        raise build.unsupported(instruction.opcode)
    for operand in instruction.operands:
        if not isinstance(operand, Register):
            what = "an operand that is no register"
            if isinstance(operand, Part):
                what = f"{operand.register.name}.{operand.selector}"
            raise build.unsupported(f"{instruction.opcode} with {what}")
    return types, modifiers


def _element_bits(parts: tuple[str, ...]) -> int:
    return 32 // int(parts[0][-1])


def _elements(build: Builder, instruction: Instruction, types: list[str]) -> list[tuple[Value, Value]]:
    """Pairs of elements of a and b, the lowest first, each extended by its own operand's type."""
    bits = _element_bits(instruction.parts)
    columns = []
    for source, kind in zip(sources_of(build, instruction, "i32", 2), types, strict=True):
        shift = "ashr" if kind == "s32" else "lshr"
        column = []
        for position in range(0, 32, bits):
            top = binary(build, "shl", source, integer(build, 32 - bits - position, "i32"))
            column.append(binary(build, shift, top, integer(build, 32 - bits, "i32")))
        columns.append(column)
    return list(zip(*columns, strict=True))


def _result(build: Builder, name: str, first: Value, second: Value) -> Value:
    if name in ("vadd", "vsub"):
        return binary(build, name[1:], first, second)
    if name in ("vmin", "vmax"):
        return intrinsic(build, f"llvm.s{name[1:]}", [first, second])
    if name == "vabsdiff":
        return intrinsic(build, "llvm.abs", [binary(build, "sub", first, second)], ", i1 false")
    # vavrg: what lies between two integers goes away from zero; the sign bit is 1 where nothing is added
    total = binary(build, "add", first, second)
    negative = binary(build, "lshr", total, integer(build, 31, "i32"))
    up = binary(build, "sub", integer(build, 1, "i32"), negative)
    return binary(build, "ashr", binary(build, "add", total, up), integer(build, 1, "i32"))


def _clamped(build: Builder, value: Value, bits: int, kind: str) -> Value:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind == "s32" else (0, (1 << bits) - 1)
    below = intrinsic(build, "llvm.smin", [value, integer(build, high, "i32")])
    return intrinsic(build, "llvm.smax", [below, integer(build, low, "i32")])


def _finish(build: Builder, instruction: Instruction, results: list[Value]) -> None:
    """`.add`: c and all of them. Otherwise they are the elements of d: without a mask nothing is c's."""
    if "add" in instruction.parts:
        total = build.operand(instruction.operands[3], "i32")
        for result in results:
            total = binary(build, "add", total, result)
        build.write(instruction.operands[0], total)
        return
    bits = _element_bits(instruction.parts)
    element = integer(build, (1 << bits) - 1, "i32")
    word = binary(build, "and", results[0], element)
    for index, result in enumerate(results[1:], 1):
        moved = binary(build, "and", result, element) if (index + 1) * bits < 32 else result
        word = binary(build, "or", word, binary(build, "shl", moved, integer(build, index * bits, "i32")))
    build.write(instruction.operands[0], word)

"""Lowering of instructions on bits: logic, shifts, fields, permutations."""

from __future__ import annotations

from sandbox.emulator.lowering.arithmetic import (
    binary,
    compare,
    handles,
    integer,
    intrinsic,
    kind_of,
    select,
    signed,
    sources_of,
)
from sandbox.emulator.lowering.builder import BITS, Builder, Value
from sandbox.ptx.model import Immediate, Instruction, Pair


@handles("and", "or", "xor", "not", "cnot", parts="pred b16 b32 b64")
def logic(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    if parts[-1] == "pred":
        _predicate_logic(build, instruction)
        return
    kind = kind_of(parts)
    first = build.operand(instruction.operands[1], kind)
    if parts[0] == "not":
        result = binary(build, "xor", first, integer(build, -1, kind))
    elif parts[0] == "cnot":
        zero = compare(build, "icmp eq", first, integer(build, 0, kind))
        result = select(build, zero, integer(build, 1, kind), integer(build, 0, kind))
    else:
        result = binary(build, parts[0], first, build.operand(instruction.operands[2], kind))
    build.write(instruction.operands[0], result)


def _predicate_logic(build: Builder, instruction: Instruction) -> None:
    values = [build.operand(operand, "i1") for operand in instruction.operands[1:]]
    if instruction.parts[0] == "not":
        values.append(Value("true", "i1", True))
    name = "xor" if instruction.parts[0] == "not" else instruction.parts[0]
    build.write(instruction.operands[0], combine(build, name, values[0], values[1]))


def combine(build: Builder, name: str, first: Value, second: Value) -> Value:
    """and, or, xor of two predicates."""
    if first.type == "i1" and second.type == "i1" and first.scalar and second.scalar:
        return binary(build, name, first, second)
    return Value(build.op(f"{name} i32 {build.as_mask(first)}, {build.as_mask(second)}"), "mask", True)


@handles("shl", "shr", parts="b16 b32 b64 u16 u32 u64 s16 s32 s64")
def shift(build: Builder, instruction: Instruction) -> None:
    """Counts at or above the width give 0, or the sign in all bits."""
    parts = instruction.parts
    kind = kind_of(parts)
    bits = BITS[kind]
    value = build.operand(instruction.operands[1], kind)
    arithmetic = parts[0] == "shr" and signed(parts)
    operation = "shl" if parts[0] == "shl" else "ashr" if arithmetic else "lshr"
    if isinstance(instruction.operands[2], Immediate):
        count = instruction.operands[2].value & 0xFFFFFFFF
        if count >= bits and not arithmetic:
            result = binary(build, "and", value, integer(build, 0, kind))
        else:
            result = binary(build, operation, value, integer(build, min(count, bits - 1), kind))
        build.write(instruction.operands[0], result)
        return
    amount = build.operand(instruction.operands[2], "i32")
    limit = integer(build, bits - 1, "i32")
    over = compare(build, "icmp ugt", amount, limit)
    capped = select(build, over, limit, amount)
    if kind != "i32":
        capped = build.convert("trunc" if bits < 32 else "zext", capped, kind)
    result = binary(build, operation, value, capped)
    if not arithmetic:
        result = select(build, over, integer(build, 0, kind), result)
    build.write(instruction.operands[0], result)


@handles("shf", parts="l r wrap clamp b32")
def funnel_shift(build: Builder, instruction: Instruction) -> None:
    """shf.{l,r}.{clamp,wrap}.b32 d, a, b, c: 64 bits b:a shifted, the upper or lower half kept."""
    low, high, count = (build.operand(operand, "i32") for operand in instruction.operands[1:4])
    if "wrap" in instruction.parts:
        amount = binary(build, "and", count, integer(build, 31, "i32"))
    else:
        over = compare(build, "icmp ugt", count, integer(build, 32, "i32"))
        amount = select(build, over, integer(build, 32, "i32"), count)
    upper = binary(build, "shl", build.convert("zext", high, "i64"), integer(build, 32, "i64"))
    both = binary(build, "or", upper, build.convert("zext", low, "i64"))
    moved = build.convert("zext", amount, "i64")
    if "l" in instruction.parts:
        shifted = binary(build, "lshr", binary(build, "shl", both, moved), integer(build, 32, "i64"))
    else:
        shifted = binary(build, "lshr", both, moved)
    build.write(instruction.operands[0], build.convert("trunc", shifted, "i32"))


@handles("lop3", parts="and or b32")
def three_input_logic(build: Builder, instruction: Instruction) -> None:
    """lop3.b32 d, a, b, c, table; with a boolean operator also d|p, ..., q: p = (d != 0) op q."""
    operands = instruction.operands
    table = operands[4]
    if not isinstance(table, Immediate):
        raise build.unsupported(instruction.opcode)
    result = _by_table(build, build.together(*sources_of(build, instruction, "i32", 3)), table.value)
    if not isinstance(operands[0], Pair):
        build.write(operands[0], result)
        return
    some = compare(build, "icmp ne", result, integer(build, 0, "i32"))
    other = build.operand(operands[5], "i1")
    build.write(operands[0].first, result)
    build.write(operands[0].second, combine(build, instruction.parts[1], some, other))


def _by_table(build: Builder, sources: list[Value], table: int) -> Value:
    ones = integer(build, -1, "i32")
    inverted = [binary(build, "xor", source, ones) for source in sources]
    result: Value | None = None
    for row in range(8):
        if not table >> row & 1:
            continue
        term: Value | None = None
        for index, bit in enumerate((row >> 2 & 1, row >> 1 & 1, row & 1)):
            chosen = sources[index] if bit else inverted[index]
            term = chosen if term is None else binary(build, "and", term, chosen)
        assert term is not None
        result = term if result is None else binary(build, "or", result, term)
    return result or integer(build, 0, "i32")


@handles("popc", "clz", "brev", parts="b32 b64")
def count(build: Builder, instruction: Instruction) -> None:
    name, kind = instruction.parts[0], kind_of(instruction.parts)
    value = build.operand(instruction.operands[1], kind)
    if name == "brev":
        build.write(instruction.operands[0], intrinsic(build, "llvm.bitreverse", [value]))
        return
    if name == "popc":
        result = intrinsic(build, "llvm.ctpop", [value])
    else:
        result = intrinsic(build, "llvm.ctlz", [value], ", i1 false")
    build.write(instruction.operands[0], build.convert("trunc", result, "i32"))


_HELPED = {  # operands: T is the instruction's type, w a 32-bit word
    "bfe": ("Tww", "s32 u32 s64 u64"),
    "bfi": ("TTww", "b32 b64"),
    "bfind": ("T", "shiftamt s32 u32 s64 u64"),
    "prmt": ("www", "b32 f4e b4e rc8 ecl ecr rc16"),
    "fns": ("www", "b32"),
    "dp4a": ("www", "s32 u32"),
    "dp2a": ("www", "lo hi s32 u32"),
    "bmsk": ("ww", "wrap clamp b32"),
    "szext": ("ww", "wrap clamp s32 u32"),
}


def bit_helper(build: Builder, instruction: Instruction) -> None:
    """Bit operations whose LLVM form would be long or missing: helpers over 32 lanes."""
    parts = instruction.parts
    letters = _HELPED[parts[0]][0]
    kinds = [kind_of(parts) if letter == "T" else "i32" for letter in letters]
    values = [
        build.operand(operand, kind) for operand, kind in zip(instruction.operands[1:], kinds, strict=True)
    ]
    name = "kw_" + "_".join(parts)
    if parts[0] == "prmt" and len(parts) > 2:
        name = f"kw_prmt_{parts[1]}"
    result = "i32" if parts[0] == "bfind" else kinds[0]
    build.write(instruction.operands[0], build.helper(name, values, result))


for _name, (_, _parts) in _HELPED.items():
    handles(_name, parts=_parts)(bit_helper)

"""Lowering of scalar video instructions: one operation on words, or on a byte or half of each operand.

They are computed in integers wide enough for every intermediate result, clamped where `.sat` asks for it, and
then combined with the third operand, or put into a part of it. nvcc has no function for them: they come from
inline assembly.
"""

from __future__ import annotations

from sandbox.emulator.lowering.arithmetic import binary, compare, handles, integer, select
from sandbox.emulator.lowering.builder import Builder, Value
from sandbox.ptx.model import Instruction, Minus, Operand, Part

_COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_SECOND = ("add", "min", "max")
_SCALES = {"shr7": 7, "shr15": 15}
_ENOUGH = "i64"
_WIDE = "i128"  # of the opposite of a product of two unsigned words: LLVM takes long over vectors of it


def place_of(selector: str) -> tuple[int, int]:
    """Lowest bit and bits of `b0` to `b3`, `h0` and `h1`."""
    bits = 8 if selector[0] == "b" else 16
    return int(selector[1:]) * bits, bits


@handles("vadd", "vsub", "vabsdiff", "vmin", "vmax", parts="u32 s32 sat add min max")
def arithmetic(build: Builder, instruction: Instruction) -> None:
    """v….dtype.atype.btype{.sat}{.op2} d{.dsel}, a{.asel}, b{.bsel}{, c}"""
    name, types = instruction.parts[0], _types(build, instruction, 3)
    first, second = _sources(build, instruction, types[1:], _ENOUGH)
    if name in ("vadd", "vsub"):
        result = binary(build, name[1:], first, second)
    elif name == "vabsdiff":
        result = _largest(build, binary(build, "sub", first, second), binary(build, "sub", second, first))
    else:
        order = "slt" if name == "vmin" else "sgt"
        result = select(build, compare(build, f"icmp {order}", first, second), first, second)
    _finish(build, instruction, result, types[0])


@handles("vshl", "vshr", parts="u32 s32 sat clamp wrap add min max")
def shift(build: Builder, instruction: Instruction) -> None:
    """vsh….dtype.atype.u32{.sat}.mode{.op2} d{.dsel}, a{.asel}, b{.bsel}{, c}"""
    parts, types = instruction.parts, _types(build, instruction, 3)
    if types[2] != "u32" or ("clamp" in parts) == ("wrap" in parts):
        raise build.unsupported(instruction.opcode)
    value, amount = _sources(build, instruction, types[1:], _ENOUGH)
    if "wrap" in parts:
        amount = binary(build, "and", amount, integer(build, 31, _ENOUGH))
    else:
        most = integer(build, 32, _ENOUGH)
        amount = select(build, compare(build, "icmp ugt", amount, most), most, amount)
    result = binary(build, "shl" if parts[0] == "vshl" else "ashr", value, amount)
    _finish(build, instruction, result, types[0], unsigned=types[1] == "u32")


@handles("vset", parts=f"u32 s32 add min max {' '.join(_COMPARISONS)}")
def comparison(build: Builder, instruction: Instruction) -> None:
    """vset.atype.btype.cmp{.op2} d{.dsel}, a{.asel}, b{.bsel}{, c}: 1 where it holds, else 0."""
    types = _types(build, instruction, 2)
    relations = [part for part in instruction.parts if part in _COMPARISONS]
    if len(relations) != 1:
        raise build.unsupported(instruction.opcode)
    holds = compare(
        build, f"icmp {_COMPARISONS[relations[0]]}", *_sources(build, instruction, types, _ENOUGH)
    )
    _finish(build, instruction, build.convert("zext", build.splat(holds), _ENOUGH), "u32")


@handles("vmad", parts="u32 s32 sat po shr7 shr15")
def multiply_add(build: Builder, instruction: Instruction) -> None:
    """vmad.dtype.atype.btype{.po}{.sat}{.scale} d, {-}a{.asel}, {-}b{.bsel}, {-}c"""
    parts, types = instruction.parts, _types(build, instruction, 3)
    if len(instruction.operands) != 4:
        raise build.unsupported(instruction.opcode)
    _, *factors, addend = instruction.operands
    less_product = len([factor for factor in factors if isinstance(factor, Minus)]) == 1
    less_addend = isinstance(addend, Minus)
    signed = "s32" in types[1:] or less_product or less_addend
    wide = _WIDE if signed and "s32" not in types[1:] else _ENOUGH
    result = binary(build, "mul", *_sources(build, instruction, types[1:], wide))
    third = _extended(build, addend, "s32" if signed else "u32", wide)
    if "po" in parts:
        result = binary(build, "add", result, integer(build, 1, wide))
    elif less_product:
        result = binary(build, "sub", integer(build, 0, wide), result)
    elif less_addend:
        third = binary(build, "sub", integer(build, 0, wide), third)
    result = binary(build, "add", result, third)
    for scale in set(_SCALES).intersection(parts):
        result = binary(build, "ashr" if signed else "lshr", result, integer(build, _SCALES[scale], wide))
    if "sat" in parts:
        result = _clamped(build, result, 32, "s32" if signed else "u32", unsigned=not signed)
    build.write(instruction.operands[0], build.convert("trunc", result, "i32"))


def _types(build: Builder, instruction: Instruction, count: int) -> list[str]:
    types = [part for part in instruction.parts if part in ("u32", "s32")]
    if len(types) != count or len(instruction.operands) not in (3, 4):
        raise build.unsupported(instruction.opcode)
    return types


def _sources(build: Builder, instruction: Instruction, types: list[str], wide: str) -> tuple[Value, Value]:
    first, second = instruction.operands[1:3]
    return _extended(build, first, types[0], wide), _extended(build, second, types[1], wide)


def _extended(build: Builder, operand: Operand, kind: str, wide: str) -> Value:
    """An operand, or the part of it that is named, as its type extends it."""
    if isinstance(operand, Minus):
        operand = operand.operand
    if not isinstance(operand, Part):
        return build.convert("sext" if kind == "s32" else "zext", build.operand(operand, "i32"), wide)
    low, bits = place_of(operand.selector)
    top = binary(build, "shl", build.operand(operand.register, "i32"), integer(build, 32 - bits - low, "i32"))
    moved = binary(build, "ashr" if kind == "s32" else "lshr", top, integer(build, 32 - bits, "i32"))
    return build.convert("sext" if kind == "s32" else "zext", moved, wide)


def _largest(build: Builder, first: Value, second: Value) -> Value:
    return select(build, compare(build, "icmp sgt", first, second), first, second)


def _clamped(build: Builder, value: Value, bits: int, kind: str, *, unsigned: bool) -> Value:
    """`unsigned`: the value is, and may need all bits of its type; else it is signed."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind == "s32" else (0, (1 << bits) - 1)
    least, most = integer(build, low, value.type), integer(build, high, value.type)
    above = compare(build, f"icmp {'u' if unsigned else 's'}gt", value, most)
    value = select(build, above, most, value)
    return _largest(build, value, least)


def _finish(
    build: Builder, instruction: Instruction, result: Value, kind: str, *, unsigned: bool = False
) -> None:
    """Saturation, and what the third operand is for."""
    parts, (target, _, _, *third) = instruction.parts, instruction.operands
    second = [part for part in parts if part in _SECOND]
    low, bits = place_of(target.selector) if isinstance(target, Part) else (0, 32)
    if len(second) > 1 or bool(third) != (bool(second) or bits < 32) or (second and bits < 32):
        raise build.unsupported(instruction.opcode)
    if "sat" in parts:
        result = _clamped(build, result, bits, kind, unsigned=unsigned)
    word = build.convert("trunc", result, "i32")
    if second:
        word = _combined(build, second[0], word, build.operand(third[0], "i32"), kind)
    elif bits < 32:
        mask = (1 << bits) - 1
        kept = binary(build, "and", build.operand(third[0], "i32"), integer(build, ~(mask << low), "i32"))
        new = binary(build, "and", word, integer(build, mask, "i32"))
        word = binary(build, "or", kept, binary(build, "shl", new, integer(build, low, "i32")))
    build.write(target.register if isinstance(target, Part) else target, word)


def _combined(build: Builder, name: str, first: Value, second: Value, kind: str) -> Value:
    if name == "add":
        return binary(build, "add", first, second)
    order = f"icmp {kind[0]}{'lt' if name == 'min' else 'gt'}"
    return select(build, compare(build, order, first, second), first, second)

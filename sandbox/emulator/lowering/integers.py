"""Lowering of integer arithmetic, and the choice between it and floating point where both have one name."""

from __future__ import annotations

from sandbox.emulator.lowering import floats
from sandbox.emulator.lowering.analysis import CARRY
from sandbox.emulator.lowering.arithmetic import (
    PACKED,
    binary,
    by_halves,
    compare,
    handles,
    integer,
    intrinsic,
    kind_of,
    packed,
    select,
    signed,
    sources_of,
)
from sandbox.emulator.lowering.builder import BITS, FLOATS, Builder, Value
from sandbox.ptx.model import Instruction, Register

_TYPES = "s16 u16 s32 u32 s64 u64"
_FLOATING = "f32 f64 f16 bf16 f16x2 bf16x2 f32x2 rn rz rm rp ftz sat"


def floating(parts: tuple[str, ...]) -> bool:
    return (PACKED.get(parts[-1]) or kind_of(parts)) in FLOATS


@handles("add", "sub", parts=f"{_TYPES} s16x2 u16x2 cc {_FLOATING}")
def add(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    if floating(parts):
        floats.arithmetic(build, instruction)
    elif "cc" in parts:
        with_carry(build, instruction)
    elif packed(parts):
        by_halves(build, instruction, 2, lambda halves: binary(build, parts[0], *halves))
    elif "sat" in parts:
        result = intrinsic(build, f"llvm.s{parts[0]}.sat", sources_of(build, instruction, kind_of(parts), 2))
        build.write(instruction.operands[0], result)
    else:
        result = binary(build, parts[0], *sources_of(build, instruction, kind_of(parts), 2))
        build.write(instruction.operands[0], result)


@handles("mul", "mad", parts=f"{_TYPES} lo hi wide cc {_FLOATING}")
def multiply(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    if floating(parts):
        floats.arithmetic(build, instruction)
        return
    if "cc" in parts:
        with_carry(build, instruction)
        return
    first, second = sources_of(build, instruction, kind_of(parts), 2)
    result = _product(build, parts, first, second)
    if parts[0] == "mad":
        addend = build.operand(instruction.operands[3], result.type)
        if "sat" in parts:
            result = intrinsic(build, "llvm.sadd.sat", [result, addend])
        else:
            result = binary(build, "add", result, addend)
    build.write(instruction.operands[0], result)


def _product(build: Builder, parts: tuple[str, ...], first: Value, second: Value) -> Value:
    if "hi" in parts:
        return high_product(build, first, second, signed=signed(parts))
    if "wide" in parts:
        extend, wide = "sext" if signed(parts) else "zext", f"i{2 * BITS[first.type]}"
        first, second = build.convert(extend, first, wide), build.convert(extend, second, wide)
    return binary(build, "mul", first, second)


def high_product(build: Builder, first: Value, second: Value, *, signed: bool) -> Value:
    kind = first.type
    if kind == "i64":
        name = f"kw_mulhi_{'s' if signed else 'u'}64"
        return build.helper(name, [first, second], "i64")
    extend, wide = "sext" if signed else "zext", f"i{2 * BITS[kind]}"
    product = binary(build, "mul", build.convert(extend, first, wide), build.convert(extend, second, wide))
    return build.convert("trunc", binary(build, "lshr", product, integer(build, BITS[kind], wide)), kind)


@handles("mul24", "mad24", parts="lo hi sat s32 u32")
def multiply_24(build: Builder, instruction: Instruction) -> None:
    """The lower 24 bits of each factor; the product has 48, of which the lower or the upper 32 are kept."""
    parts = instruction.parts
    extend = "sext" if signed(parts) else "zext"
    factors = []
    for source in sources_of(build, instruction, "i32", 2):
        shift = integer(build, 8, "i32")
        moved = binary(build, "shl", source, shift)
        narrow = binary(build, "ashr" if signed(parts) else "lshr", moved, shift)
        factors.append(build.convert(extend, narrow, "i64"))
    result = binary(build, "mul", *factors)
    if "hi" in parts:
        result = binary(build, "lshr", result, integer(build, 16, "i64"))
    result = build.convert("trunc", result, "i32")
    if parts[0] == "mad24":
        addend = build.operand(instruction.operands[3], "i32")
        if "sat" in parts:
            result = intrinsic(build, "llvm.sadd.sat", [result, addend])
        else:
            result = binary(build, "add", result, addend)
    build.write(instruction.operands[0], result)


@handles("div", "rem", parts=f"{_TYPES} f32 f64 rn rz rm rp approx full ftz")
def divide(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    kind = kind_of(parts)
    if kind in FLOATS:
        floats.divide(build, instruction)
        return
    sources = sources_of(build, instruction, kind, 2)
    build.write(instruction.operands[0], build.helper(f"kw_{parts[0]}_{parts[-1]}", sources, kind))


@handles("sad", parts=_TYPES)
def sum_of_difference(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    first, second, addend = sources_of(build, instruction, kind_of(parts), 3)
    less = compare(build, f"icmp {'s' if signed(parts) else 'u'}lt", first, second)
    difference = select(build, less, binary(build, "sub", second, first), binary(build, "sub", first, second))
    build.write(instruction.operands[0], binary(build, "add", addend, difference))


@handles("neg", "abs", parts="s16 s32 s64 ftz f32 f64 f16 bf16 f16x2 bf16x2")
def sign(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    if floating(parts):
        floats.sign(build, instruction)
        return
    kind = kind_of(parts)
    source = build.operand(instruction.operands[1], kind)
    negative = binary(build, "sub", integer(build, 0, kind), source)
    if parts[0] == "abs":
        below = compare(build, "icmp slt", source, integer(build, 0, kind))
        negative = select(build, below, negative, source)
    build.write(instruction.operands[0], negative)


@handles("min", "max", parts=f"{_TYPES} s16x2 u16x2 relu ftz NaN xorsign abs f32 f64 f16 bf16 f16x2 bf16x2")
def extreme(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    if floating(parts):
        floats.extreme(build, instruction)
        return
    order = {"min": "lt", "max": "gt"}[parts[0]]

    def apply(sources: list[Value]) -> Value:
        less = compare(build, f"icmp {'s' if signed(parts) else 'u'}{order}", *sources)
        result = select(build, less, *sources)
        if "relu" in parts:
            zero = integer(build, 0, result.type)
            result = select(build, compare(build, "icmp sgt", result, zero), result, zero)
        return result

    if packed(parts):
        by_halves(build, instruction, 2, apply)
    else:
        build.write(instruction.operands[0], apply(sources_of(build, instruction, kind_of(parts), 2)))


# Extended precision -------------------------------------------------------------------------------------


@handles("addc", "subc", "madc", parts="lo hi cc s32 u32 s64 u64")
def with_carry(build: Builder, instruction: Instruction) -> None:
    """add.cc, addc, sub.cc, subc, mad.cc, madc: the carry flag is one more bit a lane.

    A subtraction leaves the flag as the hardware does: set where nothing was borrowed. nvcc's own 128-bit
    division reads it with `addc` after `subc.cc`.
    """
    parts = instruction.parts
    name, kind = parts[0], kind_of(parts)
    operands = [
        build.splat(value) for value in sources_of(build, instruction, kind, len(instruction.operands) - 1)
    ]
    if name.startswith("mad"):
        product = _product(build, parts, operands[0], operands[1])
        operands = [build.splat(product), operands[2]]
    minus = name.startswith("sub")
    first, second = operands
    result = binary(build, "sub" if minus else "add", first, second)
    out = compare(build, "icmp ult", first, second) if minus else compare(build, "icmp ult", result, first)
    if name in ("addc", "subc", "madc"):
        old = Value(build.as_lanes(build.read(CARRY, "i1")), "i1")
        flag = _inverted(build, old) if minus else old
        carry = build.convert("zext", flag, kind)
        partial = result
        result = binary(build, "sub" if minus else "add", partial, carry)
        again = compare(build, "icmp ult", partial if minus else result, carry)
        out = binary(build, "or", out, again)
    if "cc" in parts:
        build.write(Register(CARRY), _inverted(build, out) if minus else out)
    build.write(instruction.operands[0], result)


def _inverted(build: Builder, flag: Value) -> Value:
    return Value(build.op(f"xor <32 x i1> {flag.text}, splat (i1 true)"), "i1")

"""Lowering of `cvt`."""

from __future__ import annotations

from sandbox.emulator.lowering.arithmetic import (
    binary,
    compare,
    directed_rounding,
    flushed,
    handles,
    integer,
    intrinsic,
    rectified,
    saturated,
    select,
)
from sandbox.emulator.lowering.builder import BITS, FLOATS, Builder, Value, element_type
from sandbox.ptx.model import Instruction, Register

_TO_INTEGRAL = {"rni": "llvm.roundeven", "rzi": "llvm.trunc", "rmi": "llvm.floor", "rpi": "llvm.ceil"}


@handles("cvt")
def convert(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    if parts[-2] in ("f16x2", "bf16x2") and parts[-1] == "f32" and len(instruction.operands) == 3:
        _two_halves(build, instruction)
        return
    if (
        len(instruction.operands) != 2
        or parts[-1].endswith("x2")
        or parts[-2].endswith("x2")
        or "pack" in parts
    ):
        raise build.unsupported(instruction.opcode)
    to_name, from_name = parts[-2], parts[-1]
    to, source = element_type(to_name), element_type(from_name)
    value = build.operand(instruction.operands[1], source)
    if source in FLOATS:
        value = flushed(build, value, parts)
        if to in FLOATS:
            result = _float_to_float(build, value, to, parts)
        else:
            result = _float_to_integer(build, value, to_name, parts)
    elif to in FLOATS:
        result = _integer_to_float(build, value, from_name, to, parts)
    else:
        result = _integer_to_integer(build, value, from_name, to_name, "sat" in parts)
    build.write(instruction.operands[0], _widened(build, instruction, result, to_name))


def _two_halves(build: Builder, instruction: Instruction) -> None:
    """cvt.rn.f16x2.f32 d, a, b: a becomes the upper half, b the lower."""
    parts = instruction.parts
    if directed_rounding(parts):
        raise build.unsupported(instruction.opcode)
    to = "half" if parts[-2] == "f16x2" else "bfloat"
    halves = []
    for operand in instruction.operands[1:]:
        source = flushed(build, build.operand(operand, "float"), parts)
        narrow = _float_to_float(build, source, to, parts)
        halves.append(build.convert("zext", build.convert("bitcast", narrow, "i16"), "i32"))
    high = binary(build, "shl", halves[0], integer(build, 16, "i32"))
    build.write(instruction.operands[0], binary(build, "or", high, halves[1]))


def _widened(build: Builder, instruction: Instruction, value: Value, name: str) -> Value:
    """A result narrower than its register is extended by its own sign."""
    target = instruction.operands[0]
    if not isinstance(target, Register) or value.type in FLOATS:
        return value
    own = build.width(target.name)
    if BITS[own] > BITS[value.type]:
        return build.convert("sext" if name[0] == "s" else "zext", value, own)
    return value


def _float_to_float(build: Builder, value: Value, to: str, parts: tuple[str, ...]) -> Value:
    value = build.splat(value)
    integral = next((part for part in parts if part in _TO_INTEGRAL), None)
    directed = directed_rounding(parts)
    if integral:
        value = intrinsic(build, _TO_INTEGRAL[integral], [value])
    if BITS[to] > BITS[value.type]:
        value = build.convert("fpext", value, to)
    elif BITS[to] < BITS[value.type]:
        if directed:
            if to != "float":
                raise build.unsupported(".".join(parts))
            value = build.helper(f"kw_cvt_{directed}_{parts[-2]}_{parts[-1]}", [value], to)
        elif to == "bfloat" or (value.type == "double" and to == "half"):
            value = build.helper(f"kw_narrow_{value.type}_{to}", [value], to)
        else:
            value = build.convert("fptrunc", value, to)
    elif to != value.type:
        raise build.unsupported(".".join(parts))
    if "relu" in parts:
        value = rectified(build, value)
    if "sat" in parts:
        value = saturated(build, value)
    return flushed(build, value, parts)


def _float_to_integer(build: Builder, value: Value, name: str, parts: tuple[str, ...]) -> Value:
    """Out of range saturates; the helpers also know what NaN gives."""
    value = build.splat(value)
    if value.type in ("half", "bfloat"):
        value = build.convert("fpext", value, "float")
    integral = next((part for part in parts if part in _TO_INTEGRAL), "rzi")
    if integral != "rzi":
        value = intrinsic(build, _TO_INTEGRAL[integral], [value])
    source = "f32" if value.type == "float" else "f64"
    wide = name if name[1:] in ("32", "64") else f"{name[0]}32"
    result = build.helper(f"kw_cvt_{wide}_{source}", [value], element_type(wide))
    return _integer_to_integer(build, result, wide, name, saturate=True)


def _integer_to_float(build: Builder, value: Value, name: str, to: str, parts: tuple[str, ...]) -> Value:
    directed = directed_rounding(parts)
    value = build.splat(value)
    signed = name[0] == "s"
    if directed and to in ("half", "bfloat"):
        raise build.unsupported(".".join(parts))
    if (directed or BITS[value.type] == 64) and to in ("float", "double"):
        wide = f"{'s' if signed else 'u'}{max(32, BITS[value.type])}"
        value = build.convert("sext" if signed else "zext", value, f"i{wide[1:]}")
        rounding = directed if directed else "rn"
        result = build.helper(f"kw_cvt_{rounding}_{parts[-2]}_{wide}", [value], to)
    elif to in ("half", "bfloat"):
        exact = build.convert("sitofp" if signed else "uitofp", value, "double")
        result = build.helper(f"kw_narrow_double_{to}", [exact], to)
    else:
        result = build.convert("sitofp" if signed else "uitofp", value, to)
    return saturated(build, result) if "sat" in parts else result


def _integer_to_integer(build: Builder, value: Value, source: str, to: str, saturate: bool) -> Value:
    kind = element_type(to)
    if saturate:
        value = _clamped(build, value, source[0] == "s", to)
    if BITS[kind] > BITS[value.type]:
        return build.convert("sext" if source[0] == "s" else "zext", value, kind)
    return build.convert("trunc", value, kind)


def _clamped(build: Builder, value: Value, signed: bool, to: str) -> Value:
    bits, own = BITS[element_type(to)], BITS[value.type]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if to[0] == "s" else (0, (1 << bits) - 1)
    order = "s" if signed else "u"
    own_low, own_high = (-(1 << (own - 1)), (1 << (own - 1)) - 1) if signed else (0, (1 << own) - 1)
    if low > own_low:
        bound = integer(build, low, value.type)
        value = select(build, compare(build, f"icmp {order}lt", value, bound), bound, value)
    if high < own_high:
        bound = integer(build, high, value.type)
        value = select(build, compare(build, f"icmp {order}gt", value, bound), bound, value)
    return value

"""Lowering of `cvt`."""

from __future__ import annotations

from sandbox.emulator.lowering.arithmetic import (
    PACKED,
    binary,
    compare,
    directed_rounding,
    flushed,
    handles,
    integer,
    intrinsic,
    rectified,
    repacked,
    saturated,
    select,
    unpacked,
)
from sandbox.emulator.lowering.builder import BITS, FLOATS, Builder, Value, element_type
from sandbox.emulator.lowering.floats import narrowed
from sandbox.ptx.model import Instruction, Register

_TO_INTEGRAL = {"rni": "llvm.roundeven", "rzi": "llvm.trunc", "rmi": "llvm.floor", "rpi": "llvm.ceil"}
_EIGHT_BITS = {"e4m3x2": "e4m3", "e5m2x2": "e5m2"}
_NARROW = {"half": "f16", "bfloat": "bf16"}
_NAMES = (
    *(
        [
            "s8",
            "u8",
            "s16",
            "u16",
            "s32",
            "u32",
            "s64",
            "u64",
            "f16",
            "bf16",
            "f32",
            "f64",
            "f16x2",
            "bf16x2",
            "tf32",
        ]
    ),
    *(*_EIGHT_BITS, *_TO_INTEGRAL, "rn", "rz", "rm", "rp", "rna", "ftz", "sat", "satfinite", "relu"),
    *("pack", "u4", "s4", "u2", "s2", "b32"),
)


@handles("cvt", parts=" ".join(_NAMES))
def convert(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    if "pack" in parts:
        _pack(build, instruction)
    elif parts[-2] in _EIGHT_BITS or parts[-1] in _EIGHT_BITS:
        _eight_bits(build, instruction)
    elif parts[-2] in PACKED:
        _two_halves(build, instruction)
    elif parts[-2] == "tf32":
        source = build.operand(instruction.operands[1], "float")
        build.write(instruction.operands[0], rounded(build, source, "tf32", "i32", parts))
    else:
        _one(build, instruction)


def _one(build: Builder, instruction: Instruction) -> None:
    """A conversion of one value between the types that registers hold."""
    parts = instruction.parts
    to_name, from_name = parts[-2], parts[-1]
    to, source = element_type(to_name), element_type(from_name)
    value = build.operand(instruction.operands[1], source)
    if source in FLOATS:
        value = _flushed_single(build, value, parts)
        if to in FLOATS:
            result = _float_to_float(build, value, to, parts)
        else:
            result = _float_to_integer(build, value, to_name, parts)
    elif to in FLOATS:
        result = _integer_to_float(build, value, from_name, to, parts)
    else:
        result = _integer_to_integer(build, value, from_name, to_name, "sat" in parts)
    build.write(instruction.operands[0], _widened(build, instruction, result, to_name))


def _flushed_single(build: Builder, value: Value, parts: tuple[str, ...]) -> Value:
    """In conversions `.ftz` is about float32 alone."""
    return flushed(build, value, parts) if value.type == "float" else value


def rounded(build: Builder, value: Value, name: str, kind: str, parts: tuple[str, ...]) -> Value:
    """A float rounded to a narrow format, as element type `kind`; NaN becomes the format's own."""
    mode = next((part for part in parts if part in ("rn", "rz", "rm", "rp", "rna")), "rn")
    wide = build.convert("fpext", build.splat(value), "double")
    if "relu" in parts:
        wide = rectified(build, wide)
    finite = "_finite" if "satfinite" in parts else ""
    return build.helper(f"kw_round_{mode}_{name}{finite}", [wide], kind)


def _two_halves(build: Builder, instruction: Instruction) -> None:
    """cvt.rn.f16x2.f32 d, a, b: a becomes the upper half, b the lower."""
    parts = instruction.parts
    to = PACKED[parts[-2]]
    high, low = (
        _float_to_float(build, _flushed_single(build, build.operand(operand, "float"), parts), to, parts)
        for operand in instruction.operands[1:3]
    )
    build.write(instruction.operands[0], repacked(build, low, high))


def _eight_bits(build: Builder, instruction: Instruction) -> None:
    """Pairs of 8-bit floats: from two float32 (the first becomes the upper), from f16x2, and to f16x2."""
    parts, operands = instruction.parts, instruction.operands
    if parts[-1] in _EIGHT_BITS:
        name = _EIGHT_BITS[parts[-1]]
        both = build.splat(build.operand(operands[1], "i16"))
        pieces = [both, binary(build, "lshr", both, integer(build, 8, "i16"))]
        low, high = (build.helper(f"kw_widen_{name}", [piece], "half") for piece in pieces)
        if "relu" in parts:
            low, high = rectified(build, low), rectified(build, high)
        build.write(operands[0], repacked(build, low, high))
        return
    if parts[-1] == "f32":
        high, low = (build.operand(operand, "float") for operand in operands[1:3])
    else:
        low, high = unpacked(build, build.operand(operands[1], "i32"), "half")
    name = _EIGHT_BITS[parts[-2]]
    low, high = (rounded(build, value, name, "i16", parts) for value in (low, high))
    build.write(operands[0], binary(build, "or", low, binary(build, "shl", high, integer(build, 8, "i16"))))


def _pack(build: Builder, instruction: Instruction) -> None:
    """cvt.pack.sat.type.s32{.b32} d, a, b{, c}: b clamped lowest, a above it, c's lower bits above both."""
    parts, operands = instruction.parts, instruction.operands
    name = parts[3]
    bits = int(name[1:])
    first, second = (
        binary(
            build,
            "and",
            _within(build, build.operand(operand, "i32"), True, name),
            integer(build, (1 << bits) - 1, "i32"),
        )
        for operand in operands[1:3]
    )
    result = binary(build, "or", second, binary(build, "shl", first, integer(build, bits, "i32")))
    if len(operands) > 3:
        moved = binary(build, "shl", build.operand(operands[3], "i32"), integer(build, 2 * bits, "i32"))
        result = binary(build, "or", result, moved)
    build.write(operands[0], result)


def _widened(build: Builder, instruction: Instruction, value: Value, name: str) -> Value:
    """A result narrower than its register is extended by its own sign."""
    target = instruction.operands[0]
    if not isinstance(target, Register):
        return value
    own = build.width(target.name)
    if BITS[own] > BITS[value.type]:
        value = build.convert("bitcast", value, f"i{BITS[value.type]}")
        return build.convert("sext" if name[0] == "s" else "zext", value, own)
    return value


def _float_to_float(build: Builder, value: Value, to: str, parts: tuple[str, ...]) -> Value:
    value = build.splat(value)
    integral = next((part for part in parts if part in _TO_INTEGRAL), None)
    if integral:
        value = _to_integral(build, value, integral)
    if to == "float" and value.type == "double":
        directed = directed_rounding(parts)
        if directed:
            value = build.helper(f"kw_cvt_{directed}_f32_f64", [value], to)
        else:
            value = build.convert("fptrunc", value, to)
    elif to in _NARROW and to != value.type:
        value = _to_sixteen_bits(build, value, to, parts)
    else:
        value = build.convert("fpext", value, to)
    if "sat" in parts:
        value = saturated(build, value)
    return _flushed_single(build, value, parts)


def _to_sixteen_bits(build: Builder, value: Value, to: str, parts: tuple[str, ...]) -> Value:
    special = {"rz", "rm", "rp", "satfinite"}.intersection(parts)
    if special or (value.type, to) in (("double", "bfloat"), ("half", "bfloat"), ("bfloat", "half")):
        return rounded(build, value, _NARROW[to], to, parts)
    if "relu" in parts:
        value = rectified(build, value)
    return narrowed(build, value, to)


def _to_integral(build: Builder, value: Value, how: str) -> Value:
    """A whole number of the same format. 16-bit ones are widened for it: what comes out fits again."""
    kind = value.type
    if kind not in _NARROW:
        return intrinsic(build, _TO_INTEGRAL[how], [value])
    wide = intrinsic(build, _TO_INTEGRAL[how], [build.convert("fpext", value, "float")])
    return narrowed(build, wide, kind)


def _float_to_integer(build: Builder, value: Value, name: str, parts: tuple[str, ...]) -> Value:
    """Out of range saturates. NaN gives 0, or the highest bit alone where either side has 64 bits."""
    value = build.splat(value)
    if value.type in _NARROW:
        value = build.convert("fpext", value, "float")
    integral = next((part for part in parts if part in _TO_INTEGRAL), "rzi")
    if integral != "rzi":
        value = intrinsic(build, _TO_INTEGRAL[integral], [value])
    source = "f32" if value.type == "float" else "f64"
    kind = element_type(name)
    if BITS[kind] >= 32:
        return build.helper(f"kw_cvt_{name}_{source}", [value], kind)
    wide = f"{name[0]}32"
    result = build.helper(f"kw_cvt_{wide}_{source}", [value], "i32")
    result = _integer_to_integer(build, result, wide, name, saturate=True)
    if source == "f64":
        nan = compare(build, "fcmp uno", value, value)
        result = select(build, nan, integer(build, 1 << (BITS[kind] - 1), kind), result)
    return result


def _integer_to_float(build: Builder, value: Value, name: str, to: str, parts: tuple[str, ...]) -> Value:
    signed = name[0] == "s"
    directed = directed_rounding(parts)
    if to in _NARROW:
        value = build.convert("sext" if signed else "zext", value, "i64")
        exact = build.helper(f"kw_odd_{name[0]}64", [value], "double")
        return rounded(build, exact, _NARROW[to], to, parts)
    if directed or BITS[value.type] == 64:
        wide = f"{'s' if signed else 'u'}{max(32, BITS[value.type])}"
        value = build.convert("sext" if signed else "zext", value, f"i{wide[1:]}")
        result = build.helper(f"kw_cvt_{directed or 'rn'}_{parts[-2]}_{wide}", [value], to)
    else:
        result = build.convert("sitofp" if signed else "uitofp", build.splat(value), to)
    return saturated(build, result) if "sat" in parts else result


def _integer_to_integer(build: Builder, value: Value, source: str, to: str, saturate: bool) -> Value:
    kind = element_type(to)
    if saturate:
        value = _within(build, value, source[0] == "s", to)
    if BITS[kind] > BITS[value.type]:
        return build.convert("sext" if source[0] == "s" else "zext", value, kind)
    return build.convert("trunc", value, kind)


def _within(build: Builder, value: Value, signed: bool, to: str) -> Value:
    """Clamped to the range of an integer type, which may have any number of bits."""
    bits, own = int(to[1:]), BITS[value.type]
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

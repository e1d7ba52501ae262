"""Lowering of instructions that compute: integers, floating point, comparisons, conversions, moves."""

from __future__ import annotations

from collections.abc import Callable

from sandbox.emulator.lowering.builder import BITS, FLOATS, Builder, Value, element_type
from sandbox.ptx.model import Immediate, Instruction

Handler = Callable[[Builder, Instruction], None]
HANDLERS: dict[str, Handler] = {}
ROUNDINGS = frozenset({"rm", "rp", "rz"})  # directed ones; rn is what the CPU does anyway


def handles(*names: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return register


def directed_rounding(parts: tuple[str, ...]) -> str | None:
    return next((part for part in parts if part in ROUNDINGS), None)


def flushed(build: Builder, value: Value, parts: tuple[str, ...]) -> Value:
    """`.ftz`: subnormal float32 becomes zero of its sign."""
    if "ftz" not in parts or value.type != "float":
        return value
    value = build.splat(value)
    bits = build.op(f"bitcast <32 x float> {value.text} to <32 x i32>")
    exponent = build.op(f"and <32 x i32> {bits}, splat (i32 2139095040)")
    small = build.op(f"icmp eq <32 x i32> {exponent}, zeroinitializer")
    sign = build.op(f"and <32 x i32> {bits}, splat (i32 -2147483648)")
    chosen = build.op(f"select <32 x i1> {small}, <32 x i32> {sign}, <32 x i32> {bits}")
    return Value(build.op(f"bitcast <32 x i32> {chosen} to <32 x float>"), "float")


def saturated(build: Builder, value: Value) -> Value:
    """`.sat` of floating point: clamped to [0, 1], NaN gives 0."""
    low = intrinsic(build, "llvm.maxnum", [value, Value("0.0", value.type, True)])
    return intrinsic(build, "llvm.minnum", [low, Value("1.0", value.type, True)])


def rectified(build: Builder, value: Value) -> Value:
    """`.relu`: what is not above zero becomes +0; NaN stays."""
    zero = Value("0.0", value.type, True)
    return select(build, compare(build, "fcmp ugt", value, zero), value, zero)


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


# Addition, multiplication, fused multiply-add -----------------------------------------------------------


@handles("add", "sub", "mul", "fma", "mad", "addc", "subc", "madc")
def multiply_add(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    if packed(parts):
        _packed_half(build, instruction)
        return
    if "cc" in parts or parts[0] in ("addc", "subc", "madc"):
        _with_carry(build, instruction)
        return
    kind = kind_of(parts)
    if kind in FLOATS:
        _float_arithmetic(build, instruction, kind)
        return
    if parts[0] in ("mul", "mad"):
        _integer_product(build, instruction, kind)
        return
    first, second = sources_of(build, instruction, kind, 2)
    if "sat" in parts:
        result = intrinsic(build, f"llvm.s{parts[0]}.sat", [first, second])
    else:
        result = binary(build, parts[0], first, second)
    build.write(instruction.operands[0], result)


def _float_arithmetic(build: Builder, instruction: Instruction, kind: str) -> None:
    parts = instruction.parts
    name = "fma" if parts[0] == "mad" else parts[0]
    count = 3 if name == "fma" else 2
    sources = [flushed(build, value, parts) for value in sources_of(build, instruction, kind, count)]
    build.write(instruction.operands[0], float_operation(build, name, kind, sources, parts))


def float_operation(
    build: Builder, name: str, kind: str, sources: list[Value], parts: tuple[str, ...]
) -> Value:
    directed = directed_rounding(parts)
    if kind in ("half", "bfloat"):
        # float32 holds every product and sum of two 16-bit floats closely enough to round only once;
        # a fused multiply-add needs float64 for that.
        wide = "double" if name == "fma" else "float"
        widened = [build.convert("fpext", build.splat(value), wide) for value in sources]
        result = float_operation(build, name, wide, widened, ())
        result = _narrowed(build, result, kind)
    elif directed:
        result = build.helper(f"kw_{name}_{directed}_{parts[-1]}", sources, kind)
    elif name == "fma":
        result = intrinsic(build, "llvm.fma", sources)
    else:
        result = binary(build, f"f{name}", *sources)
    if "relu" in parts:
        result = rectified(build, result)
    if "sat" in parts:
        result = saturated(build, result)
    return flushed(build, result, parts)


def _narrowed(build: Builder, value: Value, kind: str) -> Value:
    if kind == "bfloat" or value.type == "double":
        return build.helper(f"kw_narrow_{value.type}_{kind}", [value], kind)
    return build.convert("fptrunc", value, kind)


def _packed_half(build: Builder, instruction: Instruction) -> None:
    """Two 16-bit floats in one 32-bit register."""
    parts = instruction.parts
    kind = "half" if parts[-1] == "f16x2" else "bfloat"
    count = 3 if parts[0] == "fma" else 2
    name = parts[0]
    halves: list[Value] = []
    packed = [build.splat(build.operand(operand, "i32")) for operand in instruction.operands[1 : 1 + count]]
    for shift in (0, 16):
        sources = []
        for value in packed:
            moved = binary(build, "lshr", value, integer(build, shift, "i32"))
            sources.append(build.convert("bitcast", build.convert("trunc", moved, "i16"), kind))
        result = float_operation(build, name, kind, sources, parts)
        halves.append(build.convert("zext", build.convert("bitcast", result, "i16"), "i32"))
    high = binary(build, "shl", halves[1], integer(build, 16, "i32"))
    build.write(instruction.operands[0], binary(build, "or", halves[0], high))


def _integer_product(build: Builder, instruction: Instruction, kind: str) -> None:
    parts = instruction.parts
    first, second = sources_of(build, instruction, kind, 2)
    extend = "sext" if signed(parts) else "zext"
    if "24" in parts[0]:
        raise build.unsupported(instruction.opcode)
    if "wide" in parts:
        wide = f"i{2 * BITS[kind]}"
        result = binary(build, "mul", build.convert(extend, first, wide), build.convert(extend, second, wide))
    elif "hi" in parts:
        result = high_product(build, first, second, signed=signed(parts))
    else:
        result = binary(build, "mul", first, second)
    if parts[0] == "mad":
        addend = build.operand(instruction.operands[3], result.type)
        result = binary(build, "add", result, addend)
    build.write(instruction.operands[0], result)


def high_product(build: Builder, first: Value, second: Value, *, signed: bool) -> Value:
    kind = first.type
    if kind == "i64":
        name = f"kw_mulhi_{'s' if signed else 'u'}64"
        return build.helper(name, [first, second], "i64")
    extend, wide = "sext" if signed else "zext", f"i{2 * BITS[kind]}"
    product = binary(build, "mul", build.convert(extend, first, wide), build.convert(extend, second, wide))
    return build.convert("trunc", binary(build, "lshr", product, integer(build, BITS[kind], wide)), kind)


def _with_carry(build: Builder, instruction: Instruction) -> None:
    """add.cc, addc, sub.cc, subc, mad.cc, madc: the carry flag is one more bit a lane.

    A subtraction leaves the flag as the hardware does: set where nothing was borrowed. nvcc's own 128-bit
    division reads it with `addc` after `subc.cc`.
    """
    parts = instruction.parts
    kind = kind_of(parts)
    operands = [
        build.splat(value) for value in sources_of(build, instruction, kind, len(instruction.operands) - 1)
    ]
    full = f"<32 x {kind}>"
    if parts[0].startswith("mad"):
        if "hi" in parts:
            product = build.splat(high_product(build, operands[0], operands[1], signed=signed(parts)))
        else:
            product = binary(build, "mul", operands[0], operands[1])
        operands = [product, operands[2]]
    minus = parts[0].startswith("sub")
    chain = parts[0] in ("addc", "subc", "madc")
    operation, less = ("sub", "ult") if minus else ("add", "ult")
    first, second = operands
    result = binary(build, operation, first, second)
    if minus:
        out = build.op(f"icmp {less} {full} {first.text}, {second.text}")
    else:
        out = build.op(f"icmp {less} {full} {result.text}, {first.text}")
    if chain:
        if build.carry is None:
            raise build.unsupported(f"{instruction.opcode} without a carry set in the same basic block")
        flag = _inverted(build, build.carry) if minus else build.carry
        carry = build.convert("zext", flag, kind)
        partial = result
        result = binary(build, operation, partial, carry)
        if minus:
            again = build.op(f"icmp ult {full} {partial.text}, {carry.text}")
        else:
            again = build.op(f"icmp ult {full} {result.text}, {carry.text}")
        out = build.op(f"or <32 x i1> {out}, {again}")
    if "cc" in parts:
        build.carry = _inverted(build, Value(out, "i1")) if minus else Value(out, "i1")
    build.write(instruction.operands[0], result)


def _inverted(build: Builder, flag: Value) -> Value:
    return Value(build.op(f"xor <32 x i1> {flag.text}, splat (i1 true)"), "i1")


# Division, roots, approximations ------------------------------------------------------------------------


@handles("div", "rem")
def divide(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    kind = kind_of(parts)
    sources = [flushed(build, value, parts) for value in sources_of(build, instruction, kind, 2)]
    directed = directed_rounding(parts)
    if kind not in FLOATS or directed:
        name = f"kw_{parts[0]}_{directed}_{parts[-1]}" if directed else f"kw_{parts[0]}_{parts[-1]}"
        result = build.helper(name, sources, kind)
    else:
        result = binary(build, "fdiv", *sources)
    build.write(instruction.operands[0], flushed(build, result, parts))


@handles("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def unary_function(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    kind = kind_of(parts)
    if kind not in ("float", "double"):
        raise build.unsupported(instruction.opcode)
    source = flushed(build, build.operand(instruction.operands[1], kind), parts)
    directed = directed_rounding(parts)
    if directed:
        result = build.helper(f"kw_{parts[0]}_{directed}_{parts[-1]}", [source], kind)
    elif parts[0] == "rcp":
        result = binary(build, "fdiv", Value("1.0", kind, True), source)
    elif parts[0] == "sqrt":
        result = intrinsic(build, "llvm.sqrt", [build.splat(source)])
    else:
        result = build.helper(f"kw_{parts[0]}_{parts[-1]}", [source], kind)
    build.write(instruction.operands[0], flushed(build, result, parts))


# Sign, minimum, maximum ---------------------------------------------------------------------------------


@handles("neg", "abs")
def sign(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    if packed(parts):
        source = build.operand(instruction.operands[1], "i32")
        build.write(instruction.operands[0], _sign_bits(build, parts[0], source, 0x8000_8000))
        return
    kind = kind_of(parts)
    if kind in FLOATS:
        source = flushed(build, build.operand(instruction.operands[1], kind), parts)
        integers = build.convert("bitcast", build.splat(source), f"i{BITS[kind]}")
        result = _sign_bits(build, parts[0], integers, 1 << (BITS[kind] - 1))
        build.write(instruction.operands[0], build.convert("bitcast", result, kind))
        return
    source = build.operand(instruction.operands[1], kind)
    negative = binary(build, "sub", integer(build, 0, kind), source)
    if parts[0] == "abs":
        below = compare(build, "icmp slt", source, integer(build, 0, kind))
        negative = select(build, below, negative, source)
    build.write(instruction.operands[0], negative)


def _sign_bits(build: Builder, name: str, value: Value, bit: int) -> Value:
    if name == "neg":
        return binary(build, "xor", value, integer(build, bit, value.type))
    return binary(build, "and", value, integer(build, ~bit, value.type))


def _narrow_extreme(build: Builder, instruction: Instruction, kind: str, sources: list[Value]) -> None:
    """The result is one of the operands, so widening and narrowing again is exact."""
    ending = "imum" if "NaN" in instruction.parts else "imumnum"
    wide = [build.convert("fpext", build.splat(value), "float") for value in sources]
    result = intrinsic(build, f"llvm.{instruction.parts[0]}{ending}", wide)
    build.write(instruction.operands[0], _narrowed(build, result, kind))


@handles("copysign")
def copysign(build: Builder, instruction: Instruction) -> None:
    """PTX takes the sign from the first operand."""
    kind = kind_of(instruction.parts)
    signs, magnitudes = sources_of(build, instruction, kind, 2)
    build.write(instruction.operands[0], intrinsic(build, "llvm.copysign", [magnitudes, signs]))


@handles("min", "max")
def extreme(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    kind = kind_of(parts)
    if packed(parts) or "relu" in parts or "xorsign" in parts:
        raise build.unsupported(instruction.opcode)
    sources = [flushed(build, value, parts) for value in sources_of(build, instruction, kind, 2)]
    if kind in ("half", "bfloat"):
        _narrow_extreme(build, instruction, kind, sources)
        return
    if kind in FLOATS:
        # NaN loses unless `.NaN` says otherwise, and -0 is below +0.
        ending = "imum" if "NaN" in parts else "imumnum"
        result = intrinsic(build, f"llvm.{parts[0]}{ending}", sources)
        if len(instruction.operands) == 4:
            third = flushed(build, build.operand(instruction.operands[3], kind), parts)
            result = intrinsic(build, f"llvm.{parts[0]}{ending}", [result, third])
    else:
        order = {"min": "lt", "max": "gt"}[parts[0]]
        less = compare(build, f"icmp {'s' if signed(parts) else 'u'}{order}", *sources)
        result = select(build, less, *sources)
    build.write(instruction.operands[0], result)

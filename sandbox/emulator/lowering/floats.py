"""Lowering of floating-point arithmetic in all formats.

A NaN that 32- and 64-bit operations give may have any sign and payload; 16-bit ones give 0x7fff, as the
hardware does.
"""

from __future__ import annotations

from sandbox.emulator.lowering.arithmetic import (
    binary,
    by_halves,
    canonical,
    compare,
    directed_rounding,
    flushed,
    handles,
    integer,
    intrinsic,
    kind_of,
    packed,
    rectified,
    saturated,
    select,
    sources_of,
)
from sandbox.emulator.lowering.bits import combine
from sandbox.emulator.lowering.builder import BITS, Builder, Value, element_type
from sandbox.ptx.model import Instruction

_NARROW = ("half", "bfloat")


@handles("fma", parts="rn rz rm rp ftz sat relu f32 f64 f16 bf16 f16x2 bf16x2 f32x2")
def fused_multiply_add(build: Builder, instruction: Instruction) -> None:
    arithmetic(build, instruction)


def arithmetic(build: Builder, instruction: Instruction) -> None:
    """add, sub, mul, fma, mad."""
    parts = instruction.parts
    name = "fma" if parts[0] == "mad" else parts[0]
    count = 3 if name == "fma" else 2

    def apply(sources: list[Value]) -> Value:
        return operation(build, name, sources, parts)

    if packed(parts):
        by_halves(build, instruction, count, apply)
        return
    kind = kind_of(parts)
    if len(parts) > 2 and parts[-2] == "f32":  # the last operand and the result are wider than the others
        narrow = sources_of(build, instruction, kind, count - 1)
        last = build.operand(instruction.operands[count], "float")
        sources = [*(build.convert("fpext", build.splat(value), "float") for value in narrow), last]
    else:
        sources = sources_of(build, instruction, kind, count)
    build.write(instruction.operands[0], apply(sources))


def operation(build: Builder, name: str, sources: list[Value], parts: tuple[str, ...]) -> Value:
    """One operation with all its modifiers, rounded once."""
    sources = [flushed(build, value, parts) for value in sources]
    kind = sources[0].type
    directed = directed_rounding(parts)
    if kind in _NARROW:
        result = _narrow_operation(build, name, sources)
    elif directed:
        precision = "f32" if kind == "float" else "f64"
        result = build.helper(f"kw_{name}_{directed}_{precision}", sources, kind)
    elif name == "fma":
        result = intrinsic(build, "llvm.fma", sources)
    else:
        result = binary(build, f"f{name}", *sources)
    if "relu" in parts:
        result = rectified(build, result)
    if "sat" in parts:
        result = saturated(build, result)
    return flushed(build, result, parts)


def _narrow_operation(build: Builder, name: str, sources: list[Value]) -> Value:
    """In float32, which is wide enough to round twice without a trace, or in float64 where it is not: a fused
    multiply-add, and products of bfloat16, which reach float32's subnormals."""
    kind = sources[0].type
    if name == "fma" and kind == "bfloat":  # not even float64 holds every sum
        return build.helper("kw_fma_bfloat", sources, kind)
    wide = "double" if name == "fma" or (name == "mul" and kind == "bfloat") else "float"
    widened = [build.convert("fpext", build.splat(value), wide) for value in sources]
    if name == "fma":
        result = intrinsic(build, "llvm.fma", widened)
    else:
        result = binary(build, f"f{name}", *widened)
    return narrowed(build, result, kind)


def narrowed(build: Builder, value: Value, kind: str) -> Value:
    """To 16 bits, rounded to nearest."""
    if kind == "bfloat" or value.type == "double":
        return build.helper(f"kw_narrow_{value.type}_{kind}", [value], kind)
    return canonical(build, build.convert("fptrunc", build.splat(value), kind))


def divide(build: Builder, instruction: Instruction) -> None:
    """`.full` and `.approx` are rounded correctly too; `.approx` gives 0 above 2^126, as documented."""
    parts = instruction.parts
    kind = kind_of(parts)
    sources = [flushed(build, value, parts) for value in sources_of(build, instruction, kind, 2)]
    directed = directed_rounding(parts)
    if directed:
        result = build.helper(f"kw_div_{directed}_{parts[-1]}", sources, kind)
    else:
        result = binary(build, "fdiv", *sources)
    if "approx" in parts:
        result = _tiny_reciprocal(build, sources, result)
    build.write(instruction.operands[0], flushed(build, result, parts))


def _tiny_reciprocal(build: Builder, sources: list[Value], quotient: Value) -> Value:
    size = intrinsic(build, "llvm.fabs", [build.splat(sources[1])])
    limits = (
        Value(f"0x{bits:016X}", "float", True) for bits in (0x47D0_0000_0000_0000, 0x7FF0_0000_0000_0000)
    )
    above, below = next(limits), next(limits)
    large = combine(
        build, "and", compare(build, "fcmp ogt", size, above), compare(build, "fcmp olt", size, below)
    )
    zero = intrinsic(build, "llvm.copysign", [Value("0.0", "float", True), build.splat(sources[1])])
    return select(build, large, binary(build, "fmul", sources[0], zero), quotient)


@handles(
    "rcp",
    "sqrt",
    "rsqrt",
    "ex2",
    "lg2",
    "sin",
    "cos",
    "tanh",
    parts="approx rn rz rm rp ftz f32 f64 f16 bf16 f16x2 bf16x2",
)
def unary_function(build: Builder, instruction: Instruction) -> None:
    """Approximations are as good as the host's functions: within one unit in the last place of float32.

    The ISA allows 2^-22 to 2^-20.5 for float32, 2^-11 for tanh, and about the last place for 16 bits, which
    are computed in float32. The double-precision approximations look at 20 bits of the fraction and give 20.
    """
    parts = instruction.parts
    if packed(parts):
        by_halves(build, instruction, 1, lambda halves: _function(build, instruction, halves[0]))
        return
    source = build.operand(instruction.operands[1], kind_of(parts))
    build.write(instruction.operands[0], _function(build, instruction, source))


def _function(build: Builder, instruction: Instruction, source: Value) -> Value:
    parts = instruction.parts
    name, kind = parts[0], source.type
    source = flushed(build, source, parts)
    if kind in _NARROW:
        if name not in ("ex2", "tanh"):
            raise build.unsupported(instruction.opcode)
        wide = build.convert("fpext", build.splat(source), "float")
        return flushed(build, narrowed(build, build.helper(f"kw_{name}_f32", [wide], "float"), kind), parts)
    directed = directed_rounding(parts)
    if kind == "double" and "approx" in parts and "ftz" in parts:
        result = build.helper(f"kw_{name}_coarse_f64", [source], kind)
    elif directed:
        result = build.helper(f"kw_{name}_{directed}_{parts[-1]}", [source], kind)
    elif name == "rcp":
        result = binary(build, "fdiv", Value("1.0", kind, True), source)
    elif name == "sqrt":
        result = intrinsic(build, "llvm.sqrt", [build.splat(source)])
    else:
        result = build.helper(f"kw_{name}_{parts[-1]}", [source], kind)
    return flushed(build, result, parts)


# Sign, minimum, maximum ---------------------------------------------------------------------------------


def sign(build: Builder, instruction: Instruction) -> None:
    """neg, abs."""
    parts = instruction.parts

    def apply(source: Value) -> Value:
        kind = source.type
        bits = build.convert("bitcast", build.splat(flushed(build, source, parts)), f"i{BITS[kind]}")
        bit = 1 << (BITS[kind] - 1)
        if parts[0] == "neg":
            bits = binary(build, "xor", bits, integer(build, bit, bits.type))
        else:
            bits = binary(build, "and", bits, integer(build, ~bit, bits.type))
        return build.convert("bitcast", bits, kind)

    if packed(parts):
        by_halves(build, instruction, 1, lambda halves: apply(halves[0]))
    else:
        build.write(instruction.operands[0], apply(build.operand(instruction.operands[1], kind_of(parts))))


@handles("copysign", parts="f32 f64")
def copysign(build: Builder, instruction: Instruction) -> None:
    """PTX takes the sign from the first operand."""
    kind = kind_of(instruction.parts)
    signs, magnitudes = sources_of(build, instruction, kind, 2)
    build.write(instruction.operands[0], intrinsic(build, "llvm.copysign", [magnitudes, signs]))


def extreme(build: Builder, instruction: Instruction) -> None:
    """min, max: NaN loses unless `.NaN` says otherwise, and -0 is below +0."""
    parts = instruction.parts
    count = len(instruction.operands) - 1

    def apply(sources: list[Value]) -> Value:
        result = _extreme_of(build, parts, sources[0], sources[1])
        return result if count == 2 else _extreme_of(build, parts, result, sources[2])

    if packed(parts):
        by_halves(build, instruction, count, apply)
    else:
        build.write(instruction.operands[0], apply(sources_of(build, instruction, kind_of(parts), count)))


def _extreme_of(build: Builder, parts: tuple[str, ...], first: Value, second: Value) -> Value:
    kind = first.type
    sources = [flushed(build, value, parts) for value in (first, second)]
    if kind in _NARROW:  # the result is one of the operands: widening and narrowing again is exact
        sources = [build.convert("fpext", build.splat(value), "float") for value in sources]
    if "xorsign" in parts:
        signs = binary(
            build,
            "fmul",
            *(
                intrinsic(build, "llvm.copysign", [Value("1.0", sources[0].type, True), build.splat(value)])
                for value in sources
            ),
        )
    if "abs" in parts:
        sources = [intrinsic(build, "llvm.fabs", [build.splat(value)]) for value in sources]
    ending = "imum" if "NaN" in parts else "imumnum"
    result = intrinsic(build, f"llvm.{parts[0]}{ending}", sources)
    if "xorsign" in parts:
        result = intrinsic(build, "llvm.copysign", [result, signs])
    return narrowed(build, result, kind) if kind in _NARROW else result


@handles("testp", parts="finite infinite number notanumber normal subnormal f32 f64")
def test_property(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    kind = element_type(parts[-1])
    # LLVM's classes, both signs: 3 NaN, 516 infinite, 264 normal, 144 subnormal, 96 zero.
    classes = {
        "finite": 504,
        "infinite": 516,
        "number": 1020,
        "notanumber": 3,
        "normal": 264,
        "subnormal": 144,
    }
    source = build.splat(build.operand(instruction.operands[1], kind))
    suffix = f"v32f{BITS[kind]}"
    build.context.declarations[f"llvm.is.fpclass.{suffix}"] = (
        f"declare <32 x i1> @llvm.is.fpclass.{suffix}({source.full_type}, i32 immarg)"
    )
    text = build.op(
        f"call <32 x i1> @llvm.is.fpclass.{suffix}({source.full_type} {source.text}, i32 {classes[parts[1]]})"
    )
    build.write(instruction.operands[0], Value(text, "i1"))

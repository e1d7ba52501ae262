"""Lowering of texture fetches and surface accesses through objects (handles of 64 bits)."""

from __future__ import annotations

from sandbox.emulator.lowering.abi import SITE_ACCESS
from sandbox.emulator.lowering.arithmetic import handles
from sandbox.emulator.lowering.builder import BITS, Builder, Value
from sandbox.emulator.lowering.memory import receive_from, send
from sandbox.ptx.model import Address, Instruction, Operand, Register, Texel, Vector

# As runtime/fetch.cpp reads them: dimensions, and 4 for layers.
_GEOMETRIES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 5, "a2d": 6}
_CHANNELS = "rgba"
_QUERIES = {"width": 0, "height": 1, "depth": 2, "array_size": 3, "normalized_coords": 4}
_OUTSIDE = {"trap": 0, "clamp": 1, "zero": 2}


def _geometry(build: Builder, instruction: Instruction) -> tuple[str, int]:
    name = next((part for part in instruction.parts if part in _GEOMETRIES), None)
    if name is None:
        raise build.unsupported(instruction.opcode)
    return name, _GEOMETRIES[name]


def _handle(build: Builder, operand: Operand) -> str:
    base = operand.base if isinstance(operand, Texel | Address) else None
    if not isinstance(base, Register) or BITS[build.width(base.name)] != 64:
        raise build.unsupported("a texture or surface that is not given by an object")
    return build.pass_vector("in0", build.read(base.name, "i64"))


def _area(build: Builder, name: str) -> str:
    """Four numbers a lane, of 4 bytes each."""
    return build.buffer_wide(name)


def _coordinates(build: Builder, operand: Operand) -> str:
    if not isinstance(operand, Texel):
        raise build.unsupported("coordinates that are no vector")
    area = _area(build, "coordinates")
    for index, item in enumerate(operand.coordinates.items):
        place = build.op(f"getelementptr <32 x i32>, ptr {area}, i64 {index}")
        build.emit(f"store <32 x i32> {build.vector(item, 'i32')}, ptr {place}, align 64")
    return area


def _site(build: Builder, direction: str) -> int:
    return build.context.site(SITE_ACCESS, build.line, f"{direction}.global")


@handles("tex", "tld4")
def fetch(build: Builder, instruction: Instruction) -> None:
    """tex{.level,.grad}.geometry.v4.type.coordinates d, [object, {coordinates}]{, ...} and tld4.channel.2d"""
    parts, operands = instruction.parts, instruction.operands
    name, code = _geometry(build, instruction)
    gathers = parts[0] == "tld4"
    known = {"tex", "tld4", "level", "grad", "base", "v4", "f32", "s32", "u32", name}
    if gathers:
        channel = _CHANNELS.find(parts[1])
        if channel < 0 or name != "2d":
            raise build.unsupported(instruction.opcode)
        known.add(parts[1])
        code |= 16 | channel << 5
    expected = {"level": 3, "grad": 4}.get(parts[1], 2)
    if not set(parts) <= known or parts[-1] not in ("f32", "s32") or len(operands) != expected:
        raise build.unsupported(instruction.opcode)
    if parts[-1] == "s32":
        code |= 8
    target = operands[0]
    if not isinstance(target, Vector) or len(target.items) != 4:
        raise build.unsupported(instruction.opcode)
    place, handle = _coordinates(build, operands[1]), _handle(build, operands[1])
    out = _area(build, "colour")
    build.declare("kw_tex", "void", "ptr, i32, i32, i32, ptr, ptr, ptr")
    build.emit(
        f"call void @kw_tex(ptr %w, i32 {_site(build, 'ld')}, i32 {build.effective_mask()}, i32 {code}, "
        f"ptr {handle}, ptr {place}, ptr {out})"
    )
    for index, item in enumerate(target.items):
        source = build.op(f"getelementptr <32 x i32>, ptr {out}, i64 {index}")
        build.write(item, Value(build.op(f"load <32 x i32>, ptr {source}, align 64"), "i32"))


@handles("txq", "suq")
def query(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    if len(parts) != 3 or len(instruction.operands) != 2 or parts[1] not in _QUERIES or parts[2] != "b32":
        raise build.unsupported(instruction.opcode)
    target, operand = instruction.operands
    what = _QUERIES[parts[1]] | (8 if parts[0] == "suq" else 0)
    out = build.buffer("out0")
    build.declare("kw_image_query", "void", "ptr, i32, i32, i32, ptr, ptr")
    build.emit(
        f"call void @kw_image_query(ptr %w, i32 {build.line}, i32 {build.effective_mask()}, i32 {what}, "
        f"ptr {_handle(build, operand)}, ptr {out})"
    )
    build.write(target, Value(build.op(f"load <32 x i32>, ptr {out}, align 64"), "i32"))


@handles("suld", "sust")
def surface(build: Builder, instruction: Instruction) -> None:
    """suld.b.geometry{.cache}{.vector}.type.outside d, [surface, {coordinates}]; sust.b with [..], values"""
    parts, operands = instruction.parts, instruction.operands
    name, code = _geometry(build, instruction)
    stores = parts[0] == "sust"
    elements = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}
    kind = next((part for part in parts if part in elements), None)
    known = {"suld", "sust", "b", name, kind, "v2", "v4", "ca", "cg", "cs", "cv", "wb", "wt", *_OUTSIDE}
    if kind is None or parts[1] != "b" or not set(parts) <= known:
        raise build.unsupported(instruction.opcode)
    size = elements[kind]
    code |= _OUTSIDE[parts[-1] if parts[-1] in _OUTSIDE else "trap"] << 3 | stores << 5
    place, values = operands if stores else operands[::-1]
    items = values.items if isinstance(values, Vector) else (values,)
    if size * len(items) > 16:
        raise build.unsupported(instruction.opcode)
    data = build.buffer_wide("data")
    coordinates, handle = _coordinates(build, place), _handle(build, place)
    if stores:
        for index, item in enumerate(items):
            send(build, item, data, index * 32 * size, f"i{8 * size}")
    build.declare("kw_surface", "void", "ptr, i32, i32, i32, i32, i32, ptr, ptr, ptr")
    build.emit(
        f"call void @kw_surface(ptr %w, i32 {_site(build, 'st' if stores else 'ld')}, "
        f"i32 {build.effective_mask()}, i32 {code}, i32 {size}, i32 {len(items)}, "
        f"ptr {handle}, ptr {coordinates}, ptr {data})"
    )
    if not stores:
        for index, item in enumerate(items):
            receive_from(build, item, data, index * 32 * size, kind)

"""Lowering of matrix instructions: wmma, mma, ldmatrix, stmatrix, movmatrix.

A fragment is passed to the runtime as registers [register][lane]; runtime/matrix.h knows which element of
which matrix each one holds, and states the numbers below too.
"""

from __future__ import annotations

from sandbox.emulator.lowering.arithmetic import handles
from sandbox.emulator.lowering.builder import Builder, Value
from sandbox.emulator.lowering.memory import SPACES, access_site, address_operand
from sandbox.ptx.matrix import ELEMENTS, REGISTER_BITS, MatrixKind, matrix_kind
from sandbox.ptx.model import Instruction, Operand, Vector

_PARTS = {"a": 0, "b": 1, "c": 2, "d": 2}
_SATURATE, _XOR, _AND, _COLUMN_A, _ROW_B = 1, 2, 4, 8, 16


def _area(build: Builder, name: str, registers: int, kind: str) -> str:
    """A scratch area for the registers of a fragment, of any legal size."""
    if name not in build.buffers:
        build.buffers[name] = f"%buffer.{name}"
        build.entry.append(f"  %buffer.{name} = alloca [2048 x i8], align 64")
    if registers * 32 * (8 if kind == "i64" else 4) > 2048:
        raise build.unsupported(f"a fragment of {registers} registers")
    return build.buffers[name]


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _send(build: Builder, operand: Operand, name: str, kind: str) -> str:
    items = _items(operand)
    area = _area(build, name, len(items), kind)
    for index, item in enumerate(items):
        place = build.op(f"getelementptr <32 x {kind}>, ptr {area}, i64 {index}")
        build.emit(f"store <32 x {kind}> {build.vector(item, kind)}, ptr {place}, align 64")
    return area


def _receive(build: Builder, operand: Operand, area: str, kind: str) -> None:
    for index, item in enumerate(_items(operand)):
        place = build.op(f"getelementptr <32 x {kind}>, ptr {area}, i64 {index}")
        build.write(item, Value(build.op(f"load <32 x {kind}>, ptr {place}, align 64"), kind))


def _register(element: str) -> str:
    return "i64" if REGISTER_BITS.get(element) == 64 else "i32"


def _shape_code(kind: MatrixKind) -> int:
    m, n, k = kind.shape
    return m | n << 8 | k << 16


@handles("wmma")
def wmma(build: Builder, instruction: Instruction) -> None:
    if instruction.parts[1] in ("load", "store"):
        _wmma_access(build, instruction)
    else:
        multiply(build, instruction)


@handles("mma")
def multiply(build: Builder, instruction: Instruction) -> None:
    """mma and wmma.mma: d, a, b, c."""
    kind = matrix_kind(instruction)
    if kind is None:
        raise build.unsupported(instruction.opcode)
    d, a, b, c = instruction.operands
    parts = instruction.parts
    flags = _SATURATE if "satfinite" in parts else 0
    flags |= _XOR if "xor" in parts else _AND if "and" in parts else 0
    layouts = [part for part in parts if part in ("row", "col")]
    flags |= (_COLUMN_A if layouts[0] == "col" else 0) | (_ROW_B if layouts[1] == "row" else 0)
    codes, counts, areas = 0, 0, []
    for index, (name, operand, element) in enumerate(
        (("a", a, kind.a), ("b", b, kind.b), ("c", c, kind.c), ("d", d, kind.d))
    ):
        codes |= ELEMENTS.index(element) << 8 * index
        counts |= len(_items(operand)) << 8 * index
        register = _register(element)
        if len(_items(operand)) != kind.registers(name):
            raise build.unsupported(f"{instruction.opcode} with {len(_items(operand))} registers of {name}")
        if name == "d":
            areas.append(_area(build, "matrix.d", len(_items(operand)), register))
        else:
            areas.append(_send(build, operand, f"matrix.{name}", register))
    build.declare("kw_mma", "void", "ptr, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr, ptr")
    build.emit(
        f"call void @kw_mma(ptr %w, i32 {build.line}, i32 {build.effective_mask()}, "
        f"i32 {_shape_code(kind)}, i32 {codes}, i32 {counts}, i32 {flags}, "
        + ", ".join(f"ptr {area}" for area in areas)
        + ")"
    )
    _receive(build, d, areas[3], _register(kind.d))


def _access_space(build: Builder, instruction: Instruction) -> str:
    for part in instruction.parts[1:]:
        name, _, where = part.partition("::")
        if name in ("global", "shared") and where in ("", "cta"):
            return SPACES[name]
        if name in ("global", "shared", "local", "const", "param"):
            raise build.unsupported(instruction.opcode)
    return "x"


def _addresses(build: Builder, operand: Operand) -> tuple[str, str]:
    """All 64 bits of each lane's address, whatever the state space."""
    return address_operand(build, operand, "x")


def _access_site_of(build: Builder, direction: str, space: str) -> int:
    name = {"g": "global", "s": "shared", "x": "generic"}[space]
    return access_site(build, Instruction(f"{direction}.{name}", (direction,), (), None, False, build.line))


def _wmma_access(build: Builder, instruction: Instruction) -> None:
    """wmma.load.part d, [p], stride and wmma.store.d [p], d, stride."""
    kind = matrix_kind(instruction)
    if kind is None:
        raise build.unsupported(instruction.opcode)
    parts, operands = instruction.parts, instruction.operands
    loads = parts[1] == "load"
    part, element = parts[2], parts[-1]
    registers, address = (operands[0], operands[1]) if loads else (operands[1], operands[0])
    count = len(_items(registers))
    if count != kind.registers(part):
        raise build.unsupported(f"{instruction.opcode} with {count} registers")
    space = _access_space(build, instruction)
    code = _PARTS[part] | ELEMENTS.index(element) << 4 | ("col" in parts) << 8 | ord(space) << 16
    place, offset = _addresses(build, address)
    stride = "null"
    if len(operands) > 2:
        stride = build.pass_vector("in1", build.operand(operands[2], "i32"))
    site = _access_site_of(build, "ld" if loads else "st", space)
    register = _register(element)
    helper = "kw_wmma_load" if loads else "kw_wmma_store"
    if loads:
        area = _area(build, "matrix.d", count, register)
    else:
        area = _send(build, registers, "matrix.c", register)
    build.declare(helper, "void", "ptr, i32, i32, i32, i32, i32, ptr, i64, ptr, ptr")
    build.emit(
        f"call void @{helper}(ptr %w, i32 {site}, i32 {build.effective_mask()}, "
        f"i32 {_shape_code(kind)}, i32 {code}, i32 {count}, ptr {place}, i64 {offset}, "
        f"ptr {stride}, ptr {area})"
    )
    if loads:
        _receive(build, registers, area, register)


@handles("ldmatrix", "stmatrix")
def move_matrices(build: Builder, instruction: Instruction) -> None:
    """ldmatrix.sync.aligned.m8n8.num{.trans}{.shared}.b16 r, [p] and stmatrix with [p], r."""
    parts, operands = instruction.parts, instruction.operands
    loads = parts[0] == "ldmatrix"
    known = {"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta", "b16"}
    if not set(parts[1:]) <= known or not {"sync", "aligned", "m8n8", "b16"} <= set(parts):
        raise build.unsupported(instruction.opcode)
    registers, address = operands if loads else operands[::-1]
    count = len(_items(registers))
    if f"x{count}" not in parts:
        raise build.unsupported(f"{instruction.opcode} with {count} registers")
    space = _access_space(build, instruction)
    place, offset = _addresses(build, address)
    site = _access_site_of(build, "ld" if loads else "st", "s")
    area = _area(build, "matrix.d", count, "i32") if loads else _send(build, registers, "matrix.c", "i32")
    helper = f"kw_{parts[0]}"
    build.declare(helper, "void", "ptr, i32, i32, i32, i32, i32, ptr, i64, ptr")
    build.emit(
        f"call void @{helper}(ptr %w, i32 {site}, i32 {build.effective_mask()}, i32 {count}, "
        f"i32 {int('trans' in parts)}, i32 {ord(space)}, ptr {place}, i64 {offset}, ptr {area})"
    )
    if loads:
        _receive(build, registers, area, "i32")


@handles("movmatrix")
def transpose(build: Builder, instruction: Instruction) -> None:
    if instruction.parts[1:] != ("sync", "aligned", "m8n8", "trans", "b16"):
        raise build.unsupported(instruction.opcode)
    target, source = instruction.operands
    value = build.pass_vector("in0", build.operand(source, "i32"))
    out = build.buffer("out0")
    build.declare("kw_movmatrix", "void", "ptr, i32, i32, ptr, ptr")
    build.emit(
        f"call void @kw_movmatrix(ptr %w, i32 {build.line}, i32 {build.effective_mask()}, "
        f"ptr {value}, ptr {out})"
    )
    build.write(target, Value(build.op(f"load <32 x i32>, ptr {out}, align 64"), "i32"))

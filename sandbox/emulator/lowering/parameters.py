"""Parameters: of kernels, the same for all threads; of device functions, a block of bytes a lane.

A block is an array [lane][bytes] on the caller's stack. A device function that takes the address of one of
its own parameters has a copy of it among its local variables.
"""

from __future__ import annotations

from sandbox.emulator.lowering.builder import Builder, Value, element_type
from sandbox.emulator.lowering.memory import receive, receive_from
from sandbox.ptx.model import Address, Function, Instruction, Label, Operand, Register, Symbol, Vector
from sandbox.ptx.parser import type_bytes


def addressed_parameters(function: Function) -> list[tuple[str, int]]:
    """(name, bytes) of a device function's parameters whose address it takes."""
    if function.entry:
        return []
    sizes = {parameter.name: parameter.size for parameter in function.parameters}
    names = {
        operand.name
        for item in function.body
        if not isinstance(item, Label)
        for operand in item.operands
        if isinstance(operand, Symbol)
    }
    return [(name, size) for name, size in sizes.items() if name in names]


def _place(build: Builder, operand: Operand, needed: int) -> tuple[str, int, int] | None:
    """(LLVM pointer of a block, its bytes, offset), or None for kernel parameters.

    ptxas lets accesses past the `needed` bytes of a parameter through, and nothing checks them when they run.
    """
    if isinstance(operand, Address) and isinstance(operand.base, Symbol):
        name = operand.base.name
        if name in build.parameter_blocks:
            pointer, size = build.parameter_blocks[name]
            offset = operand.offset + operand.base.offset
            _require_inside(build, offset, needed, size)
            return pointer, size, offset
    return None


def _require_inside(build: Builder, offset: int, needed: int, size: int) -> None:
    if offset < 0 or offset + needed > size:
        raise build.unsupported(f"bytes {offset} to {offset + needed} of parameters that have {size} bytes")


def read_block(build: Builder, pointer: str, block: int, offset: int, size: int) -> str:
    """Pointer to `size` bytes a lane, one lane behind the other, of a block of `block` bytes a lane."""
    if block == size and offset == 0:
        return pointer
    out = build.buffer_wide("data")
    build.declare(f"kw_parameter_read_{size}", "void", "ptr, i32, i32, ptr")
    build.emit(f"call void @kw_parameter_read_{size}(ptr {pointer}, i32 {block}, i32 {offset}, ptr {out})")
    return out


def load_parameter(build: Builder, instruction: Instruction) -> None:
    parts, (target, address) = instruction.parts, instruction.operands
    name = parts[-1]
    size = type_bytes(name)
    targets = target.items if isinstance(target, Vector) else (target,)
    place = _place(build, address, size * len(targets))
    if place is not None:
        pointer, block, offset = place
        for index, item in enumerate(targets):
            receive_from(build, item, read_block(build, pointer, block, offset + index * size, size), 0, name)
        return
    assert isinstance(address, Address)
    assert isinstance(address.base, Symbol)
    offset = build.kernel_parameter(address.base.name) + address.offset + address.base.offset
    _require_inside(build, offset, size * len(targets), build.function.parameter_bytes)
    for index, item in enumerate(targets):
        _kernel_parameter(build, item, offset + index * size, name)


def _kernel_parameter(build: Builder, target: Operand, offset: int, name: str) -> None:
    if not isinstance(target, Register):
        return
    kind = element_type(name)
    place = build.op(f"getelementptr i8, ptr %parameters, i64 {offset}")
    receive(build, target, Value(build.op(f"load {kind}, ptr {place}, align 1"), kind, True), name)


def is_computed(address: Operand) -> bool:
    """Whether the address of a parameter access is known only when it runs."""
    return isinstance(address, Address) and isinstance(address.base, Register)


def computed_space(build: Builder) -> str:
    """Where parameters at a computed address lie: a device function's are copied to its local memory."""
    return "p" if build.function.entry else "l"


def store_parameter(build: Builder, instruction: Instruction) -> None:
    address, source = instruction.operands
    name = instruction.parts[-1]
    size = type_bytes(name)
    items = source.items if isinstance(source, Vector) else (source,)
    place = _place(build, address, size * len(items))
    if place is None:
        raise build.unsupported(instruction.opcode)
    pointer, block, offset = place
    kind = f"i{8 * size}"
    mask = build.effective_mask()
    for index, item in enumerate(items):
        at = offset + index * size
        new = build.vector(item, kind)
        if block == size and at == 0:
            old = build.op(f"load <32 x {kind}>, ptr {pointer}, align 32")
            new = build.op(
                f"select <32 x i1> {build.lanes_of_effect()}, <32 x {kind}> {new}, <32 x {kind}> {old}"
            )
            build.emit(f"store <32 x {kind}> {new}, ptr {pointer}, align 32")
            continue
        data = build.buffer_wide("data")
        build.emit(f"store <32 x {kind}> {new}, ptr {data}, align 32")
        helper = f"kw_parameter_write_{size}"
        build.declare(helper, "void", "ptr, i32, i32, i32, ptr")
        build.emit(f"call void @{helper}(ptr {pointer}, i32 {block}, i32 {at}, i32 {mask}, ptr {data})")

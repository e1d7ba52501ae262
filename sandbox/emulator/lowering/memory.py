"""What accesses share. (Loads and stores: access.py; of parameters: parameters.py; atomics: atomics.py.)"""

from __future__ import annotations

from sandbox.emulator.lowering.abi import LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, SITE_ACCESS
from sandbox.emulator.lowering.arithmetic import compare, handles, integer
from sandbox.emulator.lowering.bits import combine
from sandbox.emulator.lowering.builder import BITS, Builder, Value, element_type
from sandbox.ptx.model import Address, Immediate, Instruction, Operand, Register, Symbol

SPACES = {"global": "g", "shared": "s", "local": "l", "const": "c"}


def space_of(parts: tuple[str, ...]) -> str:
    """Letter of the state space in helper names; "x" is generic."""
    for part in parts[1:]:
        name = part.partition("::")[0]
        if name in SPACES:
            return SPACES[name]
        if name == "param":
            return "p"
    return "x"


def vector_length(parts: tuple[str, ...]) -> int:
    return 4 if "v4" in parts else 2 if "v2" in parts else 8 if "v8" in parts else 1


def address_value(build: Builder, operand: Operand, space: str) -> tuple[Value, int]:
    """The address of every lane, and the constant offset from it."""
    if not isinstance(operand, Address):
        raise build.unsupported(f"address {operand!r}")
    kind = "i32" if space in "sl" else "i64"
    base = operand.base
    if isinstance(base, Register):
        own = build.width(base.name)
        value = build.read(base.name, own)
        if BITS[own] > BITS[kind]:
            value = build.convert("trunc", value, kind)
        elif BITS[own] < BITS[kind]:
            value = build.convert("zext", value, kind)
    elif isinstance(base, Symbol | Immediate):
        value = build.operand(base, kind)
    else:
        raise build.unsupported(f"address {operand!r}")
    return value, operand.offset


def address_operand(build: Builder, operand: Operand, space: str) -> tuple[str, str]:
    """Stores the 32 addresses for a helper; returns its pointer and the constant offset."""
    value, offset = address_value(build, operand, space)
    return build.pass_vector("address", value), str(offset)


def access_site(build: Builder, instruction: Instruction) -> int:
    return build.context.site(SITE_ACCESS, build.line, instruction.opcode)


def receive_from(build: Builder, target: Operand, base: str, offset: int, name: str) -> None:
    if not isinstance(target, Register):
        return
    kind = element_type(name)
    value = Value(build.op(f"load <32 x {kind}>, ptr {build.offset(base, offset)}, align 32"), kind)
    receive(build, target, value, name)


def receive(build: Builder, target: Operand, value: Value, name: str) -> None:
    """Writes a loaded element of type `name` to its register, which may be wider."""
    if not isinstance(target, Register):
        return
    own = build.width(target.name)
    if BITS[own] > BITS[value.type]:
        value = build.convert("bitcast", value, f"i{BITS[value.type]}")
        value = build.convert("sext" if name[0] == "s" else "zext", value, own)
    build.write(target, value)


def send(build: Builder, operand: Operand, base: str, offset: int, kind: str) -> None:
    place = build.offset(base, offset)
    text = build.vector(operand, kind)
    build.emit(f"store <32 x {kind}> {text}, ptr {place}, align 32")


@handles("isspacep")
def is_space(build: Builder, instruction: Instruction) -> None:
    space = instruction.parts[1].partition("::")[0]
    source = instruction.operands[1]
    own = build.width(source.name) if isinstance(source, Register) else "i64"
    address = build.splat(build.convert("zext", build.operand(source, own), "i64"))
    bounds = {
        "shared": (SHARED_WINDOW, LOCAL_WINDOW),
        "local": (LOCAL_WINDOW, PARAMETER_WINDOW),
        "param": (PARAMETER_WINDOW, 2 * PARAMETER_WINDOW - LOCAL_WINDOW),
        "global": (2 * PARAMETER_WINDOW - LOCAL_WINDOW, 1 << 62),
    }.get(space)
    if bounds is None:
        raise build.unsupported(instruction.opcode)
    low = compare(build, "icmp uge", address, integer(build, bounds[0], "i64"))
    high = compare(build, "icmp ult", address, integer(build, bounds[1], "i64"))
    build.write(instruction.operands[0], combine(build, "and", low, high))


_FENCE_OF_COPIES = frozenset(
    {"release", "relaxed", "acquire", "cta", "cluster", "shared", "shared::cta", "shared::cluster", "global"}
    | {"sync_restrict::shared::cta", "sync_restrict::shared::cluster"}
)
_PROXIES_OF_COPIES = ("async", "async::generic", "alias")  # whatever the way to memory, it is the same here


@handles("membar", "fence")
def fence(build: Builder, instruction: Instruction) -> None:
    """A block runs on one thread of this machine, so within it every access is seen in order.

    The check for races hears of it, too. Asynchronous copies see what the thread wrote before them, so a
    fence for them has nothing to do.
    """
    parts = instruction.parts
    copies = parts[1] == "proxy" and len(parts) > 2 and parts[2] in _PROXIES_OF_COPIES
    if copies or parts[1] == "mbarrier_init":
        if not set(parts[1:]) <= _FENCE_OF_COPIES.union(parts[1:3]):
            raise build.unsupported(instruction.opcode)
        return
    if any(part.startswith("proxy") for part in parts):
        raise build.unsupported(instruction.opcode)
    if "cta" not in parts:
        sequential = parts[0] == "membar" or "sc" in parts
        build.emit(f"fence {'seq_cst' if sequential else 'acq_rel'}")
    if build.context.mode == "checked":
        build.declare("kw_fence", "void", "ptr, i32, i32")
        build.emit(
            f"call void @kw_fence(ptr %w, i32 {build.effective_mask()}, i32 {int('cta' not in parts)})"
        )

"""Lowering of atomics and reductions to helpers of the runtime, which check and count them.

Every order and scope is the strongest one: all lanes see an atomic at once. A vector is one atomic an
element, as the ISA has it. Float sums keep subnormals in every state space.
"""

from __future__ import annotations

from sandbox.emulator.lowering.arithmetic import handles
from sandbox.emulator.lowering.builder import Builder, Value
from sandbox.emulator.lowering.memory import access_site, address_operand, space_of, vector_length
from sandbox.ptx.model import Instruction, Operand, Register, Vector
from sandbox.ptx.parser import type_bytes

_WORDS = ("u32", "s32", "u64", "s64")
_HALVES = ("f16", "bf16", "f16x2", "bf16x2")
_TYPES = {
    "add": (*_WORDS, "f32", "f64", *_HALVES),
    "min": (*_WORDS, *_HALVES),
    "max": (*_WORDS, *_HALVES),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64", "b128"),
    "cas": ("b16", "b32", "b64", "b128"),
    "inc": ("u32",),
    "dec": ("u32",),
}
_PARTS = " ".join(
    (
        *(["relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys"]),
        *(
            [
                "global",
                "shared",
                "shared::cta",
                "shared::cluster",
                "noftz",
                "L2::cache_hint",
                "v2",
                "v4",
                "v8",
            ]
        ),
        *_TYPES,
        *sorted({name for names in _TYPES.values() for name in names}),
    )
)


@handles("atom", "red", parts=_PARTS)
def atomic(build: Builder, instruction: Instruction) -> None:
    parts, operands = instruction.parts, list(instruction.operands)
    operation = next((part for part in parts[1:] if part in _TYPES), "")
    name, count = parts[-1], vector_length(parts)
    space = space_of(parts)
    if name not in _TYPES.get(operation, ()) or space not in ("g", "s", "x"):
        raise build.unsupported(instruction.opcode)
    if "L2::cache_hint" in parts:
        operands.pop()
    target = operands.pop(0) if parts[0] == "atom" else None
    address, *values = operands
    size = type_bytes(name)
    place, offset = address_operand(build, address, space)
    site = access_site(build, instruction)
    mask = build.effective_mask()
    for index in range(count):
        _element(
            build,
            f"kw_atom_{space}_{operation}_{name}",
            f"ptr %w, i32 {site}, i32 {mask}, ptr {place}, i64 {int(offset) + index * size}",
            [_item(value, index) for value in values],
            _item(target, index),
            f"i{8 * size}",
        )


def _item(operand: Operand, index: int) -> Operand:
    return operand.items[index] if isinstance(operand, Vector) else operand


def _element(
    build: Builder, helper: str, access: str, values: list[Operand], target: Operand, kind: str
) -> None:
    given = []
    for index, operand in enumerate(values):
        given.append(build.buffer_wide(f"atomic{index}"))
        build.emit(f"store <32 x {kind}> {build.vector(operand, kind)}, ptr {given[-1]}, align 64")
    out = build.buffer_wide("data")
    wanted = isinstance(target, Register)
    build.declare(helper, "void", "ptr, i32, i32, ptr, i64, ptr, ptr, ptr")
    build.emit(
        f"call void @{helper}({access}, ptr {given[0]}, ptr {given[1] if len(given) > 1 else 'null'}, "
        f"ptr {out if wanted else 'null'})"
    )
    if wanted:
        build.write(target, Value(build.op(f"load <32 x {kind}>, ptr {out}, align 32"), kind))

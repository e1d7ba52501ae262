"""Loads of one basic block that the runtime checks together: those at constant offsets from one base address.

Between the first and the last of a batch nothing stands that could change what a check of them says: no
store, no atomic operation, no barrier, no shuffle, no call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sandbox.emulator.lowering.analysis import uses_and_definitions
from sandbox.emulator.lowering.patterns import Pattern
from sandbox.ptx.model import Address, Instruction, Operand, Register

_QUIET_NAMES = """
    add sub mul mad fma and or xor not shl shr cvt cvta setp set selp slct min max neg abs mov rcp sqrt rsqrt
    div rem ex2 lg2 sin cos tanh lop3 prmt bfe bfi bfind popc clz brev shf dp4a dp2a copysign testp
    addc subc madc mul24 mad24 sad fns szext bmsk cnot ld
"""
_QUIET = frozenset(_QUIET_NAMES.split())
MOST = 64  # loads in a batch


@dataclass
class Batch:
    space: str
    size: int
    items: list[tuple[int, int]] = field(default_factory=list)  # site, offset
    pattern: Pattern | None = None  # once the first load is lowered


@dataclass(frozen=True)
class Member:
    batch: Batch
    index: int
    site: int


def batches_of(
    instructions: Sequence[Instruction],
    shape: Callable[[Instruction], tuple[str, int] | None],
    site: Callable[[Instruction], int],
) -> dict[int, Member]:
    """By the id of the instruction. `shape` gives space and bytes of a load that can be in a batch."""
    found: dict[int, Member] = {}
    open_batches: dict[tuple[Operand, str, int], Batch] = {}
    for instruction in instructions:
        if instruction.parts[0] not in _QUIET or "volatile" in instruction.parts:
            open_batches = {}
            continue
        wanted = shape(instruction) if instruction.parts[0] == "ld" else None
        if wanted is not None:
            address = instruction.operands[1]
            assert isinstance(address, Address)
            batch = open_batches.setdefault((address.base, *wanted), Batch(*wanted))
            found[id(instruction)] = Member(batch, len(batch.items), site(instruction))
            batch.items.append((found[id(instruction)].site, address.offset))
            if len(batch.items) == MOST:
                del open_batches[address.base, *wanted]
        written = set(uses_and_definitions(instruction)[1])
        for key in list(open_batches):
            if isinstance(key[0], Register) and key[0].name in written:
                del open_batches[key]
    return found

"""Basic blocks of a PTX function, which registers live across them, and which values a warp shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sandbox.ptx.model import (
    Address,
    Function,
    Immediate,
    Instruction,
    Label,
    Minus,
    Negated,
    Operand,
    Pair,
    Part,
    PtxError,
    Register,
    Symbol,
    Texel,
    Vector,
)

# Instructions whose first operand is read, not written.
NO_DESTINATION = frozenset(
    {
        "st",
        "red",
        "bra",
        "brx",
        "bar",
        "barrier",
        "ret",
        "exit",
        "membar",
        "fence",
        "trap",
        "brkpt",
        "prefetch",
    }
    | {
        "prefetchu",
        "nanosleep",
        "call",
        "discard",
        "applypriority",
        "pmevent",
        "griddepcontrol",
        "setmaxnreg",
        "stackrestore",
    }
    | {"cp", "wgmma", "stmatrix", "bulk", "multimem", "sust"}
)
# The same, where the second word of the opcode decides.
NO_DESTINATION_FORMS = frozenset(
    {
        ("wmma", "store"),
        ("mbarrier", "init"),
        ("mbarrier", "inval"),
        ("mbarrier", "expect_tx"),
        ("mbarrier", "complete_tx"),
    }
)
_WHOLE_WARP = frozenset({"mma", "wmma", "ldmatrix", "stmatrix", "movmatrix"})
TERMINATORS = frozenset({"bra", "brx", "ret", "exit", "trap"})
# A warp-uniform result needs uniform operands and an operation that is the same in one lane as in 32.
UNIFORM_OPERATIONS = frozenset(
    {
        "mov",
        "add",
        "sub",
        "mul",
        "mad",
        "and",
        "or",
        "xor",
        "not",
        "shl",
        "shr",
        "cvt",
        "cvta",
        "setp",
        "selp",
    }
    | {"min", "max", "neg", "abs", "fma", "ld", "cnot"}
)
UNIFORM_SPECIALS = (
    "%ctaid.",
    "%nctaid.",
    "%ntid.",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%envreg",
    "%total_smem_size",
    "%dynamic_smem_size",
)


# Operands that an instruction has at least: what looks at it before it is lowered counts on them.
_LEAST_OPERANDS = {"mov": 2, "ld": 2, "ldu": 2, "st": 2, "bra": 1, "brx": 1}
ALL_LANES = 0xFFFFFFFF
CARRY = "%carry flag"  # stands for a register, a predicate, that extended-precision instructions share
_READ_CARRY = frozenset({"addc", "subc", "madc"})
_POLLED_LOADS = frozenset({"volatile", "relaxed", "acquire", "mmio", "cg", "cv"})


@dataclass
class Block:
    index: int
    instructions: list[Instruction] = field(default_factory=list)
    barrier: bool = False  # starts with a block-wide barrier
    collective: int | None = None  # lanes that a shuffle or vote in it names, where that is a constant
    members: list[Register] = field(default_factory=list)  # elsewhere: who holds them when the block begins


@dataclass
class Analysis:
    blocks: list[Block]
    labels: dict[str, int]  # label -> block index
    crossing: set[str]  # registers that carry a value from one block to another
    uniform: set[str]  # registers that hold one value for the whole warp
    definitions: dict[str, int]


def block_has(block: Block, *names: str) -> bool:
    return any(instruction.parts[0] in names for instruction in block.instructions)


def polling(block: Block) -> bool:
    """Whether the block looks at what other threads may change: who goes around it may be waiting."""
    return any(
        item.parts[0] in ("atom", "call", "nanosleep", "mbarrier")
        or (item.parts[0] == "ld" and not _POLLED_LOADS.isdisjoint(item.parts))
        for item in block.instructions
    )


def is_barrier(instruction: Instruction) -> bool:
    parts = instruction.parts
    return parts[0] in ("bar", "barrier") and "warp" not in parts and "cluster" not in parts


def is_apart(instruction: Instruction) -> bool:
    """A barrier of all threads which the lanes of a warp may reach by different instructions."""
    return instruction.parts in (("barrier", "sync"), ("barrier", "cta", "sync")) and (
        instruction.operands == (Immediate(0),)
    )


def analyse(
    function: Function,
    ends_block: Callable[[Instruction], bool],
    gathers: Callable[[Instruction], bool] = lambda _: False,
) -> Analysis:
    """`ends_block` names instructions, besides branches, after which other lanes may run than before;
    `gathers` those at which the lanes of a warp should stand together."""
    _require_operands(function)
    blocks, labels = _split(function, ends_block, gathers)
    crossing = _crossing(blocks)
    uniform, definitions = _uniform(function, blocks)
    return Analysis(blocks, labels, crossing, uniform, definitions)


def _require_operands(function: Function) -> None:
    for item in function.body:
        if isinstance(item, Instruction) and len(item.operands) < _LEAST_OPERANDS.get(item.parts[0], 0):
            raise PtxError(f"unsupported: {item.opcode} with {len(item.operands)} operands", item.line)


def _split(
    function: Function,
    ends_block: Callable[[Instruction], bool],
    gathers: Callable[[Instruction], bool],
) -> tuple[list[Block], dict[str, int]]:
    blocks = [Block(0)]
    labels: dict[str, int] = {}
    constants = _constants(function)

    def start() -> None:
        if blocks[-1].instructions:
            blocks.append(Block(len(blocks)))

    for item in _plain_barriers(function):
        if isinstance(item, Label):
            start()
            labels[item.name] = len(blocks) - 1
            continue
        if is_barrier(item):
            start()
            blocks[-1].barrier = True
        mask = _member_mask(item)
        if isinstance(mask, Register) and mask.name not in constants and mask not in blocks[-1].members:
            if any(mask.name in uses_and_definitions(other)[1] for other in blocks[-1].instructions):
                start()
            blocks[-1].members.append(mask)
        blocks[-1].instructions.append(item)
        named = ALL_LANES if gathers(item) else _named_lanes(item, constants)
        if named is not None:
            blocks[-1].collective = (blocks[-1].collective or 0) | named
        if item.parts[0] in TERMINATORS or ends_block(item):
            start()
    return blocks, labels


def _plain_barriers(function: Function) -> Iterator[Instruction | Label]:
    """The body, with `@p bar.sync 0;` as a branch around `bar.sync 0;`."""
    for number, item in enumerate(function.body):
        if isinstance(item, Label) or item.guard is None or not is_barrier(item):
            yield item
            continue
        around = Label(f"around barrier {number}")
        yield replace(
            item,
            opcode="bra",
            parts=("bra",),
            operands=(Symbol(around.name, 0),),
            guard_negated=not item.guard_negated,
        )
        yield replace(item, guard=None, guard_negated=False)
        yield around


def _constants(function: Function) -> dict[str, int]:
    """Registers whose only definition moves an integer constant into them: nvcc keeps member masks so."""
    moved: dict[str, int] = {}
    definitions: dict[str, int] = {}
    for item in function.body:
        if isinstance(item, Label):
            continue
        for name in uses_and_definitions(item)[1]:
            definitions[name] = definitions.get(name, 0) + 1
        if item.parts[0] == "mov" and item.guard is None:
            target, source = item.operands[:2]
            if isinstance(target, Register) and isinstance(source, Immediate) and not source.float_bits:
                moved[target.name] = source.value
    return {name: value for name, value in moved.items() if definitions[name] == 1}


def _named_lanes(instruction: Instruction, constants: dict[str, int]) -> int | None:
    """The constant member mask of a warp collective."""
    if instruction.parts[0] in _WHOLE_WARP or instruction.parts[:2] == ("barrier", "cluster"):
        return 0xFFFFFFFF
    mask = _member_mask(instruction)
    value = mask.value if isinstance(mask, Immediate) else None
    if isinstance(mask, Register):
        value = constants.get(mask.name)
    return None if value is None else value & 0xFFFFFFFF


def is_collective(instruction: Instruction) -> bool:
    return instruction.parts[0] in _WHOLE_WARP or _member_mask(instruction) is not None


def _member_mask(instruction: Instruction) -> Operand:
    """The member mask of a warp collective, if it has one."""
    parts = instruction.parts
    if ("sync" not in parts and "warp" not in parts) or is_barrier(instruction) or not instruction.operands:
        return None
    if parts[0] in ("shfl", "vote", "match", "redux", "elect") or parts[:2] == ("bar", "warp"):
        return instruction.operands[-1]
    return None


def registers_of(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, Address):
        yield from registers_of(operand.base)
    elif isinstance(operand, Negated | Part):
        yield operand.register.name
    elif isinstance(operand, Minus):
        yield from registers_of(operand.operand)
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from registers_of(item)
    elif isinstance(operand, Texel):
        yield from registers_of(operand.base)
        yield from registers_of(operand.coordinates)
    elif isinstance(operand, Pair):
        yield from registers_of(operand.first)
        yield from registers_of(operand.second)


def uses_and_definitions(instruction: Instruction) -> tuple[list[str], list[str]]:
    uses: list[str] = []
    defined: list[str] = []
    operands = instruction.operands
    if (
        operands
        and instruction.parts[0] not in NO_DESTINATION
        and instruction.parts[:2] not in NO_DESTINATION_FORMS
    ):
        defined = list(registers_of(operands[0]))
        operands = operands[1:]
    for operand in operands:
        uses.extend(registers_of(operand))
    if instruction.parts[0] in _READ_CARRY:
        uses.append(CARRY)
    if "cc" in instruction.parts:
        defined.append(CARRY)
    if instruction.guard is not None:
        uses.append(instruction.guard.name)
    if instruction.call is not None and isinstance(instruction.call.callee, Register):
        uses.append(instruction.call.callee.name)
    return uses, defined


def _crossing(blocks: list[Block]) -> set[str]:
    """Registers read in a block before it has surely written them. A guarded write is not a sure one."""
    crossing: set[str] = set()
    for block in blocks:
        crossing.update(mask.name for mask in block.members)
        written: set[str] = set()
        for instruction in block.instructions:
            uses, defined = uses_and_definitions(instruction)
            crossing.update(name for name in uses if name not in written)
            if instruction.guard is None:
                written.update(defined)
    return crossing


def _uniform(function: Function, blocks: list[Block]) -> tuple[set[str], dict[str, int]]:
    """Registers with one definition, from constants, parameters and block indices alone.

    Whenever such a definition runs it gives the same value, so no lane can ever see another one, however
    the warp has diverged.
    """
    definitions: dict[str, int] = {}
    for block in blocks:
        for instruction in block.instructions:
            for name in uses_and_definitions(instruction)[1]:
                definitions[name] = definitions.get(name, 0) + 1
    uniform: set[str] = set()
    changed = True
    while changed:
        changed = False
        for block in blocks:
            for instruction in block.instructions:
                if instruction.guard is not None or instruction.parts[0] not in UNIFORM_OPERATIONS:
                    continue
                defined = uses_and_definitions(instruction)[1]
                if not defined or all(name in uniform for name in defined):
                    continue
                if all(definitions[name] == 1 for name in defined) and _is_uniform(
                    function, instruction, uniform
                ):
                    uniform.update(defined)
                    changed = True
    return uniform, definitions


def _is_uniform(function: Function, instruction: Instruction, uniform: set[str]) -> bool:
    parts = instruction.parts
    if parts[0] == "ld":
        address = instruction.operands[1]
        return (
            function.entry
            and parts[1:2] == ("param",)
            and isinstance(address, Address)
            and isinstance(address.base, Symbol)
            and "@" not in address.base.name
        )
    if parts[0] in ("cvt", "add", "sub", "mul", "fma", "mad", "abs", "neg", "min", "max", "setp"):
        plain = {"rn", "lo", "hi", "wide", "ftz", "rz", "rm", "rp", "sat", "rni", "rzi", "rmi", "rpi", "cc"}
        if parts[-1].startswith("f") and plain.intersection(parts) - {"rn", "wide", "lo"}:
            return False
        if parts[0] == "cvt" and any(part.startswith(("f", "bf")) and part != "ftz" for part in parts):
            return False
        if "cc" in parts or any("x2" in part or part.startswith("bf") or part == "f16" for part in parts):
            return False
    return all(_operand_uniform(operand, uniform) for operand in instruction.operands[1:])


def _operand_uniform(operand: Operand, uniform: set[str]) -> bool:
    if isinstance(operand, Register):
        return operand.name in uniform
    if isinstance(operand, Negated):
        return operand.register.name in uniform
    if isinstance(operand, Immediate):
        return True
    if isinstance(operand, Symbol):
        return not operand.name.startswith("%") or operand.name.startswith(UNIFORM_SPECIALS)
    return False


def branch_target(instruction: Instruction, labels: dict[str, int]) -> int:
    target = instruction.operands[0]
    if isinstance(target, Symbol) and target.name in labels:
        return labels[target.name]
    raise PtxError(f"unsupported: {instruction.opcode} to {target!r}", instruction.line)


def index_targets(instruction: Instruction, labels: dict[str, int]) -> list[int]:
    """Blocks that `brx.idx` goes to, by index."""
    for name in instruction.targets:
        if name not in labels:
            raise PtxError(f"unsupported: {instruction.opcode} to {name}", instruction.line)
    return [labels[name] for name in instruction.targets]

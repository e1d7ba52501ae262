"""Lowering of what lanes do together: shuffles, votes, matches, barriers; and of special registers."""

from __future__ import annotations

from sandbox.emulator.lowering import abi
from sandbox.emulator.lowering.arithmetic import binary, compare, handles, intrinsic
from sandbox.emulator.lowering.builder import Builder, Value, element_type
from sandbox.emulator.lowering.cluster import ALIASES, CONSTANTS, cluster_barrier
from sandbox.emulator.lowering.layout import RESERVED_NAMES, RESERVED_SHARED
from sandbox.ptx.model import Instruction, Operand, Pair

_SHUFFLES = {"up": 0, "down": 1, "bfly": 2, "idx": 3}
_WARP_WORDS = {
    **{f"%ctaid.{axis}": abi.WARP_CTAID + 4 * i for i, axis in enumerate("xyz")},
    **{f"%nctaid.{axis}": abi.WARP_NCTAID + 4 * i for i, axis in enumerate("xyz")},
    **{f"%ntid.{axis}": abi.WARP_NTID + 4 * i for i, axis in enumerate("xyz")},
    "%warpid": abi.WARP_WARPID,
    "%nwarpid": abi.WARP_NWARPID,
    "%total_smem_size": abi.WARP_SHARED_TOTAL,
    "%dynamic_smem_size": abi.WARP_SHARED_DYNAMIC,
    "%smid": abi.WARP_SMID,
    "%nsmid": abi.WARP_NSMID,
    "%gridid": abi.WARP_GRIDID,
    # Where cooperative_groups finds the workspace of a grid, high half first.
    "%envreg1": abi.WARP_WORKSPACE + 4,
    "%envreg2": abi.WARP_WORKSPACE,
}
# The part of a block's shared memory that is the system's, by its two ends; `_cap` is where a block's own may
# start, and cooperative_groups uses what follows `_1`.
_RESERVED = {"begin": 0, "0": 0, "1": 0, "end": RESERVED_SHARED, "cap": RESERVED_SHARED}
_TIMERS = {"%clock": "kw_clock", "%clock64": "kw_clock", "%globaltimer": "kw_globaltimer"}
_LANE_MASKS = {
    "%lanemask_eq": lambda lane: 1 << lane,
    "%lanemask_lt": lambda lane: (1 << lane) - 1,
    "%lanemask_le": lambda lane: (2 << lane) - 1,
    "%lanemask_gt": lambda lane: ~((2 << lane) - 1) & 0xFFFFFFFF,
    "%lanemask_ge": lambda lane: ~((1 << lane) - 1) & 0xFFFFFFFF,
}


def special_register(build: Builder, name: str) -> Value | None:
    """The value of `%tid.x` and its like; None when the name is no special register."""
    if name == "WARP_SZ":  # the one constant that PTX names
        return Value("32", "i32", True)
    if not name.startswith("%"):
        return None
    name = ALIASES.get(name, name)
    if name in CONSTANTS:
        return Value(str(CONSTANTS[name]), "i32", True)
    if name in _WARP_WORDS:
        place = build.op(f"getelementptr i8, ptr %w, i64 {_WARP_WORDS[name]}")
        return Value(build.op(f"load i32, ptr {place}"), "i32", True)
    if name.startswith("%tid."):
        place = build.op(f"getelementptr i8, ptr %w, i64 {abi.WARP_TID + 128 * 'xyz'.index(name[-1])}")
        return Value(build.op(f"load <32 x i32>, ptr {place}, align 64"), "i32")
    if name.startswith(RESERVED_NAMES) and name.removeprefix(RESERVED_NAMES) in _RESERVED:
        return Value(str(_RESERVED[name.removeprefix(RESERVED_NAMES)]), "i32", True)
    if name == "%aggr_smem_size":  # the system's part included
        own = special_register(build, "%total_smem_size")
        assert own is not None
        return binary(build, "add", own, Value(str(RESERVED_SHARED), "i32", True))
    if name == "%is_explicit_cluster":
        return Value("false", "i1", True)
    if name == "%laneid":
        return Value(_lanes(range(32)), "i32")
    if name in _LANE_MASKS:
        return Value(_lanes(_LANE_MASKS[name](lane) for lane in range(32)), "i32")
    timer, _, half = name.partition("_")
    if timer in _TIMERS:
        return _timer(build, timer, half)
    raise build.unsupported(f"special register {name}")


def _timer(build: Builder, name: str, half: str) -> Value:
    """%clock and %globaltimer, or one half of them: _hi, _lo."""
    helper = _TIMERS[name]
    build.declare(helper, "i64", "ptr")
    value = build.op(f"call i64 @{helper}(ptr %w)")
    if half == "hi":
        value = build.op(f"lshr i64 {value}, 32")
    whole = Value(value, "i64", True)
    return build.convert("trunc", whole, "i32") if half or name == "%clock" else whole


def _lanes(values: object) -> str:
    signed = (value - (1 << 32) if value >> 31 else value for value in values)  # type: ignore[attr-defined]
    return "<" + ", ".join(f"i32 {value}" for value in signed) + ">"


def _members(build: Builder, operand: Operand | None) -> str:
    """Pointer to the member mask that each lane gives; without an operand, the running lanes."""
    value = Value("%M", "i32", True) if operand is None else build.operand(operand, "i32")
    return build.pass_vector("members", value)


@handles("shfl")
def shuffle(build: Builder, instruction: Instruction) -> None:
    """shfl{.sync}.mode.b32 d[|p], a, b, c[, members]"""
    parts, operands = instruction.parts, instruction.operands
    synced = "sync" in parts
    mode = _SHUFFLES[parts[2] if synced else parts[1]]
    value = build.pass_vector("in0", build.operand(operands[1], "i32"))
    lanes = build.pass_vector("in1", build.operand(operands[2], "i32"))
    clamp = build.pass_vector("in3", build.operand(operands[3], "i32"))
    members = _members(build, operands[4] if synced else None)
    out = build.buffer("out0")
    build.declare("kw_shfl", "i32", "ptr, i32, i32, ptr, i32, ptr, ptr, ptr, ptr")
    valid = build.op(
        f"call i32 @kw_shfl(ptr %w, i32 {build.line}, i32 {mode}, ptr {members}, "
        f"i32 {build.effective_mask()}, ptr {value}, ptr {lanes}, ptr {clamp}, ptr {out})"
    )
    _receive(build, operands[0], out, valid)


def _receive(build: Builder, target: Operand, out: str, predicate: str) -> None:
    """32 results, and a predicate where the destination is a pair d|p."""
    result = Value(build.op(f"load <32 x i32>, ptr {out}, align 64"), "i32")
    if isinstance(target, Pair):
        build.write(target.first, result)
        build.write(target.second, Value(predicate, "mask", True))
    else:
        build.write(target, result)


@handles("vote")
def vote(build: Builder, instruction: Instruction) -> None:
    parts, operands = instruction.parts, instruction.operands
    synced = "sync" in parts
    mode = parts[1] if parts[1] != "sync" else parts[2]  # inline assembly also says vote.ballot.sync
    predicate = build.as_mask(build.operand(operands[1], "i1"))
    members = _members(build, operands[2] if synced else None)
    out = build.buffer("out0")
    name = f"kw_vote_{mode}"
    build.declare(name, "i32", "ptr, i32, ptr, i32, i32, ptr")
    yes = build.op(
        f"call i32 @{name}(ptr %w, i32 {build.line}, ptr {members}, i32 {build.effective_mask()}, "
        f"i32 {predicate}, ptr {out})"
    )
    if mode == "ballot":
        build.write(operands[0], Value(build.op(f"load <32 x i32>, ptr {out}, align 64"), "i32"))
    else:
        build.write(operands[0], Value(yes, "mask", True))


@handles("elect")
def elect(build: Builder, instruction: Instruction) -> None:
    """elect.sync d|p, members: the lowest member leads."""
    target, operand = instruction.operands
    effective = build.effective_mask()
    members = build.splat(build.operand(operand, "i32"))
    build.declare("kw_vote_any", "i32", "ptr, i32, ptr, i32, i32, ptr")
    build.op(
        f"call i32 @kw_vote_any(ptr %w, i32 {build.line}, ptr {build.pass_vector('members', members)}, "
        f"i32 {effective}, i32 0, ptr {build.buffer('out0')})"
    )
    present = binary(build, "and", members, Value(effective, "i32", True))
    leader = intrinsic(build, "llvm.cttz", [present], ", i1 false")
    if not isinstance(target, Pair):
        raise build.unsupported(instruction.opcode)
    build.write(target.first, leader)
    build.write(target.second, compare(build, "icmp eq", leader, Value(_lanes(range(32)), "i32")))


@handles("activemask")
def active_mask(build: Builder, instruction: Instruction) -> None:
    build.write(instruction.operands[0], Value("%M", "i32", True))


@handles("match")
def match(build: Builder, instruction: Instruction) -> None:
    parts, operands = instruction.parts, instruction.operands
    kind = element_type(parts[-1])
    value = build.pass_vector("in0", build.operand(operands[1], kind))
    members = _members(build, operands[2])
    out = build.buffer("out0")
    name = f"kw_match_{parts[1]}_{kind}"
    build.declare(name, "i32", "ptr, i32, ptr, i32, ptr, ptr")
    same = build.op(
        f"call i32 @{name}(ptr %w, i32 {build.line}, ptr {members}, i32 {build.effective_mask()}, "
        f"ptr {value}, ptr {out})"
    )
    _receive(build, operands[0], out, same)


@handles("redux")
def reduce(build: Builder, instruction: Instruction) -> None:
    """redux.sync.op.type d, a, members"""
    parts, operands = instruction.parts, instruction.operands
    if parts[-1] not in ("s32", "u32", "b32"):
        raise build.unsupported(instruction.opcode)
    value = build.pass_vector("in0", build.operand(operands[1], "i32"))
    members = _members(build, operands[2])
    out = build.buffer("out0")
    name = f"kw_redux_{parts[2]}_{parts[3]}"
    build.declare(name, "void", "ptr, i32, ptr, i32, ptr, ptr")
    build.emit(
        f"call void @{name}(ptr %w, i32 {build.line}, ptr {members}, i32 {build.effective_mask()}, "
        f"ptr {value}, ptr {out})"
    )
    build.write(operands[0], Value(build.op(f"load <32 x i32>, ptr {out}, align 64"), "i32"))


@handles("bar", "barrier")
def barrier(build: Builder, instruction: Instruction) -> None:
    """Block-wide ones come first in their basic block, and all live lanes of the warp are there."""
    parts, operands = instruction.parts, instruction.operands
    if "cluster" in parts:
        cluster_barrier(build, instruction)
        return
    if "warp" in parts:
        members = _members(build, operands[0])
        build.declare("kw_syncwarp", "void", "ptr, i32, ptr, i32")
        build.emit(
            f"call void @kw_syncwarp(ptr %w, i32 {build.line}, ptr {members}, i32 {build.effective_mask()})"
        )
        return
    if build.guard is not None or ("sync" not in parts and "arrive" not in parts and "red" not in parts):
        raise build.unsupported(
            f"{instruction.opcode} under a predicate" if build.guard else instruction.opcode
        )
    site = build.context.site(abi.SITE_BARRIER, build.line)
    reduction = "red" in parts
    rest = list(operands[1 if reduction else 0 :])
    predicate = rest.pop() if reduction else None
    number = _scalar(build, rest[0])
    threads = _scalar(build, rest[1]) if len(rest) > 1 else "0"
    if "arrive" in parts:
        build.declare("kw_barrier_arrive", "void", "ptr, i32, i32, i32")
        build.emit(f"call void @kw_barrier_arrive(ptr %w, i32 {site}, i32 {number}, i32 {threads})")
        return
    if not reduction:
        build.declare("kw_barrier", "void", "ptr, i32, i32, i32")
        build.emit(f"call void @kw_barrier(ptr %w, i32 {site}, i32 {number}, i32 {threads})")
        return
    mode = {"popc": 0, "and": 1, "or": 2}[next(part for part in parts if part in ("popc", "and", "or"))]
    votes = build.as_mask(build.operand(predicate, "i1"))
    build.declare("kw_barrier_reduce", "i32", "ptr, i32, i32, i32, i32, i32")
    result = build.op(
        f"call i32 @kw_barrier_reduce(ptr %w, i32 {site}, i32 {number}, i32 {threads}, "
        f"i32 {mode}, i32 {votes})"
    )
    if mode == 0:
        build.write(operands[0], Value(result, "i32", True))
    else:
        build.write(operands[0], Value(result, "mask", True))


def _scalar(build: Builder, operand: Operand) -> str:
    value = build.operand(operand, "i32")
    if value.scalar:
        return value.text
    place = build.pass_vector("in2", value)
    build.declare("kw_first_lane", "i32", "i32, ptr")
    return build.op(f"call i32 @kw_first_lane(i32 %M, ptr {place})")


@handles("nanosleep")
def sleep(build: Builder, instruction: Instruction) -> None:
    time = build.pass_vector("in0", build.operand(instruction.operands[0], "i32"))
    build.declare("kw_sleep", "void", "ptr, i32, ptr")
    build.emit(f"call void @kw_sleep(ptr %w, i32 {build.effective_mask()}, ptr {time})")

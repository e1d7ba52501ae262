"""Lowering of what a kernel asks of its cluster. Clusters have one block; larger ones are unsupported."""

from __future__ import annotations

from sandbox.emulator.lowering.arithmetic import handles
from sandbox.emulator.lowering.builder import Builder, Value
from sandbox.ptx.model import Immediate, Instruction

# Special registers that equal others, and those that are constants.
ALIASES = {
    **{f"%clusterid.{axis}": f"%ctaid.{axis}" for axis in "xyz"},
    **{f"%nclusterid.{axis}": f"%nctaid.{axis}" for axis in "xyz"},
}
CONSTANTS = {
    **{f"%cluster_ctaid.{axis}": 0 for axis in "xyz"},
    **{f"%cluster_nctaid.{axis}": 1 for axis in "xyz"},
    "%cluster_ctarank": 0,
    "%cluster_nctarank": 1,
}


def _require(build: Builder, instruction: Instruction, known: set[str]) -> None:
    if not set(instruction.parts[1:]) <= known:
        raise build.unsupported(instruction.opcode)


@handles("mapa")
def map_address(build: Builder, instruction: Instruction) -> None:
    """mapa{.shared::cluster}.type d, a, rank: in a cluster of one block every address is its own."""
    _require(build, instruction, {"shared::cluster", "u32", "u64"})
    target, source, rank = instruction.operands
    if isinstance(rank, Immediate) and rank.value != 0:
        raise build.unsupported(f"{instruction.opcode} of another block of a cluster")
    build.write(target, build.operand(source, f"i{instruction.parts[-1][1:]}"))


@handles("getctarank")
def rank_of(build: Builder, instruction: Instruction) -> None:
    build.write(instruction.operands[0], Value("0", "i32", True))


def cluster_barrier(build: Builder, instruction: Instruction) -> None:
    """barrier.cluster.arrive and barrier.cluster.wait."""
    parts = instruction.parts
    _require(build, instruction, {"cluster", "arrive", "wait", "release", "acquire", "relaxed", "aligned"})
    helper = "kw_cluster_arrive" if "arrive" in parts else "kw_cluster_wait"
    build.declare(helper, "void", "ptr, i32")
    build.emit(f"call void @{helper}(ptr %w, i32 {build.effective_mask()})")

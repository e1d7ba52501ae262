"""Lowering of what only advises the hardware: nothing is left to do here."""

from __future__ import annotations

from sandbox.emulator.lowering.arithmetic import PARTS, handles, integer
from sandbox.emulator.lowering.builder import Builder
from sandbox.ptx.model import Instruction

_EVICTION = "evict_last evict_normal evict_first evict_unchanged"
_PRIORITIES = " ".join(f"{level}::{how}" for level in ("L1", "L2") for how in _EVICTION.split())


@handles("prefetch", "prefetchu", parts=f"global local param const tensormap L1 L2 {_PRIORITIES}")
@handles("applypriority", parts="global L2::evict_normal")
@handles("pmevent", parts="mask")
@handles("setmaxnreg", parts="inc dec sync aligned u32")
def no_effect(build: Builder, instruction: Instruction) -> None:
    """Caches, counters of events and the sharing of registers between warps."""
    if "tensormap" in instruction.parts:
        raise build.unsupported(instruction.opcode)


@handles("discard", parts="global L2")
def discard(build: Builder, instruction: Instruction) -> None:
    """The line may lose what it holds; here it keeps it, which is one of the values it may have."""


@handles("griddepcontrol", parts="launch_dependents wait")
def dependent_grids(build: Builder, instruction: Instruction) -> None:
    """Grids run one after another, in the order of their launches: nothing is early, nothing waits."""


@handles("createpolicy", parts=f"fractional range cvt global L2 {_PRIORITIES} b64")
def cache_policy(build: Builder, instruction: Instruction) -> None:
    """Opaque, for `.L2::cache_hint` alone, which takes any."""
    build.write(instruction.operands[0], integer(build, 0, "i64"))


# What loads, stores and warp-wide instructions may say; their handlers stand elsewhere. Orders and scopes
# mean nothing more here: every access is seen by all at once. Cache operators are hints.
_TYPES = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f32 f64"
_ACCESS = (
    "weak relaxed volatile mmio cta cluster gpu sys global local param param::entry param::func shared "
    f"shared::cta shared::cluster L1::no_allocate {_PRIORITIES} L2::cache_hint v2 v4 v8 {_TYPES}"
)
_FORMS = {
    "ld": f"{_ACCESS} const acquire unified nc ca cg cs lu cv L2::64B L2::128B L2::256B",
    "ldu": f"global v2 v4 {_TYPES}",
    "st": f"{_ACCESS} release wb cg cs wt",
    "shfl": "sync up down bfly idx b32",
    "vote": "sync all any uni ballot pred b32",
    "match": "sync any all b32 b64",
    "redux": "sync add min max and or xor s32 u32 b32",
    "activemask": "b32",
    "elect": "sync",
    "nanosleep": "u32",
    "isspacep": "global local shared shared::cta shared::cluster param param::entry",
}
PARTS.update({name: frozenset(parts.split()) for name, parts in _FORMS.items()})

"""What the emulator counted. Raw numbers only; `sandbox.metrics` turns them into metrics and scores.

Counts are exact and summed over all warps of a launch, or of a sample of its blocks, one row per source line
(`.loc`, the innermost line in the candidate's own file). A request is one warp-wide memory instruction with
at least one active lane.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sandbox.types import Data


class LineCounts(Data):
    line: int  # 0 when nvcc gave none
    file: str = ""
    instructions: int = 0  # warp instructions executed with at least one active lane
    active_lanes: int = 0  # summed over those instructions
    global_load_requests: int = 0
    global_load_sectors: int = 0  # distinct 32-byte sectors per request, summed
    global_load_bytes: int = 0  # distinct bytes asked for per request, summed: the useful bytes
    global_load_ideal: int = 0  # sectors those bytes need at least: ceil(bytes / 32) per request, summed
    global_store_requests: int = 0
    global_store_sectors: int = 0
    global_store_bytes: int = 0
    global_store_ideal: int = 0
    shared_load_requests: int = 0
    shared_load_wavefronts: int = 0  # actual
    shared_load_ideal: int = 0  # what the same bytes need at least; conflicts = wavefronts - ideal
    shared_store_requests: int = 0
    shared_store_wavefronts: int = 0
    shared_store_ideal: int = 0
    local_bytes: int = 0  # loaded and stored in local memory, all lanes
    flop_fp16: int = 0  # add, mul 1; fma 2; counted at PTX level, active lanes only
    flop_fp32: int = 0
    flop_fp64: int = 0
    branches: int = 0  # conditional branches executed by a warp
    divergent_branches: int = 0  # of those, the ones whose active lanes went both ways
    barriers: int = 0  # bar.sync arrivals, by warp
    barriers_executed: int = 0  # block-wide barriers completed
    useless_barriers: int = 0  # of those, the ones that ordered no conflicting access of two threads
    atomics: int = 0  # requests, in global and shared memory
    shared_atomics: int = 0  # of those, the ones in shared memory
    atomic_lanes: int = 0
    atomic_addresses: int = 0  # distinct addresses per request, summed


class Spread(Data):
    """Distribution of executed warp instructions over warps or over blocks."""

    count: int
    mean: float
    minimum: int
    maximum: int
    standard_deviation: float


class LaunchTrace(Data):
    kernel: str  # mangled
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    static_shared_bytes: int
    dynamic_shared_bytes: int
    threads: int
    counted_blocks: int | None = None  # all that is counted is of so many blocks, a sample; None: of all
    barriers_executed: int  # block-wide barriers completed, summed over blocks
    useless_barriers: int  # of those, the ones that ordered no conflicting access of two threads
    distinct_load_sectors: int  # over the whole launch
    distinct_store_sectors: int
    warps: Spread
    blocks: Spread
    lines: list[LineCounts]


class DeviceFault(Data):
    """A check that fired: what compute-sanitizer would have said."""

    kind: Literal[
        "out of bounds",
        "null",
        "use after free",
        "misaligned",
        "uninitialised",
        "race",
        "barrier",
        "deadlock",
        "assert",
        "trap",
        "stack overflow",
        "bad call",  # through a pointer to something else than a fitting function
        "bad free",
    ]
    message: str  # one sentence with the address and the allocation nearest to it
    kernel: str  # mangled
    line: int | None
    file: str = ""  # the user's, as the compiler was given it
    block: tuple[int, int, int] | None = None  # None where the device does not tell
    thread: tuple[int, int, int] | None = None
    address: int | None = None
    space: str = ""  # "global", "shared", "local", ...


class Finding(DeviceFault):
    """What a check found in a launch that went on."""

    severity: Literal["error", "note"]  # a note is worth knowing, and no error
    bytes: int | None  # of the access
    other_line: int | None  # of a race: the other access, where known
    allocation: str  # the one at or next to the address; empty where there is none
    allocation_bytes: int | None
    count: int  # equal findings: same kind, kernel, line and space


class ReplayResult(Data):
    """One replayed plan."""

    status: Literal["ok", "fault", "timeout", "unsupported"]
    fault: DeviceFault | None = None
    message: str = ""  # for "unsupported": the PTX instruction and its source line
    launches: list[LaunchTrace] = Field(default_factory=list)  # empty when counting was off
    findings: list[Finding] = Field(default_factory=list)  # of a replay that keeps going
    output: str = ""  # what kernels printed, capped

"""What the judge returns, in the names that the command line, REST, events and the database share.

Everything here is frozen data that crosses a process or a wire, hence pydantic. A value that does not
exist is None, never a sentinel.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Backend = Literal["emulator", "gpu"]
Fault = Literal["candidate", "task", "kernelwright"]
Verdict = Literal[
    "passed",
    "compile_error",
    "launch_error",
    "wrong_result",
    "runtime_error",
    "timeout",
    "unsupported",
    "rule_violation",
    "degenerate_task",
    "internal_error",
]


class Data(BaseModel):
    """Base of all frozen data: unknown fields are an error, so that drift between two sides is loud."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Problem(Data):
    """Why something cannot be done, for a person: what happened, where, and what to do next."""

    kind: (
        str  # stable slug, e.g. "parse_error", "several_functions", "unknown_extent", "unsupported_construct"
    )
    message: str  # one sentence, no full stop needed for a colon list
    hint: str = ""  # what to do; empty when there is nothing to do
    file: str = ""
    line: int | None = None
    column: int | None = None
    choices: list[str] = Field(default_factory=list)  # e.g. the functions to choose from, the arrays to size


class Diagnostic(Data):
    """One message of nvcc or ptxas."""

    file: str
    line: int | None  # in the candidate, 1-based; None for messages without a place
    column: int | None
    severity: Literal["error", "warning", "note"]
    message: str


class CompiledKernel(Data):
    """What ptxas says of one `__global__` function."""

    name: str  # demangled, without parameters
    symbol: str  # mangled
    registers: int  # per thread
    shared_bytes: int  # static, per block
    local_bytes: int  # stack frame, per thread
    spill_store_bytes: int
    spill_load_bytes: int


class Compilation(Data):
    seconds: float
    log: str
    diagnostics: list[Diagnostic]
    kernels: list[CompiledKernel]


class PlannedLaunch(Data):
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int  # dynamic, per block


class PlanSummary(Data):
    """The launch plan at the representative size."""

    launches: list[PlannedLaunch]
    scratch_bytes: int
    copies: int  # memcpy operations in the plan, device to device and host to device


class Mismatch(Data):
    """The first element that is wrong."""

    array: str
    index: list[int]  # as far as the array's shape is known, else one flat index
    got: float | int | str
    expected: float | int | str
    draw: int
    sizes: dict[str, int]
    inputs: dict[str, float | int] = Field(default_factory=dict)  # values it depends on, where cheap

    @property
    def place(self) -> str:
        """The element as in the source: "y[3][1]"."""
        return self.array + "".join(f"[{i}]" for i in self.index)


class Check(Data):
    name: str  # stable slug, e.g. "outputs", "inputs_unchanged", "guard_bytes", "tolerance_zeros"
    passed: bool
    detail: str


class Verification(Data):
    draws: int
    sizes: list[dict[str, int]]  # of each draw
    distributions: list[str]  # of each draw
    seed: str  # hex; secret until the evaluation is over
    max_error: float | None  # largest normalised error over all draws; None for integers only
    allowed_error: float | None
    first_mismatch: Mismatch | None
    checks: list[Check]
    draws_passed: int | None = None  # None where the judge did not count them


class LineMetrics(Data):
    """What one source line of a kernel cost, summed over all warps. Zero fields are real zeros."""

    line: int
    instructions: int = 0  # warp instructions
    active_threads_per_warp: float = 0.0
    global_load_requests: int = 0
    global_load_sectors: int = 0
    global_load_bytes: int = 0  # useful bytes: what 32 * sectors would be if nothing were wasted
    global_store_requests: int = 0
    global_store_sectors: int = 0
    global_store_bytes: int = 0
    shared_load_requests: int = 0
    shared_load_bank_conflicts: int = 0
    shared_store_requests: int = 0
    shared_store_bank_conflicts: int = 0
    divergent_branches: int = 0
    branches: int = 0
    barriers: int = 0  # arrivals of warps
    barriers_executed: int = 0  # block-wide
    useless_barriers: int = 0  # of those, the ones that ordered nothing
    atomics: int = 0
    atomic_lanes_per_address: float | None = None
    local_bytes: int = 0
    flop: int = 0


class Flop(Data):
    fp16: int = 0
    fp32: int = 0
    fp64: int = 0


class KernelMetrics(Data):
    """One launch, measured. Units: bytes, counts of warp-level requests, 32-byte sectors, ratios in 0..1.

    Equal launches (same kernel, grid, block and shared memory) are one entry: counts are their sums.
    """

    name: str
    launches: int = 1
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    global_load_requests: int
    global_load_sectors: int
    global_store_requests: int
    global_store_sectors: int
    global_load_efficiency: float | None  # useful bytes over moved bytes; None when nothing was loaded
    global_store_efficiency: float | None
    shared_load_bank_conflicts: int  # extra wavefronts
    shared_store_bank_conflicts: int
    instructions: int  # warp instructions
    active_threads_per_warp: float
    theoretical_occupancy: float
    occupancy_limiter: str  # "registers" | "shared_memory" | "block_size" | "warps" | "blocks"
    occupancy_next_step: str = ""  # what would let an SM hold more warps; empty when it is full
    flop: Flop
    dram_bytes: int  # distinct sectors touched times 32: compulsory traffic, an estimate
    reread_factor: float | None = None  # sectors requested over distinct sectors
    arithmetic_intensity: float | None  # FLOP per DRAM byte, an estimate like dram_bytes
    ridge_intensity: float | None = None  # FLOP per byte at which the compute roof takes over
    roof: str = ""  # which binds: "dram_bandwidth" | "fp16" | "fp32" | "fp64"; empty for neither
    attainable_share_of_peak: float | None = None  # the roofline's height at this intensity, 0..1
    barriers_per_thread: float
    barriers_executed: int = 0  # block-wide
    useless_barriers: int  # of those, the ones that ordered nothing
    atomics: int
    atomic_lanes_per_address: float | None
    warp_instruction_spread: float  # coefficient of variation over warps
    block_instruction_spread: float
    waves: float
    tail_fraction: float  # idle share of the last wave
    local_bytes: int  # per thread
    # Blocks of all launches, and those that were counted. Fewer: a sample, and every count is an estimate.
    blocks: int = 0
    counted_blocks: int = 0
    lines: list[LineMetrics]


class Metrics(Data):
    structural_score: float  # 0..100
    families: dict[str, float]  # each 0..1
    measured_by: Literal["emulator", "ncu"]
    kernels: list[KernelMetrics]
    notes: list[str] = Field(default_factory=list)  # one per family: the number and the line behind the score
    sizes: dict[str, int] = Field(default_factory=dict)  # the size it was measured at


class Interval(Data):
    median: float
    low: float
    high: float


class BaselineTime(Data):
    name: str  # "c", "eager", "torch.compile"
    us: float
    speedup: float
    speedup_low: float
    speedup_high: float


class Timing(Data):
    """GPU only; the emulator never has one."""

    candidate_us: Interval
    candidate_cv: float | None = None  # coefficient of variation of the candidate's timings
    baselines: list[BaselineTime]
    device: str = ""
    launches: Literal["graph", "stream"] | None = None  # how a plan was enqueued, the same for all sides
    empty_us: float | None = None  # what the same measurement says of no work at all; not subtracted
    trials: int | None = None  # of the candidate
    slowed: list[str] = Field(default_factory=list)  # why the card ran below its clock afterwards
    implausible: str = ""  # why nobody believes this time: a person has to look, and nothing is rewarded


class Reward(Data):
    unified: float
    milestone: int | None


class Evaluation(Data):
    verdict: Verdict
    fault: Fault | None
    message: str  # one sentence
    backend: Backend
    target: str
    compile: Compilation | None = None
    plan: PlanSummary | None = None
    verification: Verification | None = None
    metrics: Metrics | None = None
    timing: Timing | None = None
    reward: Reward | None = None  # filled by those who know trainer.reward: the command line and the web
    seconds: float | None = None  # wall time of the whole judgement
    stages: dict[str, float] = Field(default_factory=dict)  # seconds by stage
    jailed: bool = True

    @property
    def card_seconds(self) -> float:
        """How long it had a card: what is charged. Nobody pays for what Kernelwright broke."""
        if self.backend != "gpu" or self.fault == "kernelwright":
            return 0.0
        return sum(self.stages.get(stage, 0.0) for stage in ("replay", "verify", "time"))

    @property
    def score(self) -> float | None:
        return self.metrics.structural_score if self.verdict == "passed" and self.metrics else None

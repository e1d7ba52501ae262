"""What has to agree between the emulator and a card, and how closely.

A bound compares one number of the emulator with one made of Nsight Compute's counters; or the outputs. What
a card did not tell is "not measured", never "ok".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sandbox.agreement.build import Flags
from sandbox.agreement.case import Array, Case
from sandbox.agreement.profiler import Counters
from sandbox.emulator.trace import LaunchTrace, LineCounts
from sandbox.metrics import occupancy
from sandbox.metrics.launches import add_lines
from sandbox.targets import Target
from sandbox.types import CompiledKernel

Verdict = Literal["ok", "over", "not measured", "told"]  # told: no bound is asked of it

_GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
_WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
_SASS = "sm__sass_thread_inst_executed_op_{}_pred_on.sum"
_WIDE = ("fadd", "fmul", "ffma", "dadd", "dmul", "dfma")
_HALF = ("hadd", "hmul", "hfma")
_TENSOR = tuple(
    f"sm__ops_path_tensor_src_{kinds}.sum"
    for kinds in ("fp16_dst_fp32", "fp16_dst_fp16", "bf16_dst_fp32", "tf32_dst_fp32")
)
_LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"
_LANES_ON = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
_OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct"
_WARPS = "smsp__warps_launched.sum"
_MOST, _ALL = "smsp__inst_executed.max", "smsp__inst_executed.sum"
OPCODES = "sass__inst_executed_per_opcode"
THREAD_OPCODES = "sass__thread_inst_executed_true_per_opcode"
_DIRECTIONS = ("ld", "st")

METRICS: tuple[str, ...] = (
    *(_GLOBAL.format(what, way) for what in ("requests", "sectors") for way in _DIRECTIONS),
    *(_CONFLICTS.format(way) for way in _DIRECTIONS),
    *(_WAVEFRONTS.format(way) for way in _DIRECTIONS),
    *(_SASS.format(operation) for operation in (*_WIDE, *_HALF)),
    *_TENSOR,
    _LANES,
    _LANES_ON,
    _OCCUPANCY,
    "sm__warps_active.avg.pct_of_peak_sustained_active",  # achieved occupancy
    _WARPS,
    _MOST,
    _ALL,
    OPCODES,
    THREAD_OPCODES,
    # No bound needs these; they are in the document, for whoever looks into a difference.
    *(name.replace(".sum", "_sparsity_off.sum") for name in _TENSOR),
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    *(_GLOBAL.format("requests", way) for way in ("atom", "red")),
    *(_GLOBAL.format("requests", way).replace("global", "local") for way in _DIRECTIONS),
)


@dataclass(frozen=True)
class Row:
    """One comparison of one case."""

    case: str
    what: str
    emulator: float | None
    card: float | None
    bound: str
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class Emulated:
    """What the emulator counted of one launch, and what ptxas said of its kernel."""

    case: Case
    trace: LaunchTrace
    resources: CompiledKernel
    target: Target

    @property
    def totals(self) -> LineCounts:
        return add_lines(self.trace.lines)


Told = Callable[[Counters], float | None]


@dataclass(frozen=True)
class Bound:
    what: str
    allowed: float | None  # of the card's number, relative; None: it is told, and nothing is asked
    emulated: Callable[[Emulated], float | None]  # None: does not apply to this case
    counted: Told  # None: the card did not tell


# Counts -------------------------------------------------------------------------------------------------


def _metric(name: str) -> Told:
    return lambda counters: counters.values.get(name)


def _sum(*names: str) -> Told:
    """Of those that are there; None where none is."""

    def told(counters: Counters) -> float | None:
        found = [counters.values[name] for name in names if name in counters.values]
        return sum(found) if found else None

    return told


def _requests(way: str) -> Bound:
    long = {"ld": "load", "st": "store"}[way]
    return Bound(
        f"global {long} requests",
        0.01,
        lambda e: getattr(e.totals, f"global_{long}_requests"),
        _metric(_GLOBAL.format("requests", way)),
    )


def _sectors(way: str) -> Bound:
    long = {"ld": "load", "st": "store"}[way]
    return Bound(
        f"global {long} sectors",
        0.01,
        lambda e: getattr(e.totals, f"global_{long}_sectors"),
        _metric(_GLOBAL.format("sectors", way)),
    )


def _shared(way: str) -> tuple[Bound, Bound]:
    """Conflicts, and all wavefronts beside them: another counter, that hears nothing of other traffic."""
    long = {"ld": "load", "st": "store"}[way]

    def wavefronts(e: Emulated) -> float:
        return float(getattr(e.totals, f"shared_{long}_wavefronts"))

    def conflicts(e: Emulated) -> float:
        return wavefronts(e) - float(getattr(e.totals, f"shared_{long}_ideal"))

    return (
        Bound(f"shared {long} conflicts", 0.03, conflicts, _metric(_CONFLICTS.format(way))),
        Bound(f"shared {long} wavefronts", None, wavefronts, _metric(_WAVEFRONTS.format(way))),
    )


def _flop(e: Emulated) -> float | None:
    """fp32 and fp64 on the ordinary pipes."""
    return None if e.case.expands or _on_tensor_cores(e) else e.totals.flop_fp32 + e.totals.flop_fp64


def _half_flop(e: Emulated) -> float | None:
    """Where the PTX has any: elsewhere ptxas loads constants with HFMA2 and converts with HADD2."""
    return None if _on_tensor_cores(e) else e.totals.flop_fp16 or None


def _tensor_flop(e: Emulated) -> float | None:
    totals = e.totals
    return totals.flop_fp16 + totals.flop_fp32 + totals.flop_fp64 if _on_tensor_cores(e) else None


def _on_tensor_cores(e: Emulated) -> bool:
    return e.case.numbers == "tensor"


def _weighed(*operations: str) -> Told:
    """add and mul 1, fma 2, as Nsight Compute's rooflines weigh them; None where one was not told."""
    weights = {_SASS.format(name): 2 if name.endswith("fma") else 1 for name in operations}

    def told(counters: Counters) -> float | None:
        if any(name not in counters.values for name in weights):
            return None
        return sum(weight * counters.values[name] for name, weight in weights.items())

    return told


def _barriers_of(counters: Counters) -> float | None:
    opcodes = counters.instances.get(OPCODES)
    return None if opcodes is None else opcodes.get("BAR", 0.0)


def _spread(e: Emulated) -> float | None:
    """Instructions of the busiest warp over those of an average one.

    Measurable where each warp has a scheduler to itself: a scheduler's maximum is then a warp's. A block's
    warps go to the four schedulers in turn, and blocks to multiprocessors that are still empty.
    """
    alone = e.case.threads <= 4 * e.target.warp_size and e.case.blocks <= e.target.sm_count
    return e.trace.warps.maximum / e.trace.warps.mean if alone else None


def _spread_of(counters: Counters) -> float | None:
    most, total, warps = (counters.values.get(name) for name in (_MOST, _ALL, _WARPS))
    return most * warps / total if most and total and warps else None


def _theoretical(e: Emulated) -> float:
    registers = e.resources.registers
    shared = e.trace.static_shared_bytes + e.trace.dynamic_shared_bytes
    return 100 * occupancy.calculate(e.target, e.case.threads, registers, shared).theoretical


BOUNDS: tuple[Bound, ...] = (
    *(_requests(way) for way in _DIRECTIONS),
    *(_sectors(way) for way in _DIRECTIONS),
    *(bound for way in _DIRECTIONS for bound in _shared(way)),
    Bound(
        "active lanes per instruction",
        0.05,
        lambda e: e.totals.active_lanes / e.totals.instructions,
        _metric(_LANES),
    ),
    Bound(
        "lanes not predicated off",
        None,
        lambda e: e.totals.active_lanes / e.totals.instructions,
        _metric(_LANES_ON),
    ),
    Bound("theoretical occupancy, %", 1e-4, _theoretical, _metric(_OCCUPANCY)),  # ncu prints two decimals
    Bound("FLOP", 0.01, _flop, _weighed(*_WIDE)),
    Bound("FLOP, fp16", 0.01, _half_flop, _weighed(*_HALF)),
    Bound("FLOP, tensor cores", 0.01, _tensor_flop, _sum(*_TENSOR)),
    Bound("warps", 0.0, lambda e: e.trace.warps.count, _metric(_WARPS)),
    Bound("busiest warp over the average", 0.05, _spread, _spread_of),
    Bound("barriers", 0.05, lambda e: e.totals.barriers, _barriers_of),
)


def counts(emulated: Emulated, counters: Counters | None) -> list[Row]:
    """A row for each bound that applies. `counters`: of the card, None where it told nothing."""
    rows = []
    for bound in BOUNDS:
        ours = bound.emulated(emulated)
        theirs = None if counters is None else bound.counted(counters)
        if ours is None or not (ours or theirs):  # nothing of the kind on either side
            continue
        rows.append(
            Row(
                emulated.case.name,
                bound.what,
                ours,
                theirs,
                _words(bound.allowed),
                _verdict(ours, theirs, bound.allowed),
            )
        )
    return rows


def _words(allowed: float | None) -> str:
    if allowed is None:
        return ""
    return "exact" if allowed < 1e-3 else f"{100 * allowed:g}%"


def _verdict(ours: float, theirs: float | None, allowed: float | None) -> Verdict:
    if theirs is None:
        return "not measured"
    if allowed is None:
        return "told"
    return "ok" if abs(ours - theirs) <= allowed * abs(theirs) + 1e-9 * abs(theirs) else "over"


# Outputs ------------------------------------------------------------------------------------------------


def failed(case: Case, flags: Flags, why: str) -> Row:
    """A case that did not end well on the card."""
    return Row(case.name, _outputs_of(flags), None, None, _allowed_words(case, flags), "over", why)


def _outputs_of(flags: Flags) -> str:
    return f"outputs, {'-fmad=false' if flags == 'exact' else 'default flags'}"


def outputs(case: Case, flags: Flags, ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> Row:
    """Are the outputs of both the same, or as near as they must be?

    Bit-equal with -fmad=false; with nvcc's own flags within one contraction for each multiply-add of the
    longest chain; of unordered sums, as many roundings as there are terms; of tensor cores, a truncation of
    each term at the width of the accumulator. Approximate instructions: told.
    """
    worst, over, differing = 0.0, False, 0
    for name, mine in ours.items():
        other = theirs[name]
        different = mine.view(f"u{mine.itemsize}") != other.view(f"u{other.itemsize}")
        differing += int(np.count_nonzero(different))
        if not different.any():
            continue
        if mine.dtype.kind != "f":
            over, worst = True, math.inf
            continue
        a, b = (side[different].astype("float64") for side in (mine, other))
        finite = np.isfinite(a).all() and np.isfinite(b).all()
        distance = float(np.max(np.abs(a - b))) if finite else math.inf
        worst = max(worst, distance)
        allowed = tolerance(case, flags, other.astype("float64"), mine.dtype)
        over |= not allowed or not finite or distance > allowed
    note = f"{differing} elements differ, by {worst:.3g} at most" if differing else "the same bits"
    verdict: Verdict = "over" if over else "ok"
    if case.numbers == "approximate":
        verdict = "told"
    return Row(case.name, _outputs_of(flags), None, None, _allowed_words(case, flags), verdict, note)


def tolerance(case: Case, flags: Flags, values: Array, kind: np.dtype[Any]) -> float:
    """The largest distance allowed between two elements; `values`: an output in double.

    Terms are at most 1 in magnitude, so a chain's partial sums are at most about 1 + the largest output.
    """
    if not case.chain or (case.numbers == "exact" and flags == "exact"):
        return 0.0
    unit = float(
        np.finfo(kind).eps
    )  # the distance of neighbours between 1 and 2: a truncation; twice a rounding
    roundings = unit / 2 if case.numbers == "exact" else unit
    largest = float(np.max(np.abs(values), where=np.isfinite(values), initial=0.0))
    return case.chain * roundings * (1.0 + largest)


def _allowed_words(case: Case, flags: Flags) -> str:
    match case.numbers:
        case "approximate":
            return ""
        case "unordered":
            return f"{case.chain} roundings"
        case "tensor":
            return f"{case.chain} truncations"
    return "same bits" if flags == "exact" or not case.chain else f"{case.chain} contractions"


# What the machine makes of it ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Expansion:
    """FLOP counted at PTX level beside the machine's floating-point instructions, by lane."""

    case: str
    why: str
    flop: int
    instructions: dict[str, float]  # opcode -> executed by a lane; empty where the card did not tell


_FLOATING = (
    "FADD",
    "FMUL",
    "FFMA",
    "DADD",
    "DMUL",
    "DFMA",
    "HADD2",
    "HMUL2",
    "HFMA2",
    "MUFU",
    "FCHK",
    "HMMA",
)


def expansion(emulated: Emulated, counters: Counters | None) -> Expansion | None:
    if not emulated.case.expands:
        return None
    totals = emulated.totals
    told = {} if counters is None else counters.instances.get(THREAD_OPCODES, {})
    found = {name: count for name, count in told.items() if name in _FLOATING and count}
    flop = totals.flop_fp16 + totals.flop_fp32 + totals.flop_fp64
    return Expansion(emulated.case.name, emulated.case.expands, flop, found)

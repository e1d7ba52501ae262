"""From counts to metrics: one entry per kernel, one score per family, one number in all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sandbox.emulator.trace import LaunchTrace, LineCounts
from sandbox.metrics import (
    balance,
    coalescing,
    divergence,
    intensity,
    occupancy,
    overheads,
    shared_memory,
    synchronisation,
)
from sandbox.metrics.finding import Finding
from sandbox.metrics.launches import MeasuredLaunch, gather, variation
from sandbox.targets import Target
from sandbox.types import CompiledKernel, Flop, KernelMetrics, LineMetrics, Metrics
from sandbox.words import named

# What the families weigh in the structural score, before relevance. Moving data well decides most kernels,
# hence nearly half on the two families of memory traffic; each of the others can spoil a kernel that moves
# data well.
WEIGHTS: Mapping[str, float] = {
    "coalescing": 0.20,
    "shared_memory": 0.10,
    "occupancy": 0.08,
    "intensity": 0.25,
    "divergence": 0.10,
    "synchronisation": 0.12,
    "balance": 0.10,
    "overheads": 0.05,
}


def measure(
    traces: Sequence[LaunchTrace],
    kernels: Sequence[CompiledKernel],
    target: Target,
    sizes: Mapping[str, int],
    *,
    copies: int = 0,
    task_bytes: int | None = None,
    idle: Collection[str] = (),
) -> Metrics:
    """`copies`: memcpy operations of the plan. `task_bytes`: bytes of the task's inputs and outputs, each
    once; where known, arrays that only pass between kernels count as waste. `idle`: kernels without which the
    outputs are the same; their launches cost what they cost, and nothing else they do counts.

    Families that do not apply are absent from `families`. `notes` has one sentence per family present, in the
    same order, then one for each that is absent. Where nothing was launched, that is said before all others.
    """
    everything = gather(traces, kernels, target, idle)
    launches = [launch for launch in everything if not launch.idle]
    findings: dict[str, Finding] = {
        "coalescing": coalescing.assess(launches),
        "shared_memory": shared_memory.assess(launches),
        "occupancy": occupancy.assess(launches),
        "intensity": intensity.assess(everything, task_bytes),
        "divergence": divergence.assess(launches),
        "synchronisation": synchronisation.assess(launches),
        "balance": balance.assess(launches),
        "overheads": overheads.assess(everything, copies),
    }
    scores = {name: finding.score for name, finding in findings.items() if finding.score is not None}
    absent = [finding.note for finding in findings.values() if finding.score is None]
    return Metrics(
        structural_score=structural_score(findings),
        families=scores,
        measured_by="emulator",
        kernels=[kernel_metrics(launch) for launch in everything],
        notes=_nothing(traces, sizes) + [findings[name].note for name in scores] + absent,
        sizes=dict(sizes),
    )


def _nothing(traces: Sequence[LaunchTrace], sizes: Mapping[str, int]) -> list[str]:
    if traces:
        return []
    at = named(sizes)
    return [
        f"No kernel was launched at the representative size{f' ({at})' if at else ''}: a score of 0 says "
        "that there was nothing to measure. Give sizes in the inputs block at which there is work to do."
    ]


def structural_score(findings: Mapping[str, Finding]) -> float:
    """100 * sum(weight * relevance * score) / sum(weight * relevance) over the families that apply; 0 for
    none.
    """
    applicable = [
        (WEIGHTS[name] * finding.relevance, finding.score)
        for name, finding in findings.items()
        if finding.score is not None
    ]
    total = sum(weight for weight, _ in applicable)
    return 100 * sum(weight * score for weight, score in applicable) / total if total else 0.0


def kernel_metrics(launch: MeasuredLaunch) -> KernelMetrics:
    trace, totals = launch.trace, launch.totals
    return KernelMetrics(
        name=launch.name,
        launches=launch.repeats,
        grid=trace.grid,
        block=trace.block,
        global_load_requests=totals.global_load_requests,
        global_load_sectors=totals.global_load_sectors,
        global_store_requests=totals.global_store_requests,
        global_store_sectors=totals.global_store_sectors,
        global_load_efficiency=coalescing.efficiency(totals.global_load_bytes, totals.global_load_sectors),
        global_store_efficiency=coalescing.efficiency(totals.global_store_bytes, totals.global_store_sectors),
        shared_load_bank_conflicts=totals.shared_load_wavefronts - totals.shared_load_ideal,
        shared_store_bank_conflicts=totals.shared_store_wavefronts - totals.shared_store_ideal,
        instructions=totals.instructions,
        active_threads_per_warp=divergence.active_threads(totals),
        theoretical_occupancy=launch.occupancy.theoretical,
        occupancy_limiter=launch.occupancy.limiter,
        occupancy_next_step=occupancy.next_step(
            launch.target, launch.threads_per_block, launch.registers, launch.shared_bytes
        ),
        flop=Flop(fp16=totals.flop_fp16, fp32=totals.flop_fp32, fp64=totals.flop_fp64),
        dram_bytes=intensity.dram_bytes(launch),
        reread_factor=intensity.reread_factor(launch),
        arithmetic_intensity=intensity.intensity(launch),
        ridge_intensity=intensity.ridge(launch),
        roof=intensity.roof(launch),
        attainable_share_of_peak=intensity.attainable_share(launch),
        barriers_per_thread=totals.barriers / trace.warps.count if trace.warps.count else 0.0,
        barriers_executed=trace.barriers_executed,
        useless_barriers=trace.useless_barriers,
        atomics=totals.atomics,
        atomic_lanes_per_address=synchronisation.lanes_per_address(totals),
        warp_instruction_spread=variation(trace.warps),
        block_instruction_spread=variation(trace.blocks),
        waves=balance.waves(launch),
        tail_fraction=balance.tail_fraction(launch),
        local_bytes=launch.kernel.local_bytes
        if launch.kernel
        else totals.local_bytes // max(1, trace.threads),
        blocks=launch.blocks * launch.repeats,
        counted_blocks=launch.blocks * launch.repeats
        if trace.counted_blocks is None
        else trace.counted_blocks,
        lines=[line_metrics(line) for line in trace.lines],
    )


def line_metrics(line: LineCounts) -> LineMetrics:
    return LineMetrics(
        line=line.line,
        instructions=line.instructions,
        active_threads_per_warp=divergence.active_threads(line),
        global_load_requests=line.global_load_requests,
        global_load_sectors=line.global_load_sectors,
        global_load_bytes=line.global_load_bytes,
        global_store_requests=line.global_store_requests,
        global_store_sectors=line.global_store_sectors,
        global_store_bytes=line.global_store_bytes,
        shared_load_requests=line.shared_load_requests,
        shared_load_bank_conflicts=line.shared_load_wavefronts - line.shared_load_ideal,
        shared_store_requests=line.shared_store_requests,
        shared_store_bank_conflicts=line.shared_store_wavefronts - line.shared_store_ideal,
        divergent_branches=line.divergent_branches,
        branches=line.branches,
        barriers=line.barriers,
        barriers_executed=line.barriers_executed,
        useless_barriers=line.useless_barriers,
        atomics=line.atomics,
        atomic_lanes_per_address=synchronisation.lanes_per_address(line),
        local_bytes=line.local_bytes,
        flop=intensity.flop(line),
    )

"""What the task itself costs, and two candidates side by side."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from agent.trajectory import Turn
from sandbox.metrics import compulsory_bytes
from sandbox.targets import TARGETS
from sandbox.tasks.base import TaskSpec
from sandbox.tasks.expressions import ExpressionError, evaluate
from sandbox.types import Evaluation
from sandbox.words import named

_DIFF_LINES = 60


def baseline(spec: TaskSpec, target: str, times: Mapping[str, float], best: Turn | None) -> str:
    """What the reference takes, and the floor under every candidate: the bytes that must move, at the speed
    of the GPU's memory (an estimate). `times`: the reference's, in microseconds; `best`: whose FLOP count."""
    gpu = TARGETS[target]
    sizes = named(spec.sizes)
    said = [f"{name} on this machine: {us:.4g} µs at {sizes}" for name, us in times.items()]
    if not said:
        said = [f"the reference's own time could not be measured (at {sizes})"]
    try:
        extents = {p.name: evaluate(p.extent or "", spec.sizes) for p in spec.parameters if p.kind == "array"}
    except ExpressionError as error:
        return "\n".join([*said, f"the bytes this task must move are not known: {error}"])
    needed = compulsory_bytes(spec.parameters, extents)
    ridge = gpu.peak_fp32 / gpu.dram_bandwidth
    said.append(
        f"{needed:,} bytes must move (each array once, what is read and written twice). At "
        f"{gpu.dram_bandwidth / 1e12:.2f} TB/s of the {gpu.product} that takes "
        f"~{needed / gpu.dram_bandwidth * 1e6:.3g} µs (an estimate)"
    )
    metrics = best.evaluation.metrics if best and best.evaluation else None
    if best is not None and metrics is not None and needed:
        flop = sum(k.flop.fp16 + k.flop.fp32 + k.flop.fp64 for k in metrics.kernels)
        binds = "memory" if flop / needed < ridge else "arithmetic"
        said.append(
            f"turn {best.number} executes {flop:,} FLOP, {flop / needed:.3g} for each of these bytes; "
            f"the ridge is at {ridge:.1f} (fp32), so {binds} binds"
        )
    else:
        said.append(f"memory binds below {ridge:.1f} fp32 FLOP per byte, {ridge * needed:,.0f} FLOP in all")
    return "\n".join(said)


def compare(first: Turn, second: Turn) -> str:
    """Two judged turns: verdicts, families, counts, and what differs in their sources."""
    assert first.evaluation is not None
    assert second.evaluation is not None
    lines = [_row(first, first.evaluation), _row(second, second.evaluation)]
    before, after = first.evaluation.metrics, second.evaluation.metrics
    if before is not None and after is not None:
        for name in sorted({*before.families, *after.families}):
            old, new = before.families.get(name), after.families.get(name)
            if old != new:
                lines.append(f"{name.replace('_', ' ')}: {_number(old)} -> {_number(new)}")
        for label, counted in (
            ("warp instructions", [sum(k.instructions for k in m.kernels) for m in (before, after)]),
            (
                "global sectors",
                [
                    sum(k.global_load_sectors + k.global_store_sectors for k in m.kernels)
                    for m in (before, after)
                ],
            ),
        ):
            lines.append(f"{label}: {counted[0]:,} -> {counted[1]:,}")
    difference = list(
        difflib.unified_diff(
            first.source.split("\n"),
            second.source.split("\n"),
            f"turn {first.number}",
            f"turn {second.number}",
            lineterm="",
            n=1,
        )
    )
    lines += difference[:_DIFF_LINES]
    if len(difference) > _DIFF_LINES:
        lines.append(f"… and {len(difference) - _DIFF_LINES} more lines of difference")
    return "\n".join(lines)


def _row(turn: Turn, evaluation: Evaluation) -> str:
    score = f", score {evaluation.score:.1f}" if evaluation.score is not None else ""
    timing = evaluation.timing
    time = f", {timing.candidate_us.median:.4g} µs" if timing is not None else ""
    return f"turn {turn.number}: {evaluation.verdict.replace('_', ' ')}{score}{time} ({turn.plan[:100]})"


def _number(value: float | None) -> str:
    return "does not apply" if value is None else f"{value:.2f}"

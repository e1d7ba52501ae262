"""The difference of two revisions: hunks of lines, and what it did to the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from sandbox.types import Evaluation
from webapp.live.resources_reviews import DiffHunk, DiffLine, MetricDelta
from webapp.reviews.anchoring import lines_of, mapped_lines

Value = float | str | None
Whitespace = Literal["show", "ignore"]

CONTEXT = 3
#: Numbers of which less is better; of all others more is.
_LESS_IS_BETTER = (
    "registers per thread",
    "spilled bytes",
    "dram bytes",
    "instructions",
    "bank conflicts",
    "microseconds",
    "global sectors",
    "launches",
)


def hunks(
    old: str, new: str, *, whitespace: Whitespace = "show", context: int | None = CONTEXT
) -> list[DiffHunk]:
    """What differs, with `context` lines around it (None: all lines). The text is the new side's where both
    sides say the same to the eye."""
    before, after = lines_of(old) if old else [], lines_of(new) if new else []
    keys = (before, after) if whitespace == "show" else (_squeezed(before), _squeezed(after))
    lines = list(_lines(before, after, mapped_lines(*keys)))
    return [_hunk(part) for part in _parts(lines, context)]


def _squeezed(lines: Sequence[str]) -> list[str]:
    return ["".join(line.split()) for line in lines]


def _lines(old: Sequence[str], new: Sequence[str], same: dict[int, int]) -> Iterator[DiffLine]:
    at = 0
    for i, text in enumerate(old):
        if i not in same:
            yield DiffLine(kind="removed", text=text, old=i + 1, new=None)
            continue
        for j in range(at, same[i]):
            yield DiffLine(kind="added", text=new[j], old=None, new=j + 1)
        yield DiffLine(kind="same", text=new[same[i]], old=i + 1, new=same[i] + 1)
        at = same[i] + 1
    for j in range(at, len(new)):
        yield DiffLine(kind="added", text=new[j], old=None, new=j + 1)


def _parts(lines: Sequence[DiffLine], context: int | None) -> Iterator[Sequence[DiffLine]]:
    changed = [i for i, line in enumerate(lines) if line.kind != "same"]
    if not changed:
        return
    if context is None:
        yield lines
        return
    start, end = max(0, changed[0] - context), changed[0] + context + 1
    for i in changed[1:]:
        if i - context > end:
            yield lines[start:end]
            start = i - context
        end = i + context + 1
    yield lines[start : min(end, len(lines))]


def _hunk(lines: Sequence[DiffLine]) -> DiffHunk:
    olds = [line.old for line in lines if line.old is not None]
    news = [line.new for line in lines if line.new is not None]
    return DiffHunk(
        old_start=olds[0] if olds else 0,
        old_lines=len(olds),
        new_start=news[0] if news else 0,
        new_lines=len(news),
        lines=list(lines),
    )


# --- Numbers ------------------------------------------------------------------------------------------------


def metrics_of(evaluation: Evaluation | None) -> dict[str, Value]:
    """The numbers that are worth a line beside a diff, by name; of several kernels their sum or worst."""
    if evaluation is None:
        return {}
    values: dict[str, Value] = {"verdict": evaluation.verdict}
    if evaluation.compile is not None and (kernels := evaluation.compile.kernels):
        values["registers per thread"] = max(it.registers for it in kernels)
        values["spilled bytes"] = sum(it.spill_store_bytes + it.spill_load_bytes for it in kernels)
        values["shared bytes per block"] = max(it.shared_bytes for it in kernels)
    if evaluation.metrics is not None:
        measured = evaluation.metrics.kernels
        values["structural score"] = round(evaluation.metrics.structural_score, 2)
        values |= {name.replace("_", " "): round(it, 3) for name, it in evaluation.metrics.families.items()}
        values["launches"] = sum(it.launches for it in measured)
        values["instructions"] = sum(it.instructions for it in measured)
        values["dram bytes"] = sum(it.dram_bytes for it in measured)
        values["global sectors"] = sum(it.global_load_sectors + it.global_store_sectors for it in measured)
        values["bank conflicts"] = sum(
            it.shared_load_bank_conflicts + it.shared_store_bank_conflicts for it in measured
        )
        if measured:
            values["theoretical occupancy"] = round(min(it.theoretical_occupancy for it in measured), 3)
    if evaluation.timing is not None:
        values["microseconds"] = round(evaluation.timing.candidate_us.median, 3)
        values |= {f"speedup over {it.name}": round(it.speedup, 3) for it in evaluation.timing.baselines}
    return values


def metric_deltas(old: Evaluation | None, new: Evaluation | None) -> list[MetricDelta]:
    """Every number of either side, in order; those that only one side has stand against None."""
    before, after = metrics_of(old), metrics_of(new)
    return [
        MetricDelta(name=name, old=before.get(name), new=after.get(name), better=_better(name, before, after))
        for name in dict.fromkeys([*after, *before])
    ]


def _better(name: str, before: dict[str, Value], after: dict[str, Value]) -> bool | None:
    old, new = before.get(name), after.get(name)
    if old is None or new is None or old == new or name == "shared bytes per block":
        return None
    if isinstance(old, str) or isinstance(new, str):
        return new == "passed" if "passed" in (old, new) else None
    return (new < old) if name in _LESS_IS_BETTER else (new > old)

"""The reflection after a judged turn: made from measurements, not from opinion.

Which family is worst, on which line, what that costs, what usually cures it, and what was tried for it
without helping. It is carried to the next turns in place of the reasoning that led there.
"""

from __future__ import annotations

import re

from agent.llm.observe import worst_family, worst_lines
from agent.trajectory import Trajectory, Turn
from sandbox.types import Data, Evaluation

#: What usually cures a weak family, in the order of trying.
CURES = {
    "coalescing": "let consecutive threads touch consecutive addresses: swap the loops, transpose through a "
    "padded shared-memory tile, or keep one array per field",
    "shared_memory": "pad rows by one element or swizzle the index, so that a warp's lanes fall into "
    "different banks",
    "occupancy": "fewer registers or less shared memory per block, or another block size",
    "intensity": "keep data that is used again in registers or a shared-memory tile, compute several results "
    "per thread, load 16 bytes at a time, and fuse kernels that only pass arrays on",
    "divergence": "let whole warps take the same branch: turn the condition into arithmetic, or regroup work",
    "synchronisation": "reduce in registers with warp shuffles before shared memory, in shared memory before "
    "global atomics; leave out barriers that order nothing",
    "balance": "cut the work finer: a warp or a block per row instead of a thread, or a loop with the grid's "
    "stride",
    "overheads": "fewer launches and copies, no spilled registers, no local arrays with a computed index",
}
#: What each way to fail usually needs.
REMEDIES = {
    "compile_error": "change only what the first error names, and compile again",
    "launch_error": "look at grid, block and shared memory of the launch, and at what host code touches",
    "wrong_result": "look at the guards, the index arithmetic and the order of sums at the first mismatch",
    "runtime_error": "guard the access on the line named, for sizes that are no multiple of the block",
    "timeout": "look for a loop that does not end, or work that every thread does again",
    "unsupported": "write the line named in another way",
    "rule_violation": "do all the work in kernels; launch only sets them up",
}


class Critique(Data):
    """One turn, measured. Empty where there is nothing to say."""

    outcome: str  # "passed with 61.2, up from 47.1"
    family: str = ""  # the worst
    score: float | None = None  # its, 0..1
    line: int | None = None
    cost: str = ""  # what was measured there
    cure: str = ""
    did_not_help: list[str]  # what was tried since the best turn

    def text(self) -> str:
        said = [self.outcome]
        if self.family:
            said.append(f"Weakest: {self.family.replace('_', ' ')} at {self.score:.2f}. {self.cost}".rstrip())
        if self.cure:
            said.append(f"Usual cure: {self.cure}.")
        if self.did_not_help:
            said.append("Tried without gain: " + "; ".join(self.did_not_help) + ".")
        return "\n".join(said)


def critique(trajectory: Trajectory) -> Critique:
    """Of the last turn that was judged; there must be one."""
    turn = next(t for t in reversed(trajectory.turns) if t.evaluation is not None)
    evaluation = turn.evaluation
    assert evaluation is not None
    tried = _without_gain(trajectory)
    if evaluation.verdict != "passed" or evaluation.metrics is None:
        outcome = f"Turn {turn.number} ended as {evaluation.verdict.replace('_', ' ')}: {evaluation.message}"
        # A turn without a candidate has nothing to be changed.
        cure = REMEDIES.get(evaluation.verdict, "") if turn.source else ""
        return Critique(outcome=outcome[:400], cure=cure, did_not_help=tried)
    family = worst_family(evaluation.metrics)
    if family is None:
        return Critique(outcome=_passed(trajectory, turn, evaluation), did_not_help=tried)
    names = list(evaluation.metrics.families)
    position = names.index(family)
    note = evaluation.metrics.notes[position] if position < len(evaluation.metrics.notes) else ""
    named = re.search(r"\b[Ll]ine (\d+)", note)
    rows = worst_lines(evaluation.metrics, family, count=1)
    return Critique(
        outcome=_passed(trajectory, turn, evaluation),
        family=family,
        score=evaluation.metrics.families[family],
        line=int(named.group(1)) if named else rows[0][0] if rows else None,
        cost=note or (f"Line {rows[0][0]}: {rows[0][1]}." if rows else ""),
        cure=CURES.get(family, ""),
        did_not_help=tried,
    )


def _passed(trajectory: Trajectory, turn: Turn, evaluation: Evaluation) -> str:
    score = evaluation.score or 0.0
    scores = [t.evaluation.score for t in trajectory.before(turn.number) if t.evaluation]
    before = max((s for s in scores if s is not None), default=None)
    if before is None:
        return f"Turn {turn.number} passed with a structural score of {score:.1f}."
    if score > before:
        return f"Turn {turn.number} passed; the score rose from {before:.1f} to {score:.1f}."
    return f"Turn {turn.number} passed with {score:.1f}, not above {before:.1f}: not kept."


def _without_gain(trajectory: Trajectory) -> list[str]:
    """What the turns after the best one tried, the last few."""
    best = trajectory.best
    if best is None:
        return []
    later = [t for t in trajectory.turns if t.number > best.number and t.evaluation is not None]
    return [f"turn {t.number}, {_short(t.plan)} ({_result(t)})" for t in later[-4:]]


def _result(turn: Turn) -> str:
    evaluation = turn.evaluation
    assert evaluation is not None
    return f"{evaluation.score:.1f}" if evaluation.score is not None else evaluation.verdict.replace("_", " ")


def _short(plan: str) -> str:
    return plan[:100].rstrip(" .")


def summary(turn: Turn) -> str:
    """One turn in one line, for the history that later turns are shown."""
    if turn.evaluation is None:
        return f"turn {turn.number}: {_short(turn.plan)}: not judged"
    said = f"turn {turn.number}: {_short(turn.plan)}: {_result(turn)}"
    if turn.evaluation.score is None:
        said += f" ({turn.evaluation.message[:100]})"
    return said

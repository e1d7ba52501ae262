"""Which of several candidates is best. The only place that decides it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sandbox.types import Evaluation, Verdict

if TYPE_CHECKING:
    from agent.trajectory import Turn

#: How near to passing a verdict is: one that fails later has got further. What is not the candidate's doing
#: comes last, since it says nothing of it.
_STANDING: dict[Verdict, int] = {
    "passed": 0,
    "wrong_result": 2,
    "timeout": 3,
    "runtime_error": 3,
    "launch_error": 4,
    "unsupported": 5,
    "rule_violation": 5,
    "compile_error": 6,
    "degenerate_task": 7,
    "internal_error": 7,
}


def rank(turns: Iterable[Turn]) -> list[Turn]:
    """The judged turns, best first.

    By verdict; passed ones by their time, as far as they were timed on one card, then by structural score.
    A time is never weighed against a score: what was measured comes before what was not. A time that nobody
    believes puts its candidate behind all others that passed. Of wrong ones, those with more draws right come
    first. The earlier turn wins a tie.
    """
    judged = [(turn, turn.evaluation) for turn in turns if turn.evaluation is not None]
    card = _card(evaluation for _, evaluation in judged)
    ordered = sorted(judged, key=lambda each: (*_merit(each[0], each[1], card), each[0].number))
    return [turn for turn, _ in ordered]


def _merit(turn: Turn, evaluation: Evaluation, card: str | None) -> tuple[int, int, float]:
    """Smaller is better."""
    standing = _STANDING[evaluation.verdict]
    if evaluation.verdict == "passed":
        if evaluation.timing is not None and evaluation.timing.implausible:
            standing = 1
        elif evaluation.timing is not None and evaluation.timing.device == card:
            return standing, 0, evaluation.timing.candidate_us.median
        return standing, 1, -(evaluation.score if evaluation.score is not None else -1.0)
    verification = evaluation.verification
    right = 0.0
    if verification is not None and verification.draws_passed is not None and verification.draws:
        right = verification.draws_passed / verification.draws
    return standing, 0 if turn.source else 1, -right


def _card(evaluations: Iterable[Evaluation]) -> str | None:
    """The card that timed most of them, the first of equals; None where nothing was timed."""
    counts = Counter(e.timing.device for e in evaluations if e.verdict == "passed" and e.timing is not None)
    return counts.most_common(1)[0][0] if counts else None

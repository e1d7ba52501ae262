"""The reward, term by term, and what never gets one."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from sandbox.types import (
    BaselineTime,
    Evaluation,
    Fault,
    Interval,
    Metrics,
    Timing,
    Verdict,
    Verification,
)
from trainer import reward


def evaluation(
    verdict: Verdict = "passed",
    fault: Fault | None = None,
    *,
    score: float | None = None,
    draws_passed: int | None = None,
    timing: Timing | None = None,
) -> Evaluation:
    return Evaluation(
        verdict=verdict,
        fault=fault,
        message="",
        backend="emulator" if timing is None else "gpu",
        target="sm_90",
        verification=Verification(
            draws=5,
            sizes=[],
            distributions=[],
            seed="",
            max_error=None,
            allowed_error=None,
            first_mismatch=None,
            checks=[],
            draws_passed=draws_passed,
        ),
        metrics=None
        if score is None
        else Metrics(structural_score=score, families={}, measured_by="emulator", kernels=[]),
        timing=timing,
    )


def timed(cv: float | None = None, **speedups: tuple[float, float]) -> Timing:
    """`eager=(2.0, 1.9)`: speedup and its lower end."""
    names = {"torch_compile": "torch.compile"}
    return Timing(
        candidate_us=Interval(median=10, low=9, high=11),
        candidate_cv=cv,
        baselines=[
            BaselineTime(
                name=names.get(name, name),
                us=10 * middle,
                speedup=middle,
                speedup_low=low,
                speedup_high=2 * middle,
            )
            for name, (middle, low) in speedups.items()
        ],
    )


def test_does_not_compile() -> None:
    assert reward.unified(evaluation("compile_error", "candidate")) == -3


@pytest.mark.parametrize(
    ("draws_passed", "expected"), [(None, -2.0), (0, -2.0), (1, -1.6), (4, -0.4), (5, -2.0)]
)
def test_wrong_results_pay_by_draws(draws_passed: int | None, expected: float) -> None:
    """All draws right and yet wrong (an input changed, say) pays nothing."""
    wrong = evaluation("wrong_result", "candidate", draws_passed=draws_passed, score=100)
    assert reward.unified(wrong) == pytest.approx(expected)


@pytest.mark.parametrize("verdict", ["launch_error", "runtime_error", "timeout", "rule_violation"])
def test_other_failures_of_the_candidate(verdict: Verdict) -> None:
    assert reward.unified(evaluation(verdict, "candidate", score=100)) == -2


def test_structure_counts_only_for_correct_candidates() -> None:
    assert reward.unified(evaluation(score=100)) == pytest.approx(0.2)
    assert reward.unified(evaluation(score=50)) == pytest.approx(0.0)
    assert reward.unified(evaluation(score=0)) == pytest.approx(-0.2)
    assert reward.unified(evaluation(score=100), weight=0.5, structure=-1.0) == pytest.approx(-0.5)
    assert reward.unified(evaluation()) == 0
    with pytest.raises(ValueError, match=r"\[-1, 1\]"):
        reward.unified(evaluation(), structure=1.5)


@pytest.mark.parametrize(
    ("speedup", "term"), [(1.0, 0.0), (2.0, 1.0), (0.1, -0.5), (0.75, math.log2(0.75)), (64.0, 4.0)]
)
def test_speedup_is_clamped(speedup: float, term: float) -> None:
    assert reward.unified(evaluation(timing=timed(eager=(speedup, speedup)))) == pytest.approx(term)


def test_noisy_timings_cost() -> None:
    quiet = reward.unified(evaluation(timing=timed(0.0, eager=(2.0, 1.9))))
    noisy = reward.unified(evaluation(timing=timed(0.2, eager=(2.0, 1.9))))
    assert quiet - noisy == pytest.approx(0.1)


def test_the_reference_is_the_users_program_before_torch_compile() -> None:
    assert reward.reference_speedup(timed(torch_compile=(1.1, 1.0), eager=(2.0, 1.9))) == 2.0
    assert reward.reference_speedup(timed(c=(30.0, 29.0))) == 30.0
    assert reward.reference_speedup(timed(other=(3.0, 2.0))) == 3.0
    assert reward.reference_speedup(None) is None


def test_keep() -> None:
    assert reward.keep(1.0) == 0.5
    assert reward.keep(0.0) == -2.0


@pytest.mark.parametrize(
    ("timing", "expected"),
    [
        (None, None),
        (timed(c=(9.0, 8.0)), 1),
        (timed(eager=(1.2, 1.05)), 1),
        (timed(eager=(1.2, 1.06)), 2),
        (timed(eager=(1.2, 1.06), torch_compile=(1.1, 1.0)), 2),
        (timed(eager=(1.2, 1.06), torch_compile=(1.2, 1.06)), 3),
        (timed(eager=(1.0, 0.9), torch_compile=(1.2, 1.06)), 1),
    ],
)
def test_milestones(timing: Timing | None, expected: int | None) -> None:
    assert reward.milestone(evaluation(timing=timing)) == expected


def test_milestone_of_a_wrong_candidate() -> None:
    assert reward.milestone(evaluation("wrong_result", "candidate")) == -1


def test_turn_returns() -> None:
    assert reward.turn_returns([1.0, 2.0, 3.0], gamma=0.5) == [1 + 1 + 0.75, 2 + 1.5, 3]
    assert reward.turn_returns([-3.0, -2.0, 0.1]) == pytest.approx([-3 - 0.8 + 0.016, -2 + 0.04, 0.1])
    assert reward.turn_returns([]) == []
    assert reward.terminal_returns([1.0, 2.0]) == [2.0, 2.0]
    assert reward.terminal_returns([]) == []


def test_order_of_outcomes() -> None:
    """Worse ends never pay more than better ones."""
    outcomes = [
        evaluation("compile_error", "candidate"),
        evaluation("wrong_result", "candidate", draws_passed=0),
        evaluation("wrong_result", "candidate", draws_passed=3),
        evaluation(score=20),
        evaluation(score=90),
        evaluation(score=90, timing=timed(eager=(2.0, 1.9))),
    ]
    assert all(a < b for a, b in pairwise(reward.unified(outcome) for outcome in outcomes))


@pytest.mark.parametrize(
    ("verdict", "fault"),
    [
        ("internal_error", "kernelwright"),
        ("degenerate_task", "task"),
        ("unsupported", "kernelwright"),
        ("timeout", "kernelwright"),
        ("runtime_error", "task"),
    ],
)
def test_the_judges_failures_are_never_a_reward(verdict: Verdict, fault: Fault) -> None:
    failed = evaluation(verdict, fault, score=100)
    assert reward.attach(failed).reward is None
    assert reward.milestone(failed) is None
    with pytest.raises(ValueError, match="no verdict on the candidate"):
        reward.unified(failed)


def test_attach_returns_a_copy() -> None:
    before = evaluation(score=75)
    after = reward.attach(before)
    assert before.reward is None
    assert after.reward is not None
    assert after.reward.unified == pytest.approx(0.1)
    assert after.reward.milestone is None
    assert after.model_copy(update={"reward": None}) == before

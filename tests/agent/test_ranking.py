"""Which candidate is best: verdict, then time on one card, then score; never a time against a score."""

from __future__ import annotations

from given_environment import evaluation

from agent.ranking import rank
from agent.trajectory import Trajectory, Turn
from sandbox.types import Evaluation, Interval, Timing, Verification


def turns(*evaluations: Evaluation) -> list[Turn]:
    return [Turn(n, "t", None, source="s", evaluation=e) for n, e in enumerate(evaluations, 1)]


def order(*evaluations: Evaluation) -> list[int]:
    return [turn.number for turn in rank(turns(*evaluations))]


def timed(us: float, device: str = "H200", *, score: float = 50.0, implausible: str = "") -> Evaluation:
    timing = Timing(
        candidate_us=Interval(median=us, low=us, high=us),
        baselines=[],
        device=device,
        implausible=implausible,
    )
    return evaluation(score).model_copy(update={"timing": timing})


def failed(verdict: str, draws_passed: int | None = None) -> Evaluation:
    verification = Verification(
        draws=5,
        sizes=[],
        distributions=[],
        seed="",
        max_error=None,
        allowed_error=None,
        first_mismatch=None,
        checks=[],
        draws_passed=draws_passed,
    )
    return evaluation(None).model_copy(update={"verdict": verdict, "verification": verification})


def test_scores_where_nothing_was_timed_and_the_earlier_of_equals() -> None:
    assert order(evaluation(50.0), evaluation(70.0), evaluation(70.0), evaluation(60.0)) == [2, 3, 4, 1]


def test_time_on_one_card_comes_before_any_score() -> None:
    assert order(timed(9.0, score=90.0), timed(4.0, score=10.0), evaluation(99.0)) == [2, 1, 3]


def test_times_of_two_cards_are_not_compared() -> None:
    """The card that timed most decides; on another one, a candidate counts as not timed."""
    assert order(timed(9.0), timed(1.0, "T4", score=80.0), timed(8.0), evaluation(90.0)) == [3, 1, 4, 2]


def test_a_time_nobody_believes_comes_behind_all_that_passed() -> None:
    assert order(timed(0.001, implausible="faster than light"), timed(9.0), evaluation(1.0)) == [2, 3, 1]
    best = Trajectory(turns=turns(timed(0.001, implausible="faster than light"))).best
    assert best is not None  # it did pass


def test_what_failed_later_got_further() -> None:
    names = ["compile_error", "launch_error", "runtime_error", "wrong_result", "internal_error"]
    assert order(*map(failed, names)) == [4, 3, 2, 1, 5]
    assert order(failed("wrong_result", 1), failed("wrong_result", 4), failed("wrong_result")) == [2, 1, 3]
    assert Trajectory(turns=turns(*map(failed, names))).best is None

"""The built-in policy over a translator whose moves are given: what it tries, keeps, repeats and says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from given_environment import Given, evaluation

from agent.events import RunEnded, TurnEnded, TurnStarted
from agent.limits import Limits
from agent.loop import run
from agent.policies.builtin import PATIENCE, BuiltinPolicy
from agent.protocols import Draft, Move
from agent.trajectory import Trajectory, fold
from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.types import Evaluation, Metrics, Problem


@dataclass
class Ladder:
    """Offers steps 1, 2, 3 ... whatever it is asked about; remembers from which draft it was asked."""

    steps: int
    asked: list[object] = field(default_factory=list)

    def first(self) -> Draft:
        return Draft("step 0\n", 0)

    def moves(self, draft: Draft, evaluation: Evaluation) -> Iterator[Move]:
        self.asked.append(draft.schedule)
        for step in range(1, self.steps + 1):
            yield Move(Draft(f"step {step}\n", step), f"Step {step}", f"Line {step} asks for it.")


class Refusing:
    def first(self) -> Draft:
        raise TaskProblem(Problem(kind="unsupported_construct", message="goto cannot be translated", line=3))

    def moves(self, draft: Draft, evaluation: Evaluation) -> Iterator[Move]:
        yield from ()


def play(policy: BuiltinPolicy, *outcomes: float | None) -> Trajectory:
    return fold(run(policy, Given(*outcomes), Limits(turns=len(outcomes)), Cancellation()))


def test_each_turn_starts_from_the_best_and_nothing_is_tried_twice() -> None:
    ladder = Ladder(steps=3)
    trajectory = play(BuiltinPolicy(lambda: ladder), 40.0, 60.0, None, 50.0, 0.0)
    assert [turn.source for turn in trajectory.turns] == ["step 0\n", "step 1\n", "step 2\n", "step 3\n"]
    assert [turn.base_turn for turn in trajectory.turns] == [None, 1, 2, 2]
    assert ladder.asked == [0, 1, 1, 1]
    assert trajectory.ended is not None
    assert (trajectory.ended.reason, trajectory.ended.best_turn) == ("finished", 2)


def test_the_reflection_says_what_was_measured_and_why_the_next_step() -> None:
    trajectory = play(BuiltinPolicy(lambda: Ladder(steps=1)), 40.0, 60.0)
    assert "structural score of 40.0" in trajectory.turns[0].reflection
    assert "Next: step 1. Line 1 asks for it." in trajectory.turns[0].reflection
    assert "rose from 40.0 to 60.0" in trajectory.turns[1].reflection
    assert "turn 2 is kept (60.0)" in trajectory.turns[1].reflection


def test_the_weakest_family_is_named_with_its_own_sentence() -> None:
    metrics = Metrics(
        structural_score=40.0,
        families={"coalescing": 0.2, "occupancy": 1.0},
        measured_by="emulator",
        kernels=[],
        notes=["Line 7 loads 32 sectors per request.", "Nothing in the way."],
    )
    judged = evaluation(40.0).model_copy(update={"metrics": metrics})
    trajectory = play(BuiltinPolicy(lambda: Ladder(steps=0)), 40.0)
    trajectory.turns[0].evaluation = judged
    said = BuiltinPolicy(lambda: Ladder(steps=0)).reflect(trajectory)
    assert "Weakest is coalescing, at 0.20. Line 7 loads 32 sectors per request." in said


def test_a_row_of_steps_that_do_not_help_ends_the_run() -> None:
    trajectory = play(BuiltinPolicy(lambda: Ladder(steps=50)), 90.0, *[10.0] * 20)
    assert len(trajectory.turns) == 1 + PATIENCE
    assert trajectory.ended is not None
    assert trajectory.ended.best_turn == 1
    assert f"last {PATIENCE} steps" in trajectory.ended.message


def test_a_given_candidate_is_turn_one_and_the_direct_version_follows() -> None:
    policy = BuiltinPolicy(lambda: Ladder(steps=1), start_from="mine\n")
    trajectory = play(policy, 70.0, 40.0, 80.0)
    assert [turn.source for turn in trajectory.turns] == ["mine\n", "step 0\n", "step 1\n"]
    assert trajectory.best is not None
    assert trajectory.best.number == 3


def test_a_given_candidate_is_judged_even_where_nothing_can_be_translated() -> None:
    trajectory = play(BuiltinPolicy(Refusing, start_from="mine\n"), 70.0, 0.0)
    assert trajectory.ended is not None
    assert (trajectory.ended.reason, trajectory.ended.best_turn) == ("finished", 1)
    assert "goto" in trajectory.ended.message


def test_what_cannot_be_translated_ends_the_run_with_construct_and_line() -> None:
    events = list(run(BuiltinPolicy(Refusing), Given(0.0), Limits(turns=3), Cancellation()))
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert ended.reason == "unsupported"
    assert ended.problem is not None
    assert ended.problem.line == 3
    assert not any(isinstance(event, TurnStarted | TurnEnded) for event in events)

"""The loop against an environment whose evaluations are given: endings, bookkeeping, one `run_ended`."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from agent.events import Event, Log, RunEnded, RunStarted, TurnEnded, event_adapter
from agent.limits import Limits
from agent.loop import run
from agent.policies.scripted import ScriptedPolicy
from agent.trajectory import fold
from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.tasks.base import Inputs, TaskSpec
from sandbox.types import Evaluation, Metrics, Problem

SPEC = TaskSpec(
    language="c",
    name="f",
    source="void f(int n, float *x) {}",
    prototype='extern "C" void launch(int n, float *x)',
    parameters=[],
    sizes={"n": 1024},
    inputs=Inputs(),
)


def evaluation(score: float | None) -> Evaluation:
    """Passed with this score, or wrong when None."""
    if score is None:
        return Evaluation(
            verdict="wrong_result", fault="candidate", message="off", backend="emulator", target="sm_90"
        )
    metrics = Metrics(structural_score=score, families={}, measured_by="emulator", kernels=[])
    return Evaluation(
        verdict="passed", fault=None, message="agrees", backend="emulator", target="sm_90", metrics=metrics
    )


class Given:
    """Answers the n-th candidate with the n-th outcome; an exception among them is raised."""

    spec = SPEC
    backend = "emulator"
    target = "sm_90"

    def __init__(self, *outcomes: float | Exception | None) -> None:
        self.outcomes = list(outcomes)

    def step(self, turn: int, source: str) -> Generator[Event, None, Evaluation]:
        yield Log(turn=turn, stream="nvcc", text=source)
        outcome = self.outcomes[turn - 1]
        if isinstance(outcome, Exception):
            raise outcome
        return evaluation(outcome)


def play(environment: Given, turns: int = 8, cancel: Cancellation | None = None) -> list[Event]:
    policy = ScriptedPolicy([f"kernel {i}\n" for i in range(len(environment.outcomes))])
    return list(run(policy, environment, Limits(turns=turns), cancel or Cancellation()))


def test_the_best_turn_is_kept_and_the_earliest_of_equals_wins() -> None:
    events = play(Given(None, 60.0, 80.0, 80.0, 70.0))
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.reason, ended.best_turn, ended.verdict) == ("finished", 3, "passed")
    assert [e.best_turn for e in events if isinstance(e, TurnEnded)] == [None, 2, 3, 3, 3]


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (TaskProblem(Problem(kind="endless", message="your program did not end")), "bad_input"),
        (TaskProblem(Problem(kind="unsupported_construct", message="goto")), "unsupported"),
        (ZeroDivisionError("bug"), "internal_error"),
    ],
)
def test_every_ending_has_its_reason_and_comes_once(outcome: Exception, reason: str) -> None:
    events = play(Given(50.0, outcome))
    assert [e.type for e in events].count("run_ended") == 1
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.reason, ended.best_turn) == (reason, 1)


def test_the_turn_limit_ends_the_run() -> None:
    ended = play(Given(50.0, 60.0, 70.0), turns=2)[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.reason, ended.best_turn) == ("turn_limit", 2)


def test_a_cancelled_run_says_so_and_starts_no_turn() -> None:
    cancel = Cancellation()
    cancel.set()
    events = play(Given(50.0), cancel=cancel)
    assert [e.type for e in events] == ["run_started", "run_ended"]
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert ended.reason == "cancelled"


def test_a_stream_survives_json_and_folds_to_the_same_trajectory() -> None:
    events = play(Given(None, 61.0))
    again = [event_adapter.validate_json(event.model_dump_json()) for event in events]
    assert again == events
    assert isinstance(again[0], RunStarted)
    trajectory = fold(again)
    assert [turn.source for turn in trajectory.turns] == ["kernel 0\n", "kernel 1\n"]
    assert trajectory.best is not None
    assert trajectory.best.number == 2

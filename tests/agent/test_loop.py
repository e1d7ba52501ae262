"""The loop against an environment whose evaluations are given: endings, bookkeeping, one `run_ended`."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from given_environment import Given

from agent.endings import RunEnds
from agent.events import (
    ActionTaken,
    Event,
    RunEnded,
    RunStarted,
    TextDelta,
    TurnEnded,
    TurnStarted,
    event_adapter,
)
from agent.limits import Limits
from agent.loop import run
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import Action, Finish, Keep, Submit, Unusable
from agent.trajectory import Trajectory, fold
from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.types import Problem


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


class Talking:
    """A policy that says its turns itself; each act does one thing given."""

    name = "talking"

    def __init__(self, *acts: Action | RunEnds) -> None:
        self.acts = list(acts)

    def act(self, trajectory: Trajectory) -> Generator[Event, None, Action]:
        turn = len(trajectory.turns) + 1
        yield TurnStarted(turn=turn, title="thinking", base_turn=None)
        yield TextDelta(turn=turn, text="hm")
        act = self.acts.pop(0)
        if isinstance(act, RunEnds):
            raise act
        return act

    def reflect(self, trajectory: Trajectory) -> str:
        return "so"


def test_a_turn_without_a_candidate_counts_and_does_not_compile() -> None:
    policy = Talking(Unusable("no code in the answer", "t"), Submit("kernel", "t"), Finish("done"))
    events = list(run(policy, Given(50.0), Limits(), Cancellation()))
    trajectory = fold(events)
    first, second, _ = trajectory.turns
    assert first.evaluation is not None
    assert (first.evaluation.verdict, first.evaluation.message) == ("compile_error", "no code in the answer")
    assert (first.source, second.source) == ("", "kernel")
    assert [e.action for e in events if isinstance(e, ActionTaken)] == ["none", "submit", "finish"]
    assert [e.turn for e in events if isinstance(e, TurnStarted)] == [1, 2, 3]  # each once
    assert trajectory.best is second


def test_a_limit_of_the_policys_own_ends_the_run_with_its_reason() -> None:
    policy = Talking(Submit("kernel", "t"), RunEnds("token_limit", "all tokens are used"))
    ended = list(run(policy, Given(50.0), Limits(), Cancellation()))[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.reason, ended.message, ended.best_turn) == ("token_limit", "all tokens are used", 1)


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


@pytest.mark.parametrize("begins", [True, False])
def test_a_program_that_is_left_sequential_ends_the_run_as_kept(begins: bool) -> None:
    class Leaves(Talking):
        def act(self, trajectory: Trajectory) -> Generator[Event, None, Action]:
            if begins:
                return (yield from super().act(trajectory))
            return self.acts.pop(0)

    events = list(run(Leaves(Keep("a chain")), Given(), Limits(), Cancellation()))
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.reason, ended.message, ended.verdict) == ("kept", "a chain", None)
    assert [e.action for e in events if isinstance(e, ActionTaken)] == (["keep"] if begins else [])

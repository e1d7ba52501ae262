"""The loop every policy runs in: choose, edit, judge, reflect, until something ends it.

It knows nothing of who the policy is or where candidates run. Each ending has a name
(`agent.events.EndReason`), and exactly one `run_ended` closes the stream, whatever happens. `agent.search`
makes its turns here too, several branches of them.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from typing import Literal, TypeVar

from agent.edits import apply_edits, edited_events
from agent.endings import RunEnds
from agent.events import (
    ActionTaken,
    Edited,
    EndReason,
    Event,
    Reflected,
    RunEnded,
    RunStarted,
    TextDelta,
    TurnEnded,
    TurnStarted,
)
from agent.limits import Limits
from agent.protocols import Environment, Finish, Keep, Policy, Submit, Unusable
from agent.trajectory import Trajectory
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, TaskProblem
from sandbox.types import Evaluation, Problem

CANDIDATE_FILE = "kernel.cu"
_Result = TypeVar("_Result")


def run(
    policy: Policy,
    environment: Environment,
    limits: Limits,
    cancel: Cancellation,
    *,
    earlier: Iterable[Event] = (),
) -> Iterator[Event]:
    """One run, a turn after the other. Never raises for what a task, a candidate or a cancellation does.

    `earlier`: the events of a run of the same task that was broken off. Its judged turns are told again, as
    they were, and this run goes on from them; for that, the policy must keep nothing but the trajectory.
    """
    trajectory, clock = Trajectory(), Clock(limits.seconds)
    yield from closed(
        trajectory, clock, _turns(policy, environment, limits, cancel, trajectory, clock, earlier)
    )


class Clock:
    """A run's own time, in seconds."""

    def __init__(self, limit: float) -> None:
        self.limit, self._began = limit, time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def check(self) -> None:
        """Raises RunEnds when the time is up."""
        if self.seconds > self.limit:
            raise RunEnds("time_limit", f"stopped after {self.limit:.0f} s; the best turn is kept")


def closed(
    trajectory: Trajectory, clock: Clock, events: Generator[Event, None, tuple[EndReason, str]]
) -> Iterator[Event]:
    """The events, folded into `trajectory` as they come, and after them the one that closes the run."""
    reason: EndReason = "internal_error"
    message, problem = "the run ended without a reason", None
    try:
        while True:
            try:
                event = next(events)
            except StopIteration as stop:
                reason, message = stop.value
                break
            trajectory.apply(event)
            yield event
    except RunEnds as ending:
        reason, message = ending.reason, ending.message
    except Cancelled:
        reason, message = "cancelled", "cancelled; every process started for it has been stopped"
    except TaskProblem as error:
        problem = error.problem
        reason = "unsupported" if problem.kind.startswith("unsupported") else "bad_input"
        message = problem.message
    except Exception as error:  # the stream must end with its reason, and a bug must not look like a verdict
        message = f"Kernelwright's own fault: {type(error).__name__}: {error}"
    finally:
        events.close()
    yield ended(trajectory, reason, message, problem, clock.seconds)


def _turns(
    policy: Policy,
    environment: Environment,
    limits: Limits,
    cancel: Cancellation,
    trajectory: Trajectory,
    clock: Clock,
    earlier: Iterable[Event],
) -> Generator[Event, None, tuple[EndReason, str]]:
    """Generator of a run's events up to its end; returns (reason, message)."""
    yield started(policy.name, environment, limits)
    editor = Editor()
    for event in judged_turns(earlier):
        yield from editor.told(event)
    while trajectory.next_turn <= limits.turns:
        cancel.check()
        clock.check()
        action = yield from editor.follow(one_turn(policy, environment, trajectory))
        if action is not None:
            return ("kept" if isinstance(action, Keep) else "finished"), action.reason
    return turns_used(limits)


def started(policy: str, environment: Environment, limits: Limits, strategy: str = "single") -> RunStarted:
    return RunStarted(
        task=environment.spec,
        policy=policy,
        backend=environment.backend,
        target=environment.target,
        turn_limit=limits.turns,
        strategy=strategy,
    )


def turns_used(limits: Limits) -> tuple[EndReason, str]:
    used = "the only turn is" if limits.turns == 1 else f"all {limits.turns} turns are"
    return "turn_limit", f"{used} used; the best turn is kept"


def one_turn(
    policy: Policy, environment: Environment, trajectory: Trajectory
) -> Generator[Event, None, Finish | Keep | None]:
    """One action with its observation. Returns the action where it ends the run, or the branch.

    The caller folds each event into `trajectory` before it takes the next.
    """
    began, turn = time.monotonic(), trajectory.next_turn
    action = yield from policy.act(trajectory)
    begun = trajectory.last is not None and trajectory.last.number == turn
    if isinstance(action, Finish | Keep):
        if begun:  # it had begun a turn, and made up its mind in it
            yield ending_action(turn, action)
        return action
    if not begun:
        yield TurnStarted(turn=turn, title=action.title, base_turn=action.base_turn)
    if isinstance(action, Submit):
        yield ActionTaken(turn=turn, action="submit", source=action.source)
        evaluation = yield from environment.step(turn, action.source)
    else:
        yield ActionTaken(turn=turn, action="none", reason=action.why)
        evaluation = _nothing_to_judge(action, environment)
    trajectory.turn(turn).evaluation = evaluation  # so that the reflection sees it
    yield Reflected(turn=turn, text=policy.reflect(trajectory))
    best = trajectory.best
    yield TurnEnded(
        turn=turn,
        evaluation=evaluation,
        best_turn=best.number if best else None,
        seconds=time.monotonic() - began,
    )
    return None


def ending_action(turn: int, action: Finish | Keep) -> ActionTaken:
    kind: Literal["keep", "finish"] = "keep" if isinstance(action, Keep) else "finish"
    return ActionTaken(turn=turn, action=kind, reason=action.reason)


def _nothing_to_judge(action: Unusable, environment: Environment) -> Evaluation:
    """A turn without a candidate does not compile: that is what it is worth, and whose fault it is."""
    return Evaluation(
        verdict="compile_error",
        fault="candidate",
        message=action.why,
        backend=environment.backend,
        target=environment.target,
    )


def judged_turns(events: Iterable[Event]) -> list[Event]:
    """The events of the turns that were judged to their end. Text deltas are left out.

    Also kept is a turn that ended a branch of a search, where others came after it.
    """
    told = [e for e in events if not isinstance(e, RunStarted | RunEnded | TextDelta)]
    judged = {event.turn for event in told if isinstance(event, TurnEnded)}
    last = max(judged, default=0)
    ended = {e.turn for e in told if isinstance(e, ActionTaken) and e.action in ("finish", "keep")}
    kept = judged | {turn for turn in ended if turn < last}
    return [event for event in told if event.turn in kept]


class Editor:
    """What an editor that applies every edit shows. It alone knows the versions."""

    def __init__(self) -> None:
        self.text, self.version = "", 0
        self._turn, self._blind = 0, False

    def follow(self, turn: Generator[Event, None, _Result]) -> Generator[Event, None, _Result]:
        """A turn's events, with edits that fit: a policy that edits as it goes says what it changes, the
        versions are given here, and in the end the whole candidate is shown."""
        with closing(turn):
            try:
                while True:
                    yield from self.told(next(turn))
            except StopIteration as stop:
                result: _Result = stop.value
                return result

    def told(self, event: Event) -> Iterator[Event]:
        match event:
            case TurnStarted():
                # What was shown before may be from a turn that is not told: its edits do not fit then.
                self._blind = event.turn != self._turn + 1
                self._turn = event.turn
                yield event
            case Edited():
                if not self._blind:
                    yield self._apply(event)
            case ActionTaken(action="submit"):
                yield from self.show(event.turn, event.source)
                yield event
            case _:
                yield event

    def show(self, turn: int, source: str) -> Iterator[Edited]:
        """From what is shown to the whole candidate."""
        for edit in edited_events(turn, self.text, source, file=CANDIDATE_FILE, version=self.version):
            yield self._apply(edit)

    def _apply(self, edit: Edited) -> Edited:
        self.text = apply_edits(self.text, edit.edits)
        base, self.version = self.version, self.version + 1
        return edit.model_copy(update={"base_version": base, "version": self.version})


def ended(
    trajectory: Trajectory, reason: EndReason, message: str, problem: Problem | None, seconds: float
) -> RunEnded:
    """The closing event: the best turn, and the verdict of that or of the last judged one."""
    best = trajectory.best
    judged = best or next((t for t in reversed(trajectory.turns) if t.evaluation), None)
    return RunEnded(
        reason=reason,
        message=message,
        best_turn=best.number if best else None,
        verdict=judged.evaluation.verdict if judged and judged.evaluation else None,
        problem=problem,
        seconds=seconds,
    )

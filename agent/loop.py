"""The loop every policy runs in: choose, edit, judge, reflect, until something ends it.

It knows nothing of who the policy is or where candidates run. Each ending has a name
(`agent.events.EndReason`), and exactly one `run_ended` closes the stream, whatever happens.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator

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
from agent.protocols import Action, Environment, Finish, Policy, Submit, Unusable
from agent.trajectory import Trajectory
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, TaskProblem
from sandbox.types import Evaluation, Problem

CANDIDATE_FILE = "kernel.cu"


def run(
    policy: Policy,
    environment: Environment,
    limits: Limits,
    cancel: Cancellation,
    *,
    earlier: Iterable[Event] = (),
) -> Iterator[Event]:
    """One run. Never raises for what a task, a candidate or a cancellation does.

    `earlier`: the events of a run of the same task that was broken off. Its judged turns are told again, as
    they were, and this run goes on from them; for that, the policy must keep nothing but the trajectory.
    """
    trajectory, began = Trajectory(), time.monotonic()
    events = _turns(policy, environment, limits, cancel, trajectory, began, judged_turns(earlier))
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
    yield ended(trajectory, reason, message, problem, time.monotonic() - began)


def _turns(
    policy: Policy,
    environment: Environment,
    limits: Limits,
    cancel: Cancellation,
    trajectory: Trajectory,
    began: float,
    earlier: Iterable[Event],
) -> Generator[Event, None, tuple[EndReason, str]]:
    """Generator of a run's events up to its end; returns (reason, message)."""
    yield RunStarted(
        task=environment.spec,
        policy=policy.name,
        backend=environment.backend,
        target=environment.target,
        turn_limit=limits.turns,
    )
    editor = _Editor()
    for event in earlier:
        yield editor.again(event)
    for turn in range(len(trajectory.turns) + 1, limits.turns + 1):
        cancel.check()
        if time.monotonic() - began > limits.seconds:
            return "time_limit", f"stopped after {limits.seconds:.0f} s; the best turn is kept"
        turn_began = time.monotonic()
        action = yield from editor.follow(policy.act(trajectory))
        if isinstance(action, Finish):
            if len(trajectory.turns) == turn:  # it had begun a turn, and made up its mind in it
                yield ActionTaken(turn=turn, action="finish", reason=action.reason)
            return "finished", action.reason
        if len(trajectory.turns) < turn:
            yield TurnStarted(turn=turn, title=action.title, base_turn=action.base_turn)
        if isinstance(action, Submit):
            yield from editor.show(turn, action.source)
            yield ActionTaken(turn=turn, action="submit", source=action.source)
            evaluation = yield from environment.step(turn, action.source)
        else:
            yield ActionTaken(turn=turn, action="none", reason=action.why)
            evaluation = _nothing_to_judge(action, environment)
        trajectory.turns[turn - 1].evaluation = evaluation  # so that the reflection sees it
        yield Reflected(turn=turn, text=policy.reflect(trajectory))
        best = trajectory.best
        yield TurnEnded(
            turn=turn,
            evaluation=evaluation,
            best_turn=best.number if best else None,
            seconds=time.monotonic() - turn_began,
        )
    used = "the only turn is" if limits.turns == 1 else f"all {limits.turns} turns are"
    return "turn_limit", f"{used} used; the best turn is kept"


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
    """The events of the first turns, up to one that was not judged to its end. Text deltas are left out."""
    kept: list[Event] = []
    turn: list[Event] = []
    for event in events:
        if isinstance(event, RunStarted | RunEnded | TextDelta):
            continue
        turn.append(event)
        if isinstance(event, TurnEnded):
            kept += turn
            turn = []
    return kept


class _Editor:
    """What an editor that applies every edit shows. It alone knows the versions."""

    def __init__(self) -> None:
        self.text, self.version = "", 0

    def follow(self, acting: Generator[Event, None, Action]) -> Generator[Event, None, Action]:
        """A policy that edits as it goes says what it changes; the versions are given here."""
        try:
            while True:
                event = next(acting)
                yield self._apply(event) if isinstance(event, Edited) else event
        except StopIteration as stop:
            action: Action = stop.value
            return action
        finally:
            acting.close()

    def show(self, turn: int, source: str) -> Iterator[Edited]:
        """From what is shown to the whole candidate."""
        for edit in edited_events(turn, self.text, source, file=CANDIDATE_FILE, version=self.version):
            yield self._apply(edit)

    def again(self, event: Event) -> Event:
        """An event of before. Edits of turns that were left out have left gaps in the versions."""
        return self._apply(event) if isinstance(event, Edited) else event

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

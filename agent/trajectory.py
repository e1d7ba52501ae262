"""A run's turns, folded from its events. The same fold serves the loop, the command line and the web."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from agent.events import (
    ActionTaken,
    Answered,
    Event,
    Reflected,
    RunEnded,
    RunStarted,
    ToolUsed,
    TurnEnded,
    TurnStarted,
)
from agent.ranking import rank
from sandbox.tasks.base import TaskSpec
from sandbox.types import Evaluation


@dataclass
class Turn:
    """One action with its observation."""

    number: int
    title: str
    base_turn: int | None
    branch: int = 1
    also_from: int | None = None
    source: str = ""
    evaluation: Evaluation | None = None
    reflection: str = ""
    answers: list[Answered] = field(default_factory=list)
    tools: list[ToolUsed] = field(default_factory=list)
    ending: Literal["", "finish", "keep"] = ""  # the policy ended the run, or its branch, in this turn
    reason: str = ""  # of that
    same_as: int | None = None

    @property
    def plan(self) -> str:
        """What the model said it would try, else the turn's title."""
        return next((a.plan for a in reversed(self.answers) if a.plan), self.title)

    @property
    def over(self) -> bool:
        """Judged, or ended without a candidate."""
        return self.evaluation is not None or bool(self.ending)


@dataclass
class Trajectory:
    """A run, or what a policy is shown of one (`view`)."""

    task: TaskSpec | None = None
    turns: list[Turn] = field(default_factory=list)  # in the order of their numbers
    started: RunStarted | None = None
    ended: RunEnded | None = None
    upcoming: int | None = None  # of a view: the number of the turn to be made
    base: Turn | None = None  # of a view: whose source to start from, where the strategy has chosen
    mate: Turn | None = None  # of a view: a second parent

    def apply(self, event: Event) -> None:
        """Fold one event in. Unknown turns are a programming error and raise LookupError."""
        match event:
            case RunStarted():
                self.started, self.task = event, event.task
            case TurnStarted():
                self.turns.append(
                    Turn(event.turn, event.title, event.base_turn, event.branch, event.also_from)
                )
            case ActionTaken(action="submit"):
                self.turn(event.turn).source = event.source
            case ActionTaken(action="finish" | "keep" as ending):
                turn = self.turn(event.turn)
                turn.ending, turn.reason = ending, event.reason
            case Answered():
                self.turn(event.turn).answers.append(event)
            case ToolUsed():
                self.turn(event.turn).tools.append(event)
            case Reflected():
                self.turn(event.turn).reflection = event.text
            case TurnEnded():
                turn = self.turn(event.turn)
                turn.evaluation, turn.same_as = event.evaluation, event.same_as
            case RunEnded():
                self.ended = event
            case _:
                pass

    def turn(self, number: int) -> Turn:
        """Raises LookupError."""
        for turn in reversed(self.turns):
            if turn.number == number:
                return turn
        raise LookupError(f"there is no turn {number}")

    def before(self, number: int) -> list[Turn]:
        return [turn for turn in self.turns if turn.number < number]

    def view(
        self, numbers: Iterable[int], upcoming: int, *, base: int | None = None, mate: int | None = None
    ) -> Trajectory:
        """What a policy is shown that makes turn `upcoming`: these earlier turns and no others."""
        return Trajectory(
            task=self.task,
            started=self.started,
            turns=[self.turn(number) for number in sorted(numbers)],
            upcoming=upcoming,
            base=None if base is None else self.turn(base),
            mate=None if mate is None else self.turn(mate),
        )

    @property
    def next_turn(self) -> int:
        """The number of the next turn."""
        if self.upcoming is not None:
            return self.upcoming
        return self.turns[-1].number + 1 if self.turns else 1

    @property
    def best(self) -> Turn | None:
        """The first of those that passed (`agent.ranking`), or None."""
        passed = [t for t in self.turns if t.evaluation is not None and t.evaluation.verdict == "passed"]
        return next(iter(rank(passed)), None)

    @property
    def last(self) -> Turn | None:
        return self.turns[-1] if self.turns else None


def fold(events: Iterable[Event]) -> Trajectory:
    trajectory = Trajectory()
    for event in events:
        trajectory.apply(event)
    return trajectory

"""A run's turns, folded from its events. The same fold serves the loop, the command line and the web."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

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
from sandbox.tasks.base import TaskSpec
from sandbox.types import Evaluation


@dataclass
class Turn:
    """One action with its observation."""

    number: int
    title: str
    base_turn: int | None
    source: str = ""
    evaluation: Evaluation | None = None
    reflection: str = ""
    answers: list[Answered] = field(default_factory=list)
    tools: list[ToolUsed] = field(default_factory=list)

    @property
    def plan(self) -> str:
        """What the model said it would try, else the turn's title."""
        return next((a.plan for a in reversed(self.answers) if a.plan), self.title)


@dataclass
class Trajectory:
    task: TaskSpec | None = None
    turns: list[Turn] = field(default_factory=list)
    started: RunStarted | None = None
    ended: RunEnded | None = None

    def apply(self, event: Event) -> None:
        """Fold one event in. Unknown turns are a programming error and raise IndexError."""
        match event:
            case RunStarted():
                self.started, self.task = event, event.task
            case TurnStarted():
                self.turns.append(Turn(event.turn, event.title, event.base_turn))
            case ActionTaken(action="submit"):
                self.turns[event.turn - 1].source = event.source
            case Answered():
                self.turns[event.turn - 1].answers.append(event)
            case ToolUsed():
                self.turns[event.turn - 1].tools.append(event)
            case Reflected():
                self.turns[event.turn - 1].reflection = event.text
            case TurnEnded():
                self.turns[event.turn - 1].evaluation = event.evaluation
            case RunEnded():
                self.ended = event
            case _:
                pass

    @property
    def best(self) -> Turn | None:
        """The passed turn with the highest structural score, the earliest of equals, or None."""
        passed = [t for t in self.turns if t.evaluation is not None and t.evaluation.verdict == "passed"]
        return max(
            passed,
            key=lambda t: (t.evaluation.score or 0.0 if t.evaluation else 0.0, -t.number),
            default=None,
        )

    @property
    def last(self) -> Turn | None:
        return self.turns[-1] if self.turns else None


def fold(events: Iterable[Event]) -> Trajectory:
    trajectory = Trajectory()
    for event in events:
        trajectory.apply(event)
    return trajectory

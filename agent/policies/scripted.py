"""A policy that submits given sources in order: for replaying trajectories and for tests of the loop."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from agent.events import Event
from agent.protocols import Action, Finish, Submit
from agent.trajectory import Trajectory


@dataclass
class ScriptedPolicy:
    sources: Sequence[str]
    name: str = "scripted"

    def act(self, trajectory: Trajectory) -> Generator[Event, None, Action]:
        yield from ()
        done = len(trajectory.turns)
        if done == len(self.sources):
            return Finish("the script is at its end")
        return Submit(self.sources[done], f"Step {done + 1} of the script", done or None)

    def reflect(self, trajectory: Trajectory) -> str:
        turn = trajectory.turns[-1]
        return f"Turn {turn.number}: {turn.evaluation.message if turn.evaluation else 'not judged'}"

"""Several environments of one task as one: as many candidates are judged at a time as there are lanes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Protocol

from agent.events import Event
from agent.protocols import Environment
from sandbox.cancellation import Cancellation
from sandbox.tasks.base import TaskSpec
from sandbox.types import Compilation, Evaluation

#: How long a cancellation may go unseen by who waits.
POLL_SECONDS = 0.1


class Closing(Environment, Protocol):
    def close(self) -> None: ...


@dataclass
class Lanes:
    """`agent.protocols.Environment` for several threads. Further lanes are opened when they are first needed;
    those are closed here, `first` by whoever made it."""

    first: Environment
    more: Callable[[], Closing]
    most: int
    cancel: Cancellation
    _free: list[Environment] = field(default_factory=list)
    _opened: list[Closing] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.backend, self.target = self.first.backend, self.first.target
        self._free.append(self.first)

    @property
    def spec(self) -> TaskSpec:
        return self.first.spec

    def step(self, turn: int, source: str) -> Generator[Event, None, Evaluation]:
        lane = self._take()
        try:
            return (yield from lane.step(turn, source))
        finally:
            with self._changed:
                self._free.append(lane)
                self._changed.notify()

    def compile(self, turn: int, source: str) -> Generator[Event, None, tuple[bool, Compilation]]:
        return (yield from self.first.compile(turn, source))

    def reference_times(self, turn: int) -> Generator[Event, None, dict[str, float]]:
        return (yield from self.first.reference_times(turn))

    def close(self) -> None:
        for lane in self._opened:
            lane.close()

    def _take(self) -> Environment:
        """Raises Cancelled."""
        with self._changed:
            while not self._free and len(self._opened) + 1 >= self.most:
                self.cancel.check()
                self._changed.wait(POLL_SECONDS)
            self.cancel.check()
            if self._free:
                return self._free.pop()
            lane = self.more()
            self._opened.append(lane)
            return lane

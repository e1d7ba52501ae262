"""A whole search against a server that answers by what it is asked: the same for any order of requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from chat_server import ChatServer, Handler, Play, serving
from given_environment import SPEC

from agent.events import Event, Log, RunEnded, TextDelta, TurnEnded
from agent.limits import Limits
from agent.llm.record import Exchange
from agent.search.options import SearchOptions
from agent.search.setup import open_search
from agent.trajectory import Trajectory, fold
from sandbox.cancellation import Cancellation
from sandbox.tasks.base import TaskSpec
from sandbox.types import Compilation, Evaluation

Judge = Callable[[str], Evaluation]
Answers = Callable[[dict[str, Any]], Play]


class Judged:
    """An environment that judges by the source alone, and counts what it was given."""

    backend = "emulator"
    target = "sm_90"
    spec: TaskSpec = SPEC

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.judged: list[str] = []
        self.lock = threading.Lock()
        self.opened = self.closed = 0

    def step(self, turn: int, source: str) -> Generator[Event, None, Evaluation]:
        yield Log(turn=turn, stream="nvcc", text=f"turn {turn}\n")
        with self.lock:
            self.judged.append(source)
        return self.judge(source)

    def compile(self, turn: int, source: str) -> Generator[Event, None, tuple[bool, Compilation]]:
        yield from ()
        return True, Compilation(seconds=0.1, log="", diagnostics=[], kernels=[])

    def reference_times(self, turn: int) -> Generator[Event, None, dict[str, float]]:
        yield from ()
        return {"c": 12.5}

    def close(self) -> None:
        self.closed += 1


@dataclass
class Found:
    events: list[Event]
    server: ChatServer
    environment: Judged
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def trajectory(self) -> Trajectory:
        return fold(self.events)

    @property
    def ended(self) -> RunEnded:
        [last] = [event for event in self.events if isinstance(event, RunEnded)]
        assert last is self.events[-1]
        return last

    def told(self) -> list[str]:
        """The stream without what depends on the clock, to compare two runs."""
        return [
            str(
                event.model_copy(update={"seconds": 0.0})
                if isinstance(event, TurnEnded | RunEnded)
                else event
            )
            for event in self.events
            if not isinstance(event, TextDelta) and event.type not in ("answered", "stage")
        ]

    def asked(self, request: int) -> str:
        return "\n".join(str(m["content"]) for m in self.server.requests[request]["messages"])


def search(
    options: SearchOptions,
    answers: Answers | Sequence[Play],
    judge: Judge,
    *,
    limits: Limits | None = None,
    cancel: Cancellation | None = None,
    start_from: str | None = None,
    earlier: Sequence[Event] = (),
    protocol: Any = "rewrite",
    until: Callable[[Event], bool] = lambda event: False,
    **settings: Any,
) -> Found:
    """`until`: stop listening after this event, as a caller does that goes away."""
    cancel, limits = cancel or Cancellation(), limits or Limits(turns=40, seconds=60.0)
    environment = Judged(judge)

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        assert callable(answers)
        answers(body)(handler, body)

    plays = [answer] * 200 if callable(answers) else list(answers)
    with serving(plays) as server:
        exchanges: list[Exchange] = []
        running = open_search(
            options,
            server.endpoint(**settings),
            protocol,
            environment,
            lambda: environment,
            limits,
            cancel,
            start_from=start_from,
            record=exchanges.append,
        )
        events: list[Event] = []
        stream = running.run(earlier)
        for event in stream:
            events.append(event)
            if until(event):
                stream.close()
                break
        running.lanes.close()
        found = Found(events, server, environment, exchanges)
        if events and isinstance(events[-1], RunEnded):
            assert found.ended.reason != "internal_error", found.ended.message
        return found

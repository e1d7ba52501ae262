"""The environment of a run: candidates go in, the judge's progress comes out as events."""

from __future__ import annotations

from collections.abc import Generator

from agent.events import Compiled, Event, Log, Measured, Stage, Timed, Verified
from sandbox import client
from sandbox.cancellation import Cancellation
from sandbox.tasks.base import Task, TaskSpec
from sandbox.types import Evaluation


class JudgeEnvironment:
    """`agent.protocols.Environment` over `sandbox.client`. One task, any number of candidates."""

    def __init__(self, task: Task, *, backend: str, target: str, cancel: Cancellation) -> None:
        self._judge = client.Judge(task, backend=backend, target=target, cancel=cancel)
        self.backend: str = self._judge.backend
        self.target = target

    @property
    def spec(self) -> TaskSpec:
        return self._judge.task.spec

    def step(self, turn: int, source: str) -> Generator[Event, None, Evaluation]:
        progress = self._judge.evaluate(source)
        try:
            while True:
                yield _event(turn, next(progress))
        except StopIteration as stop:
            evaluation: Evaluation = stop.value
            return evaluation
        finally:
            progress.close()

    def close(self) -> None:
        self._judge.close()


def _event(turn: int, progress: client.Progress) -> Event:
    match progress:
        case client.LogChunk(stream, text):
            return Log(turn=turn, stream=stream, text=text)
        case client.StageAt(stage, detail, done, of):
            return Stage(turn=turn, stage=stage, detail=detail, done=done, of=of)
        case client.CompiledCandidate(compilation, plan):
            return Compiled(turn=turn, compile=compilation, plan=plan)
        case client.VerifiedCandidate(verification):
            return Verified(turn=turn, verification=verification)
        case client.MeasuredCandidate(metrics):
            return Measured(turn=turn, metrics=metrics)
        case client.TimedCandidate(timing):
            return Timed(turn=turn, timing=timing)

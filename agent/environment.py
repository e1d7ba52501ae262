"""The environment of a run: candidates go in, the judge's progress comes out as events."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Protocol, TypeVar

from agent.events import Compiled, Event, Log, Measured, Stage, Timed, Verified
from sandbox import client, progress
from sandbox.cancellation import Cancellation
from sandbox.tasks.base import Task, TaskSpec
from sandbox.types import Compilation, Evaluation

_Result = TypeVar("_Result")


class Judge(Protocol):
    """What an environment needs of `sandbox.client.Judge`; the web has one whose card is elsewhere."""

    @property
    def task(self) -> Task: ...

    @property
    def backend(self) -> str: ...

    def evaluate(self, source: str) -> Generator[progress.Progress, None, Evaluation]: ...

    def compile(self, source: str) -> Generator[progress.Progress, None, tuple[bool, Compilation]]: ...

    def reference_times(self) -> Generator[progress.Progress, None, dict[str, float]]: ...

    def close(self) -> None: ...


#: Of a task, a backend, a target: its judge. Raises TaskProblem for a backend that cannot be had.
MakeJudge = Callable[[Task, str, str, Cancellation], Judge]


def judge_here(task: Task, backend: str, target: str, cancel: Cancellation) -> Judge:
    return client.Judge(task, backend=backend, target=target, cancel=cancel)


class JudgeEnvironment:
    """`agent.protocols.Environment` over a judge. One task, any number of candidates."""

    def __init__(
        self,
        task: Task,
        *,
        backend: str,
        target: str,
        cancel: Cancellation,
        make_judge: MakeJudge = judge_here,
    ) -> None:
        self._judge = make_judge(task, backend, target, cancel)
        self.backend: str = self._judge.backend
        self.target = target

    @property
    def spec(self) -> TaskSpec:
        return self._judge.task.spec

    def step(self, turn: int, source: str) -> Generator[Event, None, Evaluation]:
        return (yield from _told(turn, self._judge.evaluate(source)))

    def compile(self, turn: int, source: str) -> Generator[Event, None, tuple[bool, Compilation]]:
        return (yield from _told(turn, self._judge.compile(source)))

    def reference_times(self, turn: int) -> Generator[Event, None, dict[str, float]]:
        return (yield from _told(turn, self._judge.reference_times()))

    def close(self) -> None:
        self._judge.close()


def _told(turn: int, working: Generator[progress.Progress, None, _Result]) -> Generator[Event, None, _Result]:
    try:
        while True:
            yield _event(turn, next(working))
    except StopIteration as stop:
        result: _Result = stop.value
        return result
    finally:
        working.close()


def _event(turn: int, said: progress.Progress) -> Event:
    match said:
        case progress.LogChunk(stream, text):
            return Log(turn=turn, stream=stream, text=text)
        case progress.StageAt(stage, detail, done, of, device, position):
            return Stage(
                turn=turn,
                stage=stage,
                detail=detail,
                done=done,
                of=of,
                device=device,
                queue_position=position,
            )
        case progress.CompiledCandidate(compilation, plan):
            return Compiled(turn=turn, compile=compilation, plan=plan)
        case progress.VerifiedCandidate(verification):
            return Verified(turn=turn, verification=verification)
        case progress.MeasuredCandidate(metrics):
            return Measured(turn=turn, metrics=metrics)
        case progress.TimedCandidate(timing):
            return Timed(turn=turn, timing=timing)

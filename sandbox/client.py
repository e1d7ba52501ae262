"""The only door to the judge: a task and a candidate go in, progress comes out, an evaluation is returned.

Nothing untrusted runs in the caller's process. Each step that touches a candidate's or a user's program runs
in a jail of its own (`sandbox.jail`); what comes back is bytes and validated data.
"""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

import numpy as np

from sandbox import toolchain
from sandbox.cancellation import Cancellation
from sandbox.errors import Judged, TaskProblem
from sandbox.evaluate import Pipeline, Report
from sandbox.gpu.client import usable
from sandbox.gpu.devices import Device, NoDevice
from sandbox.progress import LogChunk, Progress, StageAt
from sandbox.targets import DEFAULT_TARGET, TARGETS
from sandbox.tasks.base import Task
from sandbox.types import Backend, Compilation, Evaluation, Problem

_Result = TypeVar("_Result")

_POLL_SECONDS = 0.2  # how long a cancellation from outside may go unseen by a waiting caller


class Judge:
    """Judges candidates for one task, one after the other.

    The reference of the next evaluation is computed ahead, on fresh secret inputs, while the caller thinks.
    """

    def __init__(
        self,
        task: Task,
        *,
        backend: str = "auto",
        target: str,
        cancel: Cancellation,
        cards: Sequence[Device] | None = None,
        timing: bool = True,
    ) -> None:
        """Raises TaskProblem for a backend this machine does not have or an unknown target.

        `cards`: those to be used and no others, which the caller has looked at. `timing`: whether right
        candidates are timed, where there is a card.
        """
        if target not in TARGETS:
            raise TaskProblem(
                Problem(kind="unknown_target", message=f"unknown target {target!r}", choices=sorted(TARGETS))
            )
        self.task = task
        self.target = target
        if cards is None:
            cards = _cards(backend, target)
        self.backend: Backend = "gpu" if cards else "emulator"
        self._cancel = cancel
        self._pipeline = Pipeline(task, target=TARGETS[target], cancel=cancel, cards=cards, timing=timing)

    def evaluate(self, source: str) -> Generator[Progress, None, Evaluation]:
        """Yields progress as it happens. Raises Cancelled, and TaskProblem where the task is at fault."""
        return self._aside(lambda report: self._pipeline.evaluate(source, report))

    def compile(self, source: str) -> Generator[Progress, None, tuple[bool, Compilation]]:
        """Compiles only: whether nvcc took it, and what it said. Raises Cancelled."""
        return self._aside(lambda report: self._compile(source, report))

    def reference_times(self) -> Generator[Progress, None, dict[str, float]]:
        """Median microseconds of the user's own program on this machine, at the representative size, by how
        it was built: "c". Empty where it cannot be timed. Raises Cancelled."""
        return self._aside(self._reference_times)

    def _reference_times(self, report: Report) -> dict[str, float]:
        report(StageAt("time", "your own program"))
        try:
            draws = [draw for draw in self.task.draws(secrets.token_bytes(16)) if draw.representative]
            timed = self.task.baselines(draws, self._cancel)
        except TaskProblem:  # whatever is wrong with it, a judgement will say
            return {}
        return {baseline.name: float(np.median(baseline.microseconds)) for baseline in timed}

    def _compile(self, source: str, report: Report) -> tuple[bool, Compilation]:
        report(StageAt("compile", "nvcc"))
        try:
            compiled = toolchain.compile_candidate(
                source,
                target=self.target,
                cancel=self._cancel,
                on_log=lambda text: report(LogChunk("nvcc", text)),
            )
        except Judged as ended:
            return False, Compilation(seconds=0.0, log=ended.message, diagnostics=[], kernels=[])
        return compiled.ok, compiled.compilation

    def _aside(self, job: Callable[[Report], _Result]) -> Generator[Progress, None, _Result]:
        """Does a job in a thread and yields what it reports meanwhile."""
        said: queue.SimpleQueue[Progress | None] = queue.SimpleQueue()
        result: list[_Result] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                result.append(job(said.put))
            except BaseException as error:  # handed to the caller's thread below
                failed.append(error)
            said.put(None)

        worker = threading.Thread(target=work, name="judge", daemon=True)
        worker.start()
        try:
            while True:
                try:
                    progress = said.get(timeout=_POLL_SECONDS)
                except queue.Empty:
                    self._cancel.is_set  # noqa: B018  asks the outside flag, so that jailed waits see it too
                    continue
                if progress is None:
                    break
                yield progress
        except BaseException:  # the caller goes away, or was interrupted: nobody wants the rest
            self._cancel.set()
            raise
        finally:
            worker.join()
        if failed:
            raise failed[0]
        return result[0]

    def close(self) -> None:
        self._pipeline.close()


def evaluate(task: Task, source: str, *, backend: str, target: str, cancel: Cancellation) -> Evaluation:
    """One candidate, without progress."""
    judge = Judge(task, backend=backend, target=target, cancel=cancel)
    try:
        progress = judge.evaluate(source)
        while True:
            next(progress)
    except StopIteration as stop:
        evaluation: Evaluation = stop.value
        return evaluation
    finally:
        judge.close()


def default_target(backend: str) -> str:
    """The architecture of the card that would be used, else DEFAULT_TARGET."""
    if backend == "emulator":
        return DEFAULT_TARGET
    try:
        archs = [card.arch for card in usable()]
    except NoDevice:
        return DEFAULT_TARGET
    return next((arch for arch in archs if arch in TARGETS), DEFAULT_TARGET)


def _cards(wished: str, target: str) -> Sequence[Device]:
    """Those to be used; none for the emulator. Raises TaskProblem where there must be one and is none."""
    if wished == "emulator":
        return ()
    try:
        return usable(target)
    except NoDevice as missing:
        if wished == "auto":
            return ()
        hint = f"{missing.how}; or say --backend emulator" if missing.how else "say --backend emulator"
        message = f"--backend gpu cannot be had: {missing}"
        raise TaskProblem(Problem(kind="no_gpu", message=message, hint=hint)) from missing

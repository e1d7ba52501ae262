"""A judge whose card is another machine's: `sandbox.client.Judge` for whoever asks, from afar.

Whole evaluations travel. The database says where each is; it is looked at four times a second, by whoever
waits for it, who is therefore also the one to notice that its worker is gone.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from django.db import connection

from sandbox import client
from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.gpu.client import usable
from sandbox.gpu.devices import NoDevice
from sandbox.progress import Progress, StageAt
from sandbox.tasks.base import Inputs, Task
from sandbox.types import Backend, Compilation, Evaluation
from webapp.cards import artifacts, queue, selectors, services
from webapp.cards.models import GpuEvaluation
from webapp.cards.wire import BadDocument, Work, outcome_of, understood, unpacked

TICK_SECONDS = 0.25
#: A bell may be lost with a broker, or rung while every worker was away.
RING_SECONDS = 5.0
#: How long it waits while no card lives that could do it.
ALONE_SECONDS = 60.0

State = GpuEvaluation.State


@dataclass(frozen=True)
class Asked:
    """What was given, from which the other machine makes the same task."""

    source: str
    filename: str
    entry: str | None
    inputs: Inputs | None
    # Who asks: one of the two.
    run_id: UUID | None = None
    given_id: UUID | None = None


def make_judge(
    asked: Asked, task: Task, backend: str, target: str, cancel: Cancellation
) -> client.Judge | RemoteJudge:
    """On this machine's card, else on another's, else (for "auto") in the emulator. Raises TaskProblem."""
    if backend == "emulator":
        return client.Judge(task, backend=backend, target=target, cancel=cancel)
    try:
        return client.Judge(task, target=target, cancel=cancel, cards=usable(target))
    except NoDevice:
        pass
    if _served(target):
        return RemoteJudge(asked, task, target, cancel)
    try:
        return client.Judge(task, backend=backend, target=target, cancel=cancel)
    except TaskProblem as error:
        if error.problem.kind != "no_gpu":
            raise
        message = f"{error.problem.message}; and no GPU worker of another machine serves {target}: {_away()}"
        raise TaskProblem(error.problem.model_copy(update={"message": message})) from error


def _served(target: str) -> bool:
    try:
        return bool(selectors.cards_for(target))
    finally:
        connection.close()  # the caller's thread may need the database no more


def _away() -> str:
    served = selectors.cards_served()
    if not served:
        return "none is alive (kernelwright gpu-worker starts one)"
    said = (f"{card} ({card.arch}{', out of service' if card.quarantine else ''})" for card in served)
    return ", ".join(said)


class RemoteJudge:
    """Used in one thread."""

    backend: Backend = "gpu"

    def __init__(self, asked: Asked, task: Task, target: str, cancel: Cancellation) -> None:
        self.task = task
        self._asked = asked
        self._target = target
        self._cancel = cancel
        self._store = artifacts.store()
        self._here: client.Judge | None = None

    def compile(self, source: str) -> Generator[Progress, None, tuple[bool, Compilation]]:
        return self._local().compile(source)

    def reference_times(self) -> Generator[Progress, None, dict[str, float]]:
        return self._local().reference_times()

    def close(self) -> None:
        if self._here is not None:
            self._here.close()
        connection.close()  # this thread's own

    def evaluate(self, source: str) -> Generator[Progress, None, Evaluation]:
        """Raises Cancelled, and TaskProblem where the task is at fault."""
        try:
            evaluation = self._ask(source)
        except artifacts.ArtifactProblem as problem:
            return self._failed(f"the candidate cannot be handed to a GPU worker: {problem}")
        try:
            yield from self._follow(evaluation)
            return self._result(evaluation)
        finally:  # whatever ended this: nobody else will look
            services.evaluation_cancel(evaluation=evaluation)
            with suppress(artifacts.ArtifactProblem):  # then the upkeep does it
                services.evaluation_forget(evaluation=evaluation)

    def _ask(self, source: str) -> GpuEvaluation:
        work = Work(
            evaluation=uuid4(),
            source=self._asked.source,
            filename=self._asked.filename,
            entry=self._asked.entry,
            inputs=self._asked.inputs,
            target=self._target,
            candidate=source,
            understood=understood(self.task.spec),
        )
        name = self._store.put(work.model_dump_json().encode())
        return services.evaluation_ask(
            evaluation_id=work.evaluation,
            run_id=self._asked.run_id,
            given_id=self._asked.given_id,
            target=self._target,
            request=name,
        )

    def _follow(self, evaluation: GpuEvaluation) -> Generator[Progress, None, None]:
        """Until it has ended; `evaluation` is as it ended then."""
        watch = _Watch(evaluation)
        while True:
            self._cancel.check()
            yield from watch.look()
            if evaluation.state not in (State.WAITING, State.WORKING):
                return
            time.sleep(TICK_SECONDS)

    def _result(self, evaluation: GpuEvaluation) -> Evaluation:
        if evaluation.state != State.DONE:
            return self._failed(evaluation.message or "the evaluation was ended from outside")
        try:
            outcome = outcome_of(self._store.get(evaluation.result), evaluation.pk)
        except (artifacts.ArtifactProblem, BadDocument) as problem:
            return self._failed(str(problem))
        if outcome.problem is not None:
            raise TaskProblem(outcome.problem)
        return outcome.judged or self._failed(outcome.failure)

    def _failed(self, message: str) -> Evaluation:
        return Evaluation(
            verdict="internal_error",
            fault="kernelwright",
            message=message,
            backend="gpu",
            target=self._target,
        )

    def _local(self) -> client.Judge:
        """For what needs no card."""
        if self._here is None:
            self._here = client.Judge(self.task, backend="emulator", target=self._target, cancel=self._cancel)
        return self._here


class _Watch:
    """One evaluation, looked at again and again: what is new of it, and whether its worker is gone."""

    def __init__(self, evaluation: GpuEvaluation) -> None:
        self._evaluation = evaluation
        self._heard = 0  # key of the last progress
        self._shown: tuple[object, ...] = ()
        self._rung = self._seen_alive = time.monotonic()

    def look(self) -> Generator[Progress, None, None]:
        evaluation = self._evaluation
        evaluation.refresh_from_db()
        if evaluation.state == State.WAITING:
            yield from self._wait()
        elif evaluation.card is not None:
            yield from self._place(StageAt("gpu", str(evaluation.card), device=str(evaluation.card)))
        for record in evaluation.progress.filter(pk__gt=self._heard).order_by("pk"):
            self._heard = record.pk
            said = unpacked(record.said)
            yield replace(said, device=str(evaluation.card or "")) if isinstance(said, StageAt) else said
        if evaluation.state == State.WORKING and not selectors.worker_lives(evaluation):
            host = evaluation.worker.partition("/")[0]
            services.evaluation_take_back(evaluation=evaluation)
            if evaluation.state == State.WAITING:
                yield StageAt("gpu", f"the GPU worker on {host} died; the candidate is tried once more")

    def _wait(self) -> Generator[Progress, None, None]:
        evaluation, now = self._evaluation, time.monotonic()
        place = selectors.positions().get(evaluation.pk)
        if place is not None:
            yield from self._place(
                StageAt("gpu", f"waiting for a GPU: {ordinal(place)}", queue_position=place)
            )
        if now - self._rung < RING_SECONDS:
            return
        self._rung = now
        queue.ring(evaluation.target)
        if selectors.cards_for(evaluation.target):
            self._seen_alive = now
        elif now - self._seen_alive > ALONE_SECONDS:
            said = f"no GPU worker that runs {evaluation.target} is alive and in service any more: {_away()}"
            services.evaluation_fail(evaluation=evaluation, message=said)

    def _place(self, stage: StageAt) -> Generator[Progress, None, None]:
        """Said once."""
        shown = (stage.queue_position, stage.device, self._evaluation.attempts)
        if shown != self._shown:
            self._shown = shown
            yield stage


def ordinal(number: int) -> str:
    suffix = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"

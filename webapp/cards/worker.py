"""A process that serves one card: it has the card's lease, takes what waits for it, and judges it.

Whole evaluations are judged here, as `kernelwright evaluate` would; what needs no card (the compiler, the
emulator, the comparison) overlaps with the card's use where several are taken at once (`jobs`). The card
itself is handed from one to the next by the judge's own lock.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from django.db import close_old_connections

from sandbox.cancellation import Cancellation
from sandbox.client import Judge
from sandbox.errors import Cancelled, JailUnavailable, TaskProblem, ToolchainMissing
from sandbox.gpu.devices import Device, sickness
from sandbox.gpu.lease import heal, quarantine, quarantined
from sandbox.progress import Progress
from sandbox.tasks.load import load_task
from sandbox.types import Evaluation
from webapp.cards import artifacts, services
from webapp.cards.models import Card, GpuEvaluation
from webapp.cards.wire import BadDocument, Outcome, Work, understood, work_of
from webapp.live.worker import stopping

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
#: Judges of tasks that may go on: a task's baselines and its next reference stay with its judge.
IDLE_JUDGES = 2


class Misunderstood(Exception):
    """Both machines read the same task differently: their versions or their compilers differ."""


@dataclass
class Serving:
    """One card, served by this process."""

    device: Device
    card: Card  # with this process as its worker
    stop: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGTERM)
    listen: Callable[[bool], None] = lambda wanted: None  # whether bells are heard
    judges: Judges = field(init=False)

    def __post_init__(self) -> None:
        self.judges = Judges(self.device)
        self._drained = bool(self.card.quarantine)

    # --- The card ---

    def start(self) -> None:
        """Looks at the card once, and from then on in a thread of its own."""
        if self.card.quarantine and not quarantined(self.device.uuid):
            # The machine, or its container, was started again: the mark is gone, its reason may not be.
            self._look_again()
        self.beat()
        threading.Thread(target=self._beats, name="card", daemon=True).start()

    def beat(self) -> None:
        """Keeps the lease, and makes card and row agree on whether it is in service."""
        if not services.card_beat(card=self.card):
            logger.error("%s is another worker's now; this one stops", self.card)
            self.stop()
            return
        self.card.refresh_from_db()
        if self.card.heal_asked_at is not None:
            self._look_again()
        reason = quarantined(self.device.uuid)
        if reason and reason != self.card.quarantine:
            logger.error("%s is out of service: %s", self.card, reason)
            services.card_quarantine(card=self.card, reason=reason)
        elif not reason and self.card.quarantine:
            logger.warning("%s is in service again", self.card)
            services.card_healed(card=self.card)
        if bool(reason) != self._drained:
            self._drained = bool(reason)
            self.listen(not reason)

    def _look_again(self) -> None:
        """As `kernelwright doctor --heal` does."""
        if still := sickness(self.device.uuid):
            quarantine(self.device.uuid, still)
            services.card_quarantine(card=self.card, reason=still)
        else:
            heal(self.device.uuid)

    def _beats(self) -> None:
        while not stopping.wait(services.BEAT_SECONDS):
            try:
                self.beat()
            except Exception:
                logger.exception("the card's lease could not be kept; it is tried again")
            close_old_connections()

    # --- What waits for it ---

    def take_one(self) -> None:
        """The evaluation that has waited longest, to its end. Does not raise for what it does."""
        if stopping.is_set() or quarantined(self.device.uuid):
            return
        evaluation = services.evaluation_take(card=self.card)
        if evaluation is None:
            return
        cancel = Cancellation()
        with _Pulse(evaluation, cancel):
            try:
                outcome = self._outcome(evaluation, cancel)
            except Cancelled:
                if stopping.is_set():
                    services.evaluation_put_back(evaluation=evaluation)
                return
        seconds = outcome.judged.card_seconds if outcome.judged else 0.0
        try:
            name = artifacts.store().put(outcome.model_dump_json().encode())
        except artifacts.ArtifactProblem as problem:
            services.evaluation_fail(evaluation=evaluation, message=f"the verdict was lost: {problem}")
            return
        services.evaluation_finish(evaluation=evaluation, result=name, seconds=seconds)

    def _outcome(self, evaluation: GpuEvaluation, cancel: Cancellation) -> Outcome:
        """Raises Cancelled."""

        def say(progress: Progress) -> None:
            services.evaluation_say(evaluation=evaluation, progress=progress)

        try:
            work = work_of(artifacts.store().get(evaluation.request), evaluation.pk)
            return Outcome(evaluation=evaluation.pk, judged=self.judges.evaluate(work, cancel, say))
        except Cancelled:
            raise
        except TaskProblem as error:
            return Outcome(evaluation=evaluation.pk, problem=error.problem)
        except (
            artifacts.ArtifactProblem,
            BadDocument,
            JailUnavailable,
            Misunderstood,
            ToolchainMissing,
        ) as error:
            return Outcome(evaluation=evaluation.pk, failure=f"the GPU worker on {self.card.host}: {error}")
        except Exception as error:
            logger.exception("evaluation %s failed", evaluation.pk)
            return Outcome(evaluation=evaluation.pk, failure=f"the GPU worker failed: {type(error).__name__}")


class _Leash:
    """Whose cancellation a judge listens to just now."""

    holder: Cancellation | None = None

    @property
    def is_set(self) -> bool:
        return self.holder is not None and self.holder.is_set


@dataclass
class Judges:
    """One judge for a task and whoever uses it; those that nobody uses wait for the next candidate."""

    device: Device
    _idle: dict[str, tuple[Judge, _Leash]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def evaluate(self, work: Work, cancel: Cancellation, say: Callable[[Progress], None]) -> Evaluation:
        """Raises what `load_task` and `Judge.evaluate` raise, and Misunderstood."""
        with self._lock:
            known = self._idle.pop(work.key, None)
        judge, leash = known or self._made(work, cancel)
        leash.holder = cancel
        good = False
        try:
            progress = judge.evaluate(work.candidate)
            while True:
                try:
                    say(next(progress))
                except StopIteration as stop:
                    evaluation: Evaluation = stop.value
                    good = True
                    return evaluation
        finally:
            leash.holder = None
            self._keep(work.key, judge, leash) if good else judge.close()

    def _made(self, work: Work, cancel: Cancellation) -> tuple[Judge, _Leash]:
        task = load_task(
            work.source, filename=work.filename, entry=work.entry, inputs=work.inputs, cancel=cancel
        )
        if understood(task.spec) != work.understood:
            raise Misunderstood(
                "it reads the task otherwise than the machine that asked; compare the versions"
            )
        leash = _Leash()
        held = Cancellation(lambda: leash.is_set, interval=0.0)
        return Judge(task, target=work.target, cancel=held, cards=[self.device]), leash

    def _keep(self, key: str, judge: Judge, leash: _Leash) -> None:
        with self._lock:
            over = [self._idle.pop(key)[0]] if key in self._idle else []
            self._idle[key] = judge, leash
            while len(self._idle) > IDLE_JUDGES:
                over.append(self._idle.pop(next(iter(self._idle)))[0])
        for each in over:
            each.close()


class _Pulse:
    """Looks, while an evaluation is worked on, whether it still should be."""

    def __init__(self, evaluation: GpuEvaluation, cancel: Cancellation) -> None:
        self._evaluation, self._cancel = evaluation, cancel
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="pulse", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                wanted = services.evaluation_is_mine(evaluation=self._evaluation)
            except Exception:
                logger.exception("it could not be seen whether evaluation %s goes on", self._evaluation.pk)
                continue
            if stopping.is_set() or not wanted:
                self._cancel.set()
                break
        close_old_connections()


#: What this process serves; set before it hears of work.
serving: Serving | None = None


def listener(consumer: Any, queues: list[str]) -> Callable[[bool], None]:
    """Lets Celery's consumer stop hearing these queues, and hear them again."""

    def listen(wanted: bool) -> None:
        for name in queues:
            consumer.call_soon(consumer.add_task_queue if wanted else consumer.cancel_task_queue, name)

    return listen

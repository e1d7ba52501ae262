"""Work that a worker does for somebody: who has claimed it, whether they still live, and that it is to stop.

The row is the truth (docs/adr/0010): claimed by one UPDATE, cancelled by a state that is looked at four times
a second, given up when its worker is gone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, TypeVar
from uuid import UUID

from django.db import models, transaction
from django.db.models import QuerySet
from django.utils import timezone

from sandbox.cancellation import Cancellation
from webapp.live.feed import Item, feed
from webapp.live.resources import ENDED_STATES
from webapp.live.worker import HEARTBEAT_SECONDS, busy, stopping, worker_is_alive, worker_name

logger = logging.getLogger(__name__)

#: How often a job's row is looked at for a cancellation.
TICK_SECONDS = 0.25
#: How long a job may take to end after its process was told to stop.
STOP_SECONDS = 4.0


class Job(models.Model):
    """Where a piece of work stands and who does it."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        CANCELLING = "cancelling"
        FINISHED = "finished"
        CANCELLED = "cancelled"
        FAILED = "failed"
        INTERRUPTED = "interrupted"

    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField(auto_now=True)

    # Who works on it.
    worker = models.CharField(max_length=200, blank=True)
    heartbeat_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED_STATES


AnyJob = TypeVar("AnyJob", bound=Job)


def claim(model: type[AnyJob], job_id: UUID) -> AnyJob | None:
    """The job, now this process's to work on; None when it is not waiting (cancelled, claimed before)."""
    now = timezone.now()
    objects: Any = model._default_manager
    claimed = objects.filter(pk=job_id, state=Job.State.QUEUED).update(
        state=Job.State.RUNNING, started_at=now, heartbeat_at=now, changed_at=now, worker=worker_name()
    )
    found: AnyJob | None = objects.filter(pk=job_id).first() if claimed else None
    return found


def lost(jobs: QuerySet[AnyJob]) -> list[AnyJob]:
    """Those among `jobs` whose worker is gone."""
    unfinished = jobs.filter(state__in=[Job.State.RUNNING, Job.State.CANCELLING])
    return [job for job in unfinished if not worker_is_alive(job.worker, job.heartbeat_at)]


def requeue(jobs: QuerySet[AnyJob], enqueue: Callable[[AnyJob], None]) -> int:
    """Sends every waiting one to the task queue again: a queue in memory dies with its process.

    What is in the queue already is claimed only once. Returns how many.
    """
    waiting = list(jobs.filter(state=Job.State.QUEUED).order_by("created_at", "id"))
    for job in waiting:
        enqueue(job)
    return len(waiting)


def tell(listeners: Sequence[Callable[[UUID], None]], job_id: UUID) -> None:
    """Tells each that a job has ended, in the transaction that ends it. What a listener raises undoes only
    what it did: the end of a job depends on nobody. Listeners look from time to time for what they missed."""
    for listener in tuple(listeners):
        try:
            with transaction.atomic():
                listener(job_id)
        except Exception:
            logger.exception("%s failed for job %s", listener.__name__, job_id)


@contextmanager
def working(source: Callable[[], Iterator[Item]], cancel: Cancellation) -> Iterator[Iterator[list[Item]]]:
    """What `source()` says of a job, in batches, an empty one where TICK_SECONDS bring nothing."""
    with busy, closing(feed(source, tick=TICK_SECONDS)) as batches:
        try:
            yield batches
        finally:  # before the feed is closed: it waits for the source to clean up
            cancel.set()


def own_fault(error: Exception) -> str:
    """What people are told of an error that is ours."""
    return f"Kernelwright's own fault: {type(error).__name__}. The server's log has the details."


class Watch:
    """Looks, not too often, whether a job is to stop; says meanwhile that somebody works on it."""

    def __init__(self, job: Job, cancel: Cancellation) -> None:
        self.job = job
        self.cancel = cancel
        self.stopped_at: float | None = None
        self._looked_at = self._beaten_at = time.monotonic()

    def look(self) -> None:
        now = time.monotonic()
        if stopping.is_set() and self.stopped_at is None:
            self.stopped_at = now
            self.cancel.set()
        if now - self._beaten_at >= HEARTBEAT_SECONDS:
            self._beaten_at = now
            self._row.update(heartbeat_at=timezone.now())
        if now - self._looked_at >= TICK_SECONDS:
            self._looked_at = now
            if self._row.filter(state=Job.State.CANCELLING).exists():
                self.cancel.set()

    @property
    def patience_is_over(self) -> bool:
        """The process is to stop, and the job has not come to its end in time."""
        return self.stopped_at is not None and time.monotonic() - self.stopped_at > STOP_SECONDS

    @property
    def _row(self) -> QuerySet[Any]:
        objects: Any = type(self.job)._default_manager
        rows: QuerySet[Any] = objects.filter(pk=self.job.pk)
        return rows

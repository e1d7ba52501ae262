"""Sends work to the task queue, by name: whoever sends needs to know nothing of the engine."""

from __future__ import annotations

from uuid import UUID

from celery import current_app
from kombu.exceptions import OperationalError

_RETRY = {"max_retries": 2, "interval_start": 0.2, "interval_step": 0.5, "interval_max": 1.0}


class QueueUnavailable(Exception):
    """The broker does not answer."""


def send(task: str, job_id: UUID) -> None:
    """Raises QueueUnavailable within a few seconds."""
    try:
        current_app.send_task(task, args=[str(job_id)], retry=True, retry_policy=_RETRY)
    except OperationalError as error:
        raise QueueUnavailable(str(error)) from error

"""Sends runs to the task queue, by name."""

from __future__ import annotations

from uuid import UUID

from webapp.common.queue import QueueUnavailable as QueueUnavailable
from webapp.common.queue import send

TRANSLATE = "runs.translate"


def run_enqueue(run_id: UUID) -> None:
    """Raises QueueUnavailable within a few seconds."""
    send(TRANSLATE, run_id)

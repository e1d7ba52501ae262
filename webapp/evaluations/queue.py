"""Sends judgements to the task queue, by name."""

from __future__ import annotations

from uuid import UUID

from webapp.common.queue import send

JUDGE = "evaluations.judge"


def evaluation_enqueue(evaluation_id: UUID) -> None:
    """Raises QueueUnavailable within a few seconds."""
    send(JUDGE, evaluation_id)

"""What a worker does: fetch, call one service."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from celery import shared_task
from django.db import close_old_connections

from sandbox.cancellation import Cancellation
from sandbox.progress import StageAt
from sandbox.tasks.base import Inputs
from sandbox.tasks.load import load_task
from webapp.cards.judge import Asked, make_judge
from webapp.evaluations import queue, services
from webapp.evaluations.models import EvaluationRecord
from webapp.live import upkeep


@shared_task(name=queue.JUDGE)
def evaluation_judge(evaluation_id: str) -> None:
    try:
        services.evaluation_execute(evaluation_id=UUID(evaluation_id), judge=judge_candidate)
    finally:
        close_old_connections()


def judge_candidate(record: EvaluationRecord, cancel: Cancellation) -> Iterator[services.Said]:
    """The task, the judge's stages, last the evaluation. Raises TaskProblem, JailUnavailable, Cancelled."""
    yield StageAt("understand", record.filename)
    inputs = None if record.inputs is None else Inputs.model_validate(record.inputs)
    task = load_task(
        record.source, filename=record.filename, entry=record.entry, inputs=inputs, cancel=cancel
    )
    yield task.spec
    asked = Asked(record.source, record.filename, record.entry, inputs, given_id=record.pk)
    judge = make_judge(asked, task, record.backend, record.target, cancel)
    try:
        progress = judge.evaluate(record.candidate)
        while True:
            try:
                said = next(progress)
            except StopIteration as stop:
                yield stop.value
                return
            if isinstance(said, StageAt):
                yield said
    finally:
        judge.close()


upkeep.keep(requeue=services.evaluations_requeue, reconcile=services.evaluations_reconcile)

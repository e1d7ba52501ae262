"""Writes of evaluations: asked for, stopped, worked on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, JailUnavailable, TaskProblem, ToolchainMissing
from sandbox.progress import StageAt
from sandbox.tasks.base import TaskSpec
from sandbox.types import Evaluation, Problem
from trainer import reward
from webapp.accounts.models import User
from webapp.common import idempotency, jobs
from webapp.common.errors import ProblemError
from webapp.common.jobs import Job
from webapp.common.plain import plain
from webapp.common.queue import QueueUnavailable
from webapp.evaluations import queue, selectors
from webapp.evaluations.models import EvaluationBatch, EvaluationRecord
from webapp.live.resources import EvaluationBatchCreate, EvaluationCreate, EvaluationItem
from webapp.live.worker import stopping
from webapp.workspaces import audit
from webapp.workspaces.access import require
from webapp.workspaces.models import QuotaKind, Workspace
from webapp.workspaces.quotas import quota_check, usage_add
from webapp.workspaces.selectors import workspace_visible_to

logger = logging.getLogger(__name__)

Said = TaskSpec | StageAt | Evaluation
#: Judges a record's candidate: the task once it is understood, stages as they come, last the evaluation.
#: Looks at the cancellation often.
Judge = Callable[[EvaluationRecord, Cancellation], Iterator[Said]]

#: Told the key of each evaluation that has ended.
ended: list[Callable[[UUID], None]] = []

State = Job.State
INTERRUPTED = "The server stopped during this judgement. Ask for it again."
QUEUE_AWAY = "The task queue cannot be reached, so nothing was judged."

# --- Asked for ----------------------------------------------------------------------------------------------


def evaluation_create(
    *, user: User, request: EvaluationCreate, idempotency_key: str = ""
) -> tuple[EvaluationRecord, bool]:
    """The evaluation, and whether it is new: the same key with the same request gives the same one again.

    `request` has its defaults filled in. Raises ProblemError for a key that was used with another request,
    Http404 for a workspace that the user cannot see.
    """
    workspace = workspace_visible_to(user, request.workspace)
    require(user, "evaluation.create", workspace)

    def create() -> EvaluationRecord:
        return evaluations_insert(user=user, workspace=workspace, items=[request])[0]

    return idempotency.created_once(
        user=user,
        key=idempotency_key,
        what="evaluations",
        body=request.model_copy(update={"workspace": workspace.slug}),
        create=create,
        find=lambda found: selectors.evaluations_visible_to(user).filter(pk=found).first(),
    )


def evaluation_batch_create(
    *, user: User, request: EvaluationBatchCreate, idempotency_key: str = ""
) -> tuple[EvaluationBatch, bool]:
    """All of a batch or none of it; else as above."""
    workspace = workspace_visible_to(user, request.workspace)
    require(user, "evaluation.create", workspace)

    def create() -> EvaluationBatch:
        with transaction.atomic():
            batch = EvaluationBatch.objects.create(owner=user, workspace=workspace)
            evaluations_insert(user=user, workspace=workspace, items=request.items, batch=batch)
        return batch

    return idempotency.created_once(
        user=user,
        key=idempotency_key,
        what="evaluation batches",
        body=request.model_copy(update={"workspace": workspace.slug}),
        create=create,
        find=lambda found: selectors.batches_visible_to(user).filter(pk=found).first(),
    )


def evaluations_insert(
    *, user: User, workspace: Workspace, items: Sequence[EvaluationItem], batch: EvaluationBatch | None = None
) -> list[EvaluationRecord]:
    """For callers that have asked whether the user may. Raises ProblemError beyond limits and quotas."""
    if selectors.open_evaluations_count(user) + len(items) > settings.EVALUATIONS_OPEN_MAX:
        limit = settings.EVALUATIONS_OPEN_MAX
        detail = f"At most {limit} unfinished evaluations are taken. Wait for some to end, or stop them."
        raise ProblemError(429, "too-many-evaluations", detail, headers={"Retry-After": "10"})
    records = [
        EvaluationRecord(
            owner=user,
            workspace=workspace,
            batch=batch,
            place=place,
            filename=item.filename or "",
            language=item.language or "",
            source=item.source,
            entry=item.entry,
            inputs=None if item.inputs is None else item.inputs.model_dump(mode="json"),
            candidate=item.candidate,
            backend=item.backend,
            target=item.target or "",
        )
        for place, item in enumerate(items)
    ]
    gpu = any(item.backend != "emulator" for item in items)
    with transaction.atomic():
        quota_check(user=user, workspace=workspace, kinds=[QuotaKind.GPU_SECONDS] if gpu else [])
        EvaluationRecord.objects.bulk_create(records)
        audit.record(
            "evaluation.create",
            actor=user,
            workspace=workspace,
            thing=batch or records[0],
            detail={"candidates": len(records)},
        )
        for record in records:
            transaction.on_commit(partial(_enqueue, record))
    return records


def _enqueue(record: EvaluationRecord) -> None:
    try:
        queue.evaluation_enqueue(record.pk)
    except QueueUnavailable as error:
        logger.error("evaluation %s could not be queued: %s", record.pk, error)
        problem = Problem(kind="queue_unavailable", message=QUEUE_AWAY, hint="ask for it again")
        evaluation_end(record=record, state=State.FAILED, message=QUEUE_AWAY, problem=problem)
        record.refresh_from_db()


# --- Stopped, deleted ---------------------------------------------------------------------------------------


def evaluation_cancel(*, user: User, record: EvaluationRecord) -> EvaluationRecord:
    """Ends a queued one at once, asks a running one to stop, leaves an ended one alone. Raises Denied."""
    require(user, "evaluation.cancel", record)
    if _cancelled(record):
        audit.record("evaluation.cancel", actor=user, workspace=record.workspace_id, thing=record)
    record.refresh_from_db()
    return record


def _cancelled(record: EvaluationRecord) -> bool:
    """Whether there was something to stop."""
    with transaction.atomic():
        locked = EvaluationRecord.objects.select_for_update().defer(*selectors.LARGE).get(pk=record.pk)
        if locked.state == State.QUEUED:
            evaluation_end(record=locked, state=State.CANCELLED, message="Cancelled before it started.")
        elif locked.state == State.RUNNING:
            locked.state = State.CANCELLING
            locked.save(update_fields=["state", "changed_at"])
        else:
            return False
    return True


def evaluation_batch_cancel(*, user: User, batch: EvaluationBatch) -> None:
    """Stops all of a batch that has not ended. Raises Denied."""
    require(user, "evaluation.cancel", batch)
    for record in EvaluationRecord.objects.filter(batch=batch, ended_at=None).defer(*selectors.LARGE):
        _cancelled(record)
    audit.record("evaluation.cancel", actor=user, workspace=batch.workspace_id, thing=batch)


def evaluation_delete(*, user: User, record: EvaluationRecord) -> None:
    """Raises Denied, and ProblemError while it has not ended."""
    require(user, "evaluation.delete", record)
    with transaction.atomic():
        locked = EvaluationRecord.objects.select_for_update().defer(*selectors.LARGE).get(pk=record.pk)
        if not locked.has_ended:
            detail = "Only an ended evaluation can be deleted. Stop it first."
            raise ProblemError(409, "evaluation-not-ended", detail)
        audit.record("evaluation.delete", actor=user, workspace=locked.workspace_id, thing=locked)
        locked.delete()


def evaluation_end(
    *,
    record: EvaluationRecord,
    state: Job.State,
    message: str,
    problem: Problem | None = None,
    evaluation: Evaluation | None = None,
) -> bool:
    """Ends one that has not ended; whether it did. Safe from several processes."""
    now = timezone.now()
    changes = {
        "state": state,
        "message": plain(message),
        "problem": None if problem is None else plain(problem.model_dump(mode="json")),
        "stage": "",
        "ended_at": now,
        "changed_at": now,
    }
    if evaluation is not None:
        changes |= {
            "evaluation": plain(evaluation.model_dump(mode="json")),
            "verdict": evaluation.verdict,
            "score": evaluation.score,
        }
    with transaction.atomic():
        if not EvaluationRecord.objects.filter(pk=record.pk, ended_at=None).update(**changes):
            return False
        if evaluation is not None and evaluation.card_seconds:
            usage_add(
                workspace_id=record.workspace_id,
                user_id=record.owner_id,
                kind=QuotaKind.GPU_SECONDS,
                amount=evaluation.card_seconds,
            )
        jobs.tell(ended, record.pk)
    return True


# --- Worked on ----------------------------------------------------------------------------------------------


def evaluation_execute(*, evaluation_id: UUID, judge: Judge) -> None:
    """Judges until there is an end, one way or another. Never raises for what the candidate does."""
    if stopping.is_set():
        return  # it stays queued, and is sent again when a worker starts
    record = jobs.claim(EvaluationRecord, evaluation_id)
    if record is None:
        return
    cancel = Cancellation()
    watch = jobs.Watch(record, cancel)
    try:
        with jobs.working(lambda: judge(record, cancel), cancel) as batches:
            _follow(record, watch, batches)
    except TaskProblem as error:
        evaluation_end(
            record=record, state=State.FAILED, message=error.problem.message, problem=error.problem
        )
    except (JailUnavailable, ToolchainMissing) as error:
        problem = Problem(kind="judge_unavailable", message=str(error))
        evaluation_end(record=record, state=State.FAILED, message=str(error), problem=problem)
    except Cancelled:
        if watch.stopped_at is not None:
            evaluation_interrupt(record=record)
        else:
            evaluation_end(record=record, state=State.CANCELLED, message="Cancelled.")
    except Exception as error:
        logger.exception("evaluation %s failed", record.pk)
        message = jobs.own_fault(error)
        problem = Problem(kind="internal_error", message=message)
        evaluation_end(record=record, state=State.FAILED, message=message, problem=problem)


def _follow(record: EvaluationRecord, watch: jobs.Watch, batches: Iterator[list[Said]]) -> None:
    for batch in batches:
        watch.look()
        if watch.patience_is_over:
            evaluation_interrupt(record=record)
            return
        for item in batch:
            if isinstance(item, TaskSpec):
                evaluation_named(record=record, task_name=item.name)
            if isinstance(item, Evaluation):
                evaluation = reward.attach(item)
                evaluation_end(
                    record=record, state=State.FINISHED, message=evaluation.message, evaluation=evaluation
                )
                return
        if batch and isinstance(last := batch[-1], StageAt):
            stage = plain(f"{last.stage} {last.detail}".strip())[:200]
            unfinished = EvaluationRecord.objects.filter(pk=record.pk, ended_at=None)
            unfinished.update(stage=stage, changed_at=timezone.now())
    raise RuntimeError("the judge stopped without an evaluation")


def evaluation_named(*, record: EvaluationRecord, task_name: str) -> None:
    """The task is understood: this is what it is called."""
    EvaluationRecord.objects.filter(pk=record.pk).update(task_name=plain(task_name)[:200])


def evaluation_interrupt(*, record: EvaluationRecord) -> None:
    problem = Problem(kind="interrupted", message=INTERRUPTED)
    evaluation_end(record=record, state=State.INTERRUPTED, message=INTERRUPTED, problem=problem)


def evaluations_reconcile() -> int:
    """Marks those as interrupted whose worker is gone. Returns how many."""
    lost = jobs.lost(EvaluationRecord.objects.defer(*selectors.LARGE))
    for record in lost:
        evaluation_interrupt(record=record)
    return len(lost)


def evaluations_requeue() -> int:
    """Sends every waiting one to the task queue again. Returns how many."""
    return jobs.requeue(EvaluationRecord.objects.defer(*selectors.LARGE), _enqueue)

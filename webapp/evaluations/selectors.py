"""Reads of evaluations. Whatever a user may see comes through `evaluations_visible_to`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber
from django.http import Http404

from webapp.accounts.models import User
from webapp.common.jobs import Job
from webapp.evaluations.models import EvaluationBatch, EvaluationRecord
from webapp.workspaces.models import Workspace
from webapp.workspaces.selectors import workspaces_visible_to

#: What was asked with and what came out: nothing that a list needs.
LARGE = ("source", "candidate", "inputs", "evaluation")


def evaluations_visible_to(user: User | AnonymousUser) -> QuerySet[EvaluationRecord]:
    """The one place that decides: an evaluation is seen by the members of its workspace, and nobody else."""
    visible = EvaluationRecord.objects.filter(workspace__in=workspaces_visible_to(user))
    return visible.select_related("workspace")


def batches_visible_to(user: User | AnonymousUser) -> QuerySet[EvaluationBatch]:
    """The same, of batches."""
    visible = EvaluationBatch.objects.filter(workspace__in=workspaces_visible_to(user))
    return visible.select_related("workspace")


def evaluations_listed(user: User | AnonymousUser, workspace: Workspace) -> QuerySet[EvaluationRecord]:
    """Those of one workspace, without what a list does not show."""
    return evaluations_visible_to(user).filter(workspace=workspace).defer(*LARGE)


def evaluation_visible_to(user: User | AnonymousUser, evaluation_id: UUID) -> EvaluationRecord:
    """Raises Http404, the same for another's as for none at all."""
    try:
        return evaluations_visible_to(user).get(pk=evaluation_id)
    except EvaluationRecord.DoesNotExist:
        raise Http404 from None


def batch_visible_to(user: User | AnonymousUser, batch_id: UUID) -> EvaluationBatch:
    """Raises Http404, as above."""
    try:
        return batches_visible_to(user).get(pk=batch_id)
    except EvaluationBatch.DoesNotExist:
        raise Http404 from None


def evaluations_of(batch: EvaluationBatch) -> list[EvaluationRecord]:
    """In the order in which they were given."""
    records = EvaluationRecord.objects.filter(batch=batch).select_related("workspace")
    return list(records.defer(*LARGE).order_by("place"))


def queue_positions(records: Sequence[EvaluationRecord]) -> dict[UUID, int]:
    """Place among the queued evaluations of all users; 1 is next."""
    if not any(record.state == Job.State.QUEUED for record in records):
        return {}
    place: Any = Window(RowNumber(), order_by=[F("created_at").asc(), F("id").asc()])
    queued = EvaluationRecord.objects.filter(state=Job.State.QUEUED).annotate(queue_place=place)
    return dict(queued.values_list("pk", "queue_place"))


def open_evaluations_count(user: User) -> int:
    return EvaluationRecord.objects.filter(owner=user, ended_at=None).count()

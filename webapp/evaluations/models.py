"""What was given to be judged, and what the judge said."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from webapp.common.jobs import Job


class EvaluationBatch(models.Model):
    """Up to a hundred candidates that were given in one request."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="evaluation_batches"
    )
    workspace = models.ForeignKey(
        "workspaces.Workspace", on_delete=models.CASCADE, related_name="evaluation_batches"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"batch {self.id}"


class EvaluationRecord(Job):
    """One candidate for one task. What was asked never changes."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="evaluations")
    workspace = models.ForeignKey(
        "workspaces.Workspace", on_delete=models.CASCADE, related_name="evaluations"
    )
    batch = models.ForeignKey(
        EvaluationBatch, on_delete=models.CASCADE, null=True, blank=True, related_name="evaluations"
    )
    place = models.PositiveIntegerField(default=0)  # in its batch

    # What was asked.
    filename = models.CharField(max_length=200)
    language = models.CharField(max_length=16)
    source = models.TextField()
    entry = models.CharField(max_length=200, null=True)
    inputs = models.JSONField(null=True)
    candidate = models.TextField()
    backend = models.CharField(max_length=16)
    target = models.CharField(max_length=16)

    # How it goes.
    task_name = models.CharField(max_length=200, blank=True)
    stage = models.CharField(max_length=200, blank=True)

    # How it ended: the evaluation, or why there is none.
    evaluation = models.JSONField(null=True)
    verdict = models.CharField(max_length=32, null=True)
    score = models.FloatField(null=True)  # structural score, 0..100
    message = models.TextField(blank=True)
    problem = models.JSONField(null=True)

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=["workspace", "-created_at", "-id"], name="evaluation_newest"),
            models.Index(fields=["state", "created_at"], name="evaluation_state_oldest"),
            models.Index(fields=["batch", "place"], name="evaluation_of_batch"),
        )

    def __str__(self) -> str:
        return f"{self.title} ({self.state})"

    @property
    def title(self) -> str:
        return self.task_name or self.filename

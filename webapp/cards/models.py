"""Cards, what waits for them, and what they were used for."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import models


class Card(models.Model):
    """A GPU that a worker has served. Its lease is this row: `worker` has it until `leased_until`, by the
    database's clock, and says every few seconds that it lives."""

    uuid = models.CharField(max_length=64, unique=True)  # the driver's: "GPU-..."
    name = models.CharField(max_length=200)
    arch = models.CharField(max_length=16)  # "sm_90"
    host = models.CharField(max_length=200)
    index = models.PositiveIntegerField()  # on its host
    driver = models.CharField(max_length=64, blank=True)
    memory_mib = models.PositiveIntegerField()
    targets: models.JSONField[Any, Any] = models.JSONField(default=list)  # architectures whose code it runs

    worker = models.CharField(max_length=200, blank=True)
    leased_until = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)

    quarantine = models.TextField(blank=True)  # why it is out of service; empty when it is not
    quarantined_at = models.DateTimeField(null=True)
    heal_asked_at = models.DateTimeField(null=True)  # somebody wants it looked at again

    class Meta:
        ordering = ("host", "index")

    def __str__(self) -> str:
        return f"{self.name} on {self.host}"


class GpuEvaluation(models.Model):
    """One candidate that is judged on another machine. Bulk is not in here: `request` and `result` name
    artifacts by their hashes."""

    class State(models.TextChoices):
        WAITING = "waiting"
        WORKING = "working"
        DONE = "done"
        CANCELLED = "cancelled"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Who asked: a run in one of its turns, or a request to judge one candidate.
    run = models.ForeignKey(
        "runs.AgentRun", on_delete=models.CASCADE, null=True, related_name="gpu_evaluations"
    )
    given = models.ForeignKey(
        "evaluations.EvaluationRecord", on_delete=models.CASCADE, null=True, related_name="gpu_evaluations"
    )
    target = models.CharField(max_length=16)
    request = models.CharField(max_length=64)
    result = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    card = models.ForeignKey(Card, on_delete=models.SET_NULL, null=True, related_name="evaluations")
    worker = models.CharField(max_length=200, blank=True)
    message = models.TextField(blank=True)  # why it failed
    asked_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("asked_at", "id")
        indexes = (models.Index(fields=["state", "target", "asked_at"], name="gpu_evaluation_waiting"),)

    def __str__(self) -> str:
        return f"{self.id} ({self.state})"


class GpuProgress(models.Model):
    """What the judge said while it worked, for whoever waits elsewhere."""

    evaluation = models.ForeignKey(GpuEvaluation, on_delete=models.CASCADE, related_name="progress")
    said = models.TextField()  # see `wire.packed`

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.said[:80]


class GpuUse(models.Model):
    """A card, for so long, charged to who asked. One row an evaluation, whatever happens on the way."""

    evaluation = models.UUIDField(unique=True)
    run = models.ForeignKey("runs.AgentRun", on_delete=models.SET_NULL, null=True, related_name="gpu_uses")
    given = models.ForeignKey(
        "evaluations.EvaluationRecord", on_delete=models.SET_NULL, null=True, related_name="gpu_uses"
    )
    card = models.ForeignKey(Card, on_delete=models.PROTECT, related_name="uses")
    seconds = models.FloatField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-at",)

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s of {self.card_id}"

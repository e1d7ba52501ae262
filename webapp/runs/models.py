"""Runs and their events."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from webapp.live.resources import ENDED_STATES


class AgentRun(models.Model):
    """One translation by an agent. What was asked never changes; how it goes is copied here from its events,
    so that a list needs no event."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        CANCELLING = "cancelling"
        FINISHED = "finished"
        CANCELLED = "cancelled"
        FAILED = "failed"
        INTERRUPTED = "interrupted"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="runs")
    workspace = models.ForeignKey("workspaces.Workspace", on_delete=models.CASCADE, related_name="runs")
    rerun_of = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="reruns"
    )

    # What was asked.
    filename = models.CharField(max_length=200)
    language = models.CharField(max_length=16)
    source = models.TextField()
    entry = models.CharField(max_length=200, null=True)
    inputs = models.JSONField(null=True)
    start_from = models.TextField(null=True)
    policy = models.CharField(max_length=64)
    backend = models.CharField(max_length=16)
    target = models.CharField(max_length=16)
    turn_limit = models.PositiveIntegerField()

    # How it goes.
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    task_name = models.CharField(max_length=200, blank=True)
    backend_used = models.CharField(max_length=16, blank=True)
    turn_count = models.PositiveIntegerField(default=0)
    best_turn = models.PositiveIntegerField(null=True)
    verdict = models.CharField(max_length=32, null=True)
    score = models.FloatField(null=True)  # structural score of the best turn, 0..100
    last_seq = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField(auto_now=True)

    # Why it ended.
    reason = models.CharField(max_length=32, null=True)
    message = models.TextField(blank=True)
    problem = models.JSONField(null=True)

    # Who works on it.
    worker = models.CharField(max_length=200, blank=True)
    heartbeat_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=["workspace", "-created_at", "-id"], name="run_workspace_newest"),
            models.Index(fields=["workspace", "changed_at"], name="run_workspace_changed"),
            models.Index(fields=["state", "created_at"], name="run_state_oldest"),
        )

    def __str__(self) -> str:
        return f"{self.title} ({self.state})"

    @property
    def title(self) -> str:
        return self.task_name or self.filename

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED_STATES


class RunEvent(models.Model):
    """One event of a run, as it was; numbered from 1 without gaps. Never changed."""

    run = models.ForeignKey(AgentRun, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    at = models.DateTimeField()
    type = models.CharField(max_length=32)
    payload = models.JSONField()

    class Meta:
        ordering = ("run", "seq")
        constraints = (models.UniqueConstraint(fields=["run", "seq"], name="run_event_seq_unique"),)
        indexes = (models.Index(fields=["run", "type"], name="run_event_type"),)

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"


class IdempotencyKey(models.Model):
    """A key that a client chose for one `POST runs`, and the run that came of it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    run = models.ForeignKey(AgentRun, on_delete=models.CASCADE)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_unique"),)

    def __str__(self) -> str:
        return self.key

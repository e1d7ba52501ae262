"""Runs and their events."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from webapp.common.jobs import Job


class AgentRun(Job):
    """One translation by an agent. What was asked never changes; how it goes is copied here from its events,
    so that a list needs no event."""

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
    # Of a language model: its name, how it is driven, and what else bounds the run.
    model = models.CharField(max_length=300, blank=True)
    protocol = models.CharField(max_length=16, blank=True)
    seconds_limit = models.FloatField(null=True)
    token_limit = models.PositiveIntegerField(null=True)
    cost_limit = models.FloatField(null=True)
    instruction = models.TextField(blank=True)  # of a person, beside a good score
    profile = models.ForeignKey(
        "profiles.ProfileVersion", on_delete=models.SET_NULL, null=True, blank=True, related_name="runs"
    )
    # The run that this one goes on from; its judged turns are told again.
    resumes = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="resumed_by"
    )

    # How it goes.
    task_name = models.CharField(max_length=200, blank=True)
    backend_used = models.CharField(max_length=16, blank=True)
    turn_count = models.PositiveIntegerField(default=0)
    best_turn = models.PositiveIntegerField(null=True)
    verdict = models.CharField(max_length=32, null=True)
    score = models.FloatField(null=True)  # structural score of the best turn, 0..100
    last_seq = models.PositiveIntegerField(default=0)

    # Why it ended.
    reason = models.CharField(max_length=32, null=True)
    message = models.TextField(blank=True)
    problem = models.JSONField(null=True)

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


class ModelUse(models.Model):
    """What one run took of a language model, failed attempts included. Written while the run goes on, and
    kept when the run is deleted: what was spent stays spent."""

    run = models.OneToOneField(AgentRun, on_delete=models.SET_NULL, null=True, related_name="model_use")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="model_uses")
    workspace = models.ForeignKey(
        "workspaces.Workspace", on_delete=models.SET_NULL, null=True, related_name="model_uses"
    )
    model = models.CharField(max_length=300)
    requests = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    estimated = models.BooleanField(default=False)  # some of it, since the endpoint did not count
    cost = models.FloatField(null=True)  # None where no price is known
    first_token_seconds = models.FloatField(null=True)  # of the first answer
    started_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-started_at", "-id")
        indexes = (
            models.Index(fields=["user", "-started_at"], name="model_use_user_newest"),
            models.Index(fields=["workspace", "-started_at"], name="model_use_workspace_newest"),
        )

    def __str__(self) -> str:
        return f"{self.model}: {self.prompt_tokens} + {self.completion_tokens} tokens"


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

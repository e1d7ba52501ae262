"""Revisions, the requests to review them, and what is said of them.

A chain is one candidate's history for one task. Its revisions never change; a review request names one of
them, its head, and moves on to a new one when the code is changed.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q

USER = settings.AUTH_USER_MODEL


class Chain(models.Model):
    """The task that revisions are candidates for, as it was when the first of them was made."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey("workspaces.Workspace", on_delete=models.CASCADE, related_name="chains")
    #: Who asked for the run: as much an author of what the agent wrote as anybody is.
    owner = models.ForeignKey(USER, on_delete=models.SET_NULL, null=True, related_name="+")
    filename = models.CharField(max_length=200)
    language = models.CharField(max_length=16)
    source = models.TextField()  # the reference
    entry = models.CharField(max_length=200, null=True)
    inputs = models.JSONField(null=True)
    backend = models.CharField(max_length=16)
    target = models.CharField(max_length=16)
    policy = models.CharField(max_length=64)
    model = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.filename


class Revision(models.Model):
    """One state of a candidate. Only the judge's word is added to it, once."""

    class Origin(models.TextChoices):
        TURN = "turn"
        EDIT = "edit"
        SUGGESTION = "suggestion"
        UPLOAD = "upload"

    class State(models.TextChoices):
        PENDING = "pending"
        JUDGING = "judging"
        JUDGED = "judged"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey("workspaces.Workspace", on_delete=models.CASCADE, related_name="revisions")
    chain = models.ForeignKey(Chain, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    origin = models.CharField(max_length=16, choices=Origin.choices)
    run = models.ForeignKey("runs.AgentRun", on_delete=models.SET_NULL, null=True, related_name="revisions")
    turn = models.PositiveIntegerField(null=True)
    parent = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="children")
    author = models.ForeignKey(USER, on_delete=models.SET_NULL, null=True, related_name="revisions")
    credited: models.ManyToManyField[Any, Any] = models.ManyToManyField(
        USER, related_name="credited_revisions"
    )
    source = models.TextField()
    source_sha256 = models.CharField(max_length=64)
    #: Of the source without comments and white space: two revisions with the same are the same to a reviewer.
    material_sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    # What the judge said; `judgement` is the work itself, which may be deleted.
    judgement = models.ForeignKey(
        "evaluations.EvaluationRecord", on_delete=models.SET_NULL, null=True, related_name="revisions"
    )
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    evaluation = models.JSONField(null=True)
    verdict = models.CharField(max_length=32, null=True)
    score = models.FloatField(null=True)
    speedup = models.FloatField(null=True)
    message = models.TextField(blank=True)

    class Meta:
        ordering = ("chain", "number")
        constraints = (
            models.UniqueConstraint(fields=["chain", "number"], name="revision_number_unique"),
            models.UniqueConstraint(
                fields=["run", "turn"], condition=Q(run__isnull=False), name="revision_turn_unique"
            ),
        )

    def __str__(self) -> str:
        return f"{self.chain} r{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("a revision never changes; the judge's word is added by revision_judged")
        super().save(*args, **kwargs)


class ReviewRequest(models.Model):
    """The wish that people look at a candidate and let it into the library."""

    class State(models.TextChoices):
        OPEN = "open"
        APPROVED = "approved"
        CHANGES_REQUESTED = "changes_requested"
        CLOSED = "closed"
        MERGED = "merged"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(
        "workspaces.Workspace", on_delete=models.CASCADE, related_name="review_requests"
    )
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    tags = models.JSONField(default=list)
    author = models.ForeignKey(USER, on_delete=models.SET_NULL, null=True, related_name="review_requests")
    head = models.ForeignKey(Revision, on_delete=models.RESTRICT, related_name="+")
    base = models.ForeignKey(Revision, on_delete=models.RESTRICT, null=True, related_name="+")
    state = models.CharField(max_length=24, choices=State.choices, default=State.OPEN)
    #: Counts the changes that anybody can see, for ETag, If-Match and the websocket's hints.
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    # The approval rule.
    approvals = models.PositiveIntegerField(default=1)
    no_unresolved = models.BooleanField(default=True)
    verdict_passed = models.BooleanField(default=True)
    score_at_least = models.FloatField(null=True)
    speedup_at_least = models.FloatField(null=True)

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = (
            models.UniqueConstraint(fields=["workspace", "number"], name="review_request_number_unique"),
        )
        indexes = (
            models.Index(fields=["workspace", "-created_at", "-id"], name="review_request_newest"),
            models.Index(fields=["workspace", "state"], name="review_request_state"),
        )

    def __str__(self) -> str:
        return f"#{self.number} {self.title}"

    @property
    def owner_id(self) -> int | None:
        """Whose it is, for the table of roles."""
        return self.author_id

    @property
    def has_ended(self) -> bool:
        return self.state in (self.State.CLOSED, self.State.MERGED)


class RequestRevision(models.Model):
    """The heads that a request has had, in order."""

    request = models.ForeignKey(ReviewRequest, on_delete=models.CASCADE, related_name="heads")
    revision = models.ForeignKey(Revision, on_delete=models.RESTRICT, related_name="head_of")
    place = models.PositiveIntegerField()
    by = models.ForeignKey(USER, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("request", "place")
        constraints = (
            models.UniqueConstraint(fields=["request", "place"], name="request_revision_place_unique"),
        )

    def __str__(self) -> str:
        return f"{self.request_id} {self.place}"


class Reviewer(models.Model):
    """Somebody who is asked to review a request, or has by themselves."""

    class State(models.TextChoices):
        WAITING = "waiting"
        COMMENTED = "commented"
        APPROVED = "approved"
        CHANGES_REQUESTED = "changes_requested"
        STALE = "stale"

    request = models.ForeignKey(ReviewRequest, on_delete=models.CASCADE, related_name="reviewers")
    user = models.ForeignKey(USER, on_delete=models.CASCADE, related_name="reviews")
    state = models.CharField(max_length=24, choices=State.choices, default=State.WAITING)
    asked = models.BooleanField(default=True)
    revision = models.ForeignKey(Revision, on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("request", "pk")
        constraints = (models.UniqueConstraint(fields=["request", "user"], name="reviewer_unique"),)

    def __str__(self) -> str:
        return f"{self.user_id} {self.state}"


class Submission(models.Model):
    """One review as it was sent: a verdict on a revision, with what it published."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    request = models.ForeignKey(ReviewRequest, on_delete=models.CASCADE, related_name="submissions")
    author = models.ForeignKey(USER, on_delete=models.SET_NULL, null=True, related_name="+")
    revision = models.ForeignKey(Revision, on_delete=models.RESTRICT, related_name="+")
    verdict = models.CharField(max_length=24)
    body = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"{self.author_id} {self.verdict}"


class Thread(models.Model):
    """A talk about some lines. The anchor never changes; the place is where those lines are on the head."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey("workspaces.Workspace", on_delete=models.CASCADE, related_name="threads")
    request = models.ForeignKey(ReviewRequest, on_delete=models.CASCADE, related_name="threads")
    author = models.ForeignKey(USER, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    revision = models.ForeignKey(Revision, on_delete=models.RESTRICT, related_name="+")
    side = models.CharField(max_length=3)
    line = models.PositiveIntegerField()
    end_line = models.PositiveIntegerField()
    quoted = models.TextField()
    context_hash = models.CharField(max_length=64)
    evidence = models.JSONField(null=True)

    #: The last revision on which the lines were found, and where; from there they are looked for next.
    placed_on = models.ForeignKey(Revision, on_delete=models.RESTRICT, related_name="+")
    place_line = models.PositiveIntegerField()
    place_end_line = models.PositiveIntegerField()
    gone = models.BooleanField(default=False)  # not on the head

    resolved = models.BooleanField(default=False)
    resolved_by = models.ForeignKey(USER, on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ("created_at", "id")
        constraints = (models.CheckConstraint(condition=Q(end_line__gte=F("line")), name="thread_lines"),)

    def __str__(self) -> str:
        return f"line {self.line} of {self.revision_id}"

    @property
    def owner_id(self) -> int | None:
        return self.author_id


class Comment(models.Model):
    """What somebody says in a thread. Nobody but its author sees a draft."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey("workspaces.Workspace", on_delete=models.CASCADE, related_name="comments")
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="comments")
    author = models.ForeignKey(USER, on_delete=models.SET_NULL, null=True, related_name="+")
    by_agent = models.BooleanField(default=False)
    revision = models.ForeignKey(Revision, on_delete=models.RESTRICT, related_name="+")
    submission = models.ForeignKey(Submission, on_delete=models.SET_NULL, null=True, related_name="comments")
    body = models.TextField(blank=True)
    suggestion = models.JSONField(null=True)
    applied_in = models.ForeignKey(Revision, on_delete=models.SET_NULL, null=True, related_name="+")
    draft = models.BooleanField(default=False)
    deleted = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    edited_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.body[:50]

    @property
    def owner_id(self) -> int | None:
        return self.author_id


class AgentTask(models.Model):
    """A run that was given a thread as its instruction."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="agent_tasks")
    run = models.OneToOneField("runs.AgentRun", on_delete=models.CASCADE, related_name="review_task")
    told = models.BooleanField(default=False)  # in the thread, what came of it
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("created_at", "pk")

    def __str__(self) -> str:
        return f"{self.run_id} for {self.thread_id}"


class ReviewRule(models.Model):
    """Who is asked for which requests of a workspace."""

    workspace = models.ForeignKey(
        "workspaces.Workspace", on_delete=models.CASCADE, related_name="review_rules"
    )
    path_glob = models.CharField(max_length=200, blank=True)
    tag = models.CharField(max_length=50, blank=True)
    reviewers: models.ManyToManyField[Any, Any] = models.ManyToManyField(USER, related_name="review_rules")

    class Meta:
        ordering = ("workspace", "pk")

    def __str__(self) -> str:
        return f"{self.path_glob or '*'} {self.tag}".strip()


class Notification(models.Model):
    """One sentence for one user about a request."""

    user = models.ForeignKey(USER, on_delete=models.CASCADE, related_name="notifications")
    request = models.ForeignKey(ReviewRequest, on_delete=models.CASCADE, related_name="notifications")
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, null=True, related_name="+")
    actor = models.ForeignKey(USER, on_delete=models.SET_NULL, null=True, related_name="+")
    kind = models.CharField(max_length=24)
    text = models.CharField(max_length=500)
    created_at = models.DateTimeField(auto_now_add=True)
    read_at = models.DateTimeField(null=True)
    #: When a mail took it along, or it was decided that none does.
    mailed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=["user", "-created_at", "-id"], name="notification_newest"),
            models.Index(fields=["mailed_at"], condition=Q(mailed_at=None), name="notification_unmailed"),
        )

    def __str__(self) -> str:
        return self.text


class NotificationSetting(models.Model):
    """How a user wants to be told."""

    class Mail(models.TextChoices):
        EACH = "each"
        DIGEST = "digest"
        NONE = "none"

    user = models.OneToOneField(USER, on_delete=models.CASCADE, related_name="notification_setting")
    mail = models.CharField(max_length=8, choices=Mail.choices, default=Mail.DIGEST)
    digest_at = models.DateTimeField(null=True)  # the last one

    def __str__(self) -> str:
        return f"{self.user_id} {self.mail}"

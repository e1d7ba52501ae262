"""Workspaces: who belongs to them, by what they act, what was done, and how much they may use."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, NoReturn

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import ProtectedError, Q, QuerySet
from django.utils import timezone

from webapp.workspaces.roles import Role, Scope

USER = settings.AUTH_USER_MODEL


class Workspace(models.Model):
    """Where people work together. What people make belongs to one of them, and only its members see it."""

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=200)
    #: Whose own this is; None for a team's. Nobody else can become a member of a personal one.
    personal_of = models.OneToOneField(
        USER, on_delete=models.CASCADE, null=True, blank=True, related_name="personal_workspace"
    )
    #: Counts the changes of the settings, for ETag and If-Match.
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug

    @property
    def is_personal(self) -> bool:
        return self.personal_of_id is not None

    @property
    def workspace_id(self) -> int:
        """So that it is asked like everything that belongs to a workspace."""
        return self.pk


def unless_last_admin(collector: Any, field: Any, sub_objs: QuerySet[Any], using: str) -> None:
    """What becomes of memberships when their user is deleted: they go too, but not a team's last admin."""
    if last := {it for it in sub_objs if it.is_last_admin}:
        raise ProtectedError("A workspace keeps at least one admin.", last)
    models.CASCADE(collector, field, sub_objs, using)


class Membership(models.Model):
    """A user's role in a workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(USER, on_delete=unless_last_admin, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("workspace", "user")
        constraints = (
            models.UniqueConstraint(fields=["workspace", "user"], name="membership_unique"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_role_known"),
        )

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role} of {self.workspace_id}"

    @property
    def owner_id(self) -> int:
        """Whose this is: leaving is doing something to one's own membership."""
        return self.user_id

    @property
    def is_last_admin(self) -> bool:
        """Whether a team would have nobody left to let people in. Ask under a lock of the workspace."""
        if self.role != Role.ADMIN or self.workspace.is_personal:
            return False
        admins = Membership.objects.filter(workspace=self.workspace_id, role=Role.ADMIN, user__is_active=True)
        return not admins.exclude(pk=self.pk).exists()


class Invitation(models.Model):
    """A link that makes whoever accepts it first a member. Only the token's hash is kept."""

    class State(models.TextChoices):
        OPEN = "open"
        ACCEPTED = "accepted"
        REVOKED = "revoked"
        EXPIRED = "expired"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField(blank=True)  # where it was sent; empty: handed over as a link
    role = models.CharField(max_length=16, choices=Role.choices)
    token_hash = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(USER, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    accepted_by = models.ForeignKey(USER, on_delete=models.SET_NULL, null=True, related_name="+")
    accepted_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"{self.email or 'link'} as {self.role}"

    @property
    def state(self) -> State:
        if self.accepted_at:
            return self.State.ACCEPTED
        if self.revoked_at:
            return self.State.REVOKED
        return self.State.OPEN if self.expires_at > timezone.now() else self.State.EXPIRED


class ApiToken(models.Model):
    """By which a program acts as a user, within its scopes. Only the token's hash is kept."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(USER, on_delete=models.CASCADE, related_name="api_tokens")
    #: The only one it acts in; None: all of the user's, but for those that have barred it.
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, null=True, related_name="api_tokens")
    barred_from = models.ManyToManyField(Workspace, related_name="barred_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16)
    token_hash = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField()  # of `Scope`
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"{self.prefix}… {self.name}"

    @property
    def owner_id(self) -> int:
        return self.user_id

    def has_scope(self, scope: Scope | None) -> bool:
        return scope is not None and scope.value in self.scopes


class NeverChanged(models.QuerySet["AuditEntry"]):
    """Rows are added and read."""

    def update(self, **_: Any) -> NoReturn:
        raise AppendOnly

    def delete(self) -> NoReturn:
        raise AppendOnly

    def bulk_update(self, *_: Any, **__: Any) -> NoReturn:
        raise AppendOnly


class AppendOnly(TypeError):
    """Somebody tried to change the audit log."""

    def __init__(self) -> None:
        super().__init__("the audit log is only ever added to")


class AuditEntry(models.Model):
    """What somebody did, or was kept from doing. Never changed: PostgreSQL has a trigger against it too.

    The keys have no constraints, so that entries stay as they are when what they speak of is deleted.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, null=True, db_constraint=False, related_name="+"
    )
    actor = models.ForeignKey(
        USER, on_delete=models.DO_NOTHING, null=True, db_constraint=False, related_name="+"
    )
    actor_name = models.CharField(max_length=150)
    token_prefix = models.CharField(max_length=16, blank=True)  # of the API token; empty: by browser
    action = models.CharField(max_length=64)
    denied = models.BooleanField(default=False)
    object_kind = models.CharField(max_length=64, blank=True)
    object_id = models.CharField(max_length=64, blank=True)
    object_title = models.CharField(max_length=200, blank=True)
    detail = models.JSONField(default=dict)
    address = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = NeverChanged.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        verbose_name_plural = "audit entries"
        indexes = (models.Index(fields=["workspace", "-created_at", "-id"], name="audit_newest"),)

    def __str__(self) -> str:
        return f"{self.actor_name} {self.action}{' (denied)' if self.denied else ''}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnly
        super().save(*args, **{**kwargs, "force_insert": True})

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        raise AppendOnly


class QuotaKind(models.TextChoices):
    RUNS_AT_ONCE = "runs_at_once"
    GPU_SECONDS = "gpu_seconds"
    MODEL_TOKENS = "model_tokens"


class Quota(models.Model):
    """A limit that differs from the server's own. Of several that apply, the lowest holds."""

    #: Without a user: of the workspace as a whole. Without a workspace: of the user, wherever they work.
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, null=True, blank=True)
    user = models.ForeignKey(USER, on_delete=models.CASCADE, null=True, blank=True)
    kind = models.CharField(max_length=16, choices=QuotaKind.choices)
    limit = models.PositiveBigIntegerField()
    #: Set in the server's admin, in place of the default from the environment; else by the workspace's
    #: admins, who can only go below that.
    by_server = models.BooleanField(default=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["workspace", "kind", "by_server"],
                condition=Q(user=None),
                name="quota_of_workspace_unique",
            ),
            models.UniqueConstraint(
                fields=["user", "kind"], condition=Q(workspace=None), name="quota_of_user_unique"
            ),
            models.UniqueConstraint(
                fields=["workspace", "user", "kind", "by_server"], name="quota_of_member_unique"
            ),
            models.CheckConstraint(
                condition=Q(workspace__isnull=False) | Q(user__isnull=False, by_server=True),
                name="quota_of_something",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.limit}"

    def clean(self) -> None:
        if self.workspace_id is None and self.user_id is None:
            raise ValidationError("Name a workspace, a user, or both.")


class Usage(models.Model):
    """What a user used up in a workspace in a month (UTC)."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="usage")
    user = models.ForeignKey(USER, on_delete=models.SET_NULL, null=True, related_name="usage")
    kind = models.CharField(max_length=16, choices=QuotaKind.choices)
    month = models.DateField()  # its first day
    amount = models.FloatField(default=0)

    class Meta:
        verbose_name_plural = "usage"
        constraints = (
            models.UniqueConstraint(fields=["workspace", "user", "kind", "month"], name="usage_unique"),
        )
        indexes = (models.Index(fields=["user", "month"], name="usage_of_user"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.amount}"


def month_of(at: datetime) -> datetime:
    """Midnight of the month's first day, UTC."""
    return at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)

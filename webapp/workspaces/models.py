"""Workspaces and who belongs to them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import ProtectedError, Q, QuerySet

from webapp.workspaces.roles import Role


class Workspace(models.Model):
    """Where people work together. What people make belongs to one of them, and only its members see it."""

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=200)
    #: Whose own this is; None for a team's. Nobody else can become a member of a personal one.
    personal_of = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="personal_workspace",
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


def unless_last_admin(collector: Any, field: Any, sub_objs: QuerySet[Any], using: str) -> None:
    """What becomes of memberships when their user is deleted: they go too, but not a team's last admin."""
    last = [it for it in sub_objs if it.is_last_admin]
    if last:
        slugs = ", ".join(sorted(it.workspace.slug for it in last))
        raise ProtectedError(
            f"This user is the last admin of {slugs}: make somebody else admin first.", set(last)
        )
    models.CASCADE(collector, field, sub_objs, using)


class Membership(models.Model):
    """A user's role in a workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=unless_last_admin, related_name="memberships"
    )
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
    def is_last_admin(self) -> bool:
        """Whether a team would have nobody left to let people in. Ask under a lock of the workspace."""
        if self.role != Role.ADMIN or self.workspace.is_personal:
            return False
        admins = Membership.objects.filter(workspace=self.workspace_id, role=Role.ADMIN, user__is_active=True)
        return not admins.exclude(pk=self.pk).exists()

"""Agent profiles and their versions."""

from __future__ import annotations

from typing import Any, NoReturn

from django.conf import settings as server
from django.db import models


class AgentProfile(models.Model):
    """A name in a workspace; what it means is said by its versions."""

    workspace = models.ForeignKey("workspaces.Workspace", on_delete=models.CASCADE, related_name="profiles")
    name = models.SlugField(max_length=48)
    archived = models.BooleanField(default=False)  # not offered any more; runs that used it still say so
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("workspace", "name")
        constraints = (models.UniqueConstraint(fields=["workspace", "name"], name="profile_name_unique"),)

    def __str__(self) -> str:
        return self.name


class ProfileVersion(models.Model):
    """How a run with the profile is asked for. Never changed: what a run was made with stays known."""

    profile = models.ForeignKey(AgentProfile, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    settings = models.JSONField()  # resources_profiles.ProfileSettings
    created_by = models.ForeignKey(server.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("profile", "-number")
        constraints = (models.UniqueConstraint(fields=["profile", "number"], name="profile_version_unique"),)

    def __str__(self) -> str:
        return f"{self.profile.name}@{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            _unchangeable()
        super().save(*args, **kwargs)


def _unchangeable() -> NoReturn:
    raise TypeError("a version of a profile is never changed; make a new one")

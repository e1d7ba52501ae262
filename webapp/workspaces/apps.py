"""Every user gets a workspace of their own, however the user comes to be."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_save


class WorkspacesConfig(AppConfig):
    name = "webapp.workspaces"

    def ready(self) -> None:
        post_save.connect(_user_saved, sender=settings.AUTH_USER_MODEL, dispatch_uid="personal-workspace")


def _user_saved(sender: Any, instance: Any, created: bool, raw: bool, **_: Any) -> None:
    """A signal, since users are made by the command line, the admin and sign-in by OIDC alike."""
    from webapp.workspaces.services import personal_workspace_ensure

    if created and not raw:
        personal_workspace_ensure(user=instance)

"""Every user gets a workspace of their own, however the user comes to be."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_save


class WorkspacesConfig(AppConfig):
    name = "webapp.workspaces"

    def ready(self) -> None:
        from webapp.language_models.services import language_model_changed

        post_save.connect(_user_saved, sender=settings.AUTH_USER_MODEL, dispatch_uid="personal-workspace")
        language_model_changed.connect(_model_changed, dispatch_uid="audit-language-models")


def _user_saved(sender: Any, instance: Any, created: bool, raw: bool, **_: Any) -> None:
    """A signal, since users are made by the command line, the admin and sign-in by OIDC alike."""
    from webapp.workspaces.services import personal_workspace_ensure

    if created and not raw:
        personal_workspace_ensure(user=instance)


def _model_changed(sender: Any, actor: Any, model: Any, detail: dict[str, Any], **_: Any) -> None:
    """Language models are the server's, and know nothing of workspaces: the entry belongs to none."""
    from webapp.workspaces import audit

    audit.record("model.edit", actor=actor, workspace=None, thing=model, detail=detail)

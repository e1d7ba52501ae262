"""Every user gets a workspace of their own, however the user comes to be; signing in is in the audit log."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models.signals import post_save


class WorkspacesConfig(AppConfig):
    name = "webapp.workspaces"

    def ready(self) -> None:
        from webapp.language_models.services import language_model_changed

        post_save.connect(_user_saved, sender=settings.AUTH_USER_MODEL, dispatch_uid="personal-workspace")
        language_model_changed.connect(_model_changed, dispatch_uid="audit-language-models")
        user_logged_in.connect(_signed_in, dispatch_uid="audit-sign-in")
        user_logged_out.connect(_signed_out, dispatch_uid="audit-sign-out")
        user_login_failed.connect(_sign_in_failed, dispatch_uid="audit-sign-in-failed")


def _user_saved(sender: Any, instance: Any, created: bool, raw: bool, **_: Any) -> None:
    """A signal, since users are made by the command line, the admin and sign-in by OIDC alike."""
    from webapp.workspaces.services import personal_workspace_ensure

    if created and not raw:
        personal_workspace_ensure(user=instance)


def _model_changed(sender: Any, actor: Any, model: Any, detail: dict[str, Any], **_: Any) -> None:
    """Language models are the server's, and know nothing of workspaces: the entry belongs to none."""
    from webapp.workspaces import audit

    audit.record("model.edit", actor=actor, workspace=None, thing=model, detail=detail)


def _signed_in(sender: Any, user: Any, **_: Any) -> None:
    from webapp.workspaces import audit

    audit.record("sign-in", actor=user, workspace=None)


def _signed_out(sender: Any, user: Any, **_: Any) -> None:
    from webapp.workspaces import audit

    if user is not None:
        audit.record("sign-out", actor=user, workspace=None)


def _sign_in_failed(sender: Any, credentials: Any, **_: Any) -> None:
    from webapp.workspaces import audit

    name = str(credentials.get("username", ""))[:150].replace("\x00", "")
    audit.record("sign-in", actor=None, workspace=None, detail={"username": name}, denied=True)

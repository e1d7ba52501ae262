"""Held to: what the table of roles does not allow is a 403 with a sentence, and an entry in the audit log."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.http import Http404

from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.workspaces import audit
from webapp.workspaces.roles import ACTIONS
from webapp.workspaces.selectors import Owned, has_scope, role_needed, role_of


class Denied(ProblemError):
    """An action above one's role, or outside of the token's scopes."""

    def __init__(
        self, detail: str, *, action: str, actor: User, workspace_id: int | None, thing: Any
    ) -> None:
        super().__init__(403, "not-allowed", detail)
        self.action = action
        self.actor = actor
        self.workspace_id = workspace_id
        self.thing = thing

    def record(self) -> None:
        """In the audit log. The exception handler's job; who catches this calls it."""
        audit.record(
            self.action,
            actor=self.actor,
            workspace=self.workspace_id,
            thing=self.thing if isinstance(self.thing, Model) else None,
            detail={"why": self.detail},
            denied=True,
        )


def require(user: User, action: str, thing: Owned) -> None:
    """Raises Http404 for one who cannot see it, Denied for one who sees it and may not do this."""
    rule = ACTIONS[action]
    role = role_of(user, thing.workspace_id)
    if role is None:
        raise Http404
    if not has_scope(user, action):
        raise unscoped(user, action, thing.workspace_id, thing)
    needed = role_needed(user, action, thing)
    if needed is not None and role.rank < needed.rank:
        detail = (
            f"{rule.words.capitalize()} takes the role {needed.value}; yours in this workspace is "
            f"{role.value}. An admin of the workspace can change that."
        )
        raise Denied(detail, action=action, actor=user, workspace_id=thing.workspace_id, thing=thing)


def unscoped(user: User, action: str, workspace_id: int | None, thing: object) -> Denied:
    """What is said to a token that is not good for the action."""
    rule = ACTIONS[action]
    if rule.scope is None:
        detail = f"{rule.words.capitalize()} is not done by an API token. Sign in with a browser."
    else:
        detail = (
            f"{rule.words.capitalize()} takes a token with the scope {rule.scope.value}; this one has not."
        )
    return Denied(detail, action=action, actor=user, workspace_id=workspace_id, thing=thing)

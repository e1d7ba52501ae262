"""The audit log: who did what to what, in which workspace, from where; and what was not allowed.

A service that changes something calls `record` in the same transaction, so that there is no change without
its entry. What was denied is recorded by the exception handler, after whatever transaction there was.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Model

from webapp.accounts.models import User
from webapp.common.requests import current_address, current_request_id
from webapp.workspaces.models import AuditEntry, Workspace


def record(
    action: str,
    *,
    actor: User | AnonymousUser | None,
    workspace: Workspace | int | None,
    thing: Model | None = None,
    detail: dict[str, Any] | None = None,
    denied: bool = False,
) -> None:
    """Adds an entry. `action` is one of the table's (`roles.ACTIONS`), or an event of signing in; `detail` is
    JSON that says what changed, never a secret. `actor` is None for what nobody asked for."""
    user = actor if isinstance(actor, User) else None
    token = None if user is None else user.token
    AuditEntry.objects.create(
        workspace_id=workspace.pk if isinstance(workspace, Workspace) else workspace,
        actor_id=None if user is None else user.pk,
        actor_name="" if user is None else user.get_username(),
        token_prefix="" if token is None else token.prefix,
        action=action,
        denied=denied,
        object_kind="" if thing is None else str(thing._meta.verbose_name),
        object_id="" if thing is None else str(thing.pk),
        object_title="" if thing is None else str(thing)[:200],
        detail=detail or {},
        address=current_address(),
        request_id=current_request_id(),
    )

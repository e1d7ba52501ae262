"""API tokens: made, used, ended. The token itself is seen once, by who makes it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.common.secrets import secret, secret_hash
from webapp.workspaces import audit
from webapp.workspaces.models import ApiToken, Workspace
from webapp.workspaces.roles import Scope

START = "kw_"
PREFIX_CHARACTERS = 11  # shown, to tell tokens apart; the other 35 are secret
TOKENS_MAX = 50
#: Last use is written at most this often.
USE_NOTED = timedelta(minutes=1)


def token_create(
    *, user: User, name: str, scopes: Sequence[Scope], workspace: Workspace | None, lifetime: timedelta
) -> tuple[ApiToken, str]:
    """The record, and the token, which cannot be had again."""
    now = timezone.now()
    text = START + secret()
    with transaction.atomic():
        acting = ApiToken.objects.filter(user=user, revoked_at=None, expires_at__gt=now)
        if acting.count() >= TOKENS_MAX:
            raise ProblemError(409, "too-many-tokens", f"You have {TOKENS_MAX} tokens. Revoke one first.")
        token = ApiToken.objects.create(
            user=user,
            workspace=workspace,
            name=name,
            prefix=text[:PREFIX_CHARACTERS],
            token_hash=secret_hash(text),
            scopes=sorted({scope.value for scope in scopes}),
            expires_at=now + lifetime,
        )
        detail = {"name": name, "scopes": token.scopes, "expires_at": token.expires_at.isoformat()}
        audit.record("token.create", actor=user, workspace=workspace, thing=token, detail=detail)
    return token, text


def token_revoke(*, user: User, token: ApiToken) -> None:
    """Ends the user's own token. Does nothing to one that has ended."""
    with transaction.atomic():
        if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
            audit.record("token.revoke", actor=user, workspace=token.workspace_id, thing=token)


def token_bar(*, user: User, token: ApiToken, workspace: Workspace) -> None:
    """Keeps a member's token out of the workspace; one that is only for the workspace ends by that."""
    with transaction.atomic():
        if token.workspace_id == workspace.pk:
            ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
        else:
            token.barred_from.add(workspace)
        detail = {"member": token.user.username}
        audit.record("token.revoke", actor=user, workspace=workspace, thing=token, detail=detail)


def token_user(text: str) -> User | None:
    """The user as who the bearer acts, with `user.token` set; None for a token that is not good."""
    if not text.startswith(START):
        return None
    now = timezone.now()
    acting = ApiToken.objects.filter(revoked_at=None, expires_at__gt=now, user__is_active=True)
    token = acting.select_related("user").filter(token_hash=secret_hash(text)).first()
    if token is None:
        return None
    if token.last_used_at is None or now - token.last_used_at >= USE_NOTED:
        long_ago = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_NOTED)
        ApiToken.objects.filter(long_ago, pk=token.pk).update(last_used_at=now)
    token.user.token = token
    return token.user

"""Reads of workspaces, and the two questions that all ask: what may a user see, what may a user do."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, TypeVar
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import F, Model, Q, QuerySet
from django.http import Http404
from django.utils import timezone

from webapp.accounts.models import User
from webapp.workspaces.models import ApiToken, AuditEntry, Invitation, Membership, Workspace
from webapp.workspaces.roles import ACTIONS, Role

Record = TypeVar("Record", bound=Model)


class Owned(Protocol):
    """Whatever belongs to a workspace; who made it is its `owner_id`, where it has one."""

    @property
    def workspace_id(self) -> int: ...


# --- What may be seen ---------------------------------------------------------------------------------------


def workspaces_visible_to(user: User | AnonymousUser) -> QuerySet[Workspace]:
    """The one place that decides: the workspaces of which the user is a member, whatever the role.

    By an API token, only those in which it acts. What belongs to a workspace is visible with it:
    `Thing.objects.filter(workspace__in=workspaces_visible_to(user))`.
    """
    if not isinstance(user, User) or not user.is_active:
        return Workspace.objects.none()
    visible = Workspace.objects.filter(memberships__user=user.pk)
    if user.token is not None:
        visible = visible.exclude(barred_tokens=user.token.pk)
        if user.token.workspace_id is not None:
            visible = visible.filter(pk=user.token.workspace_id)
    return visible


def workspace_visible_to(user: User | AnonymousUser, slug: str | None) -> Workspace:
    """The workspace of this name; without one, the user's own, or the only one of the token.

    Raises Http404, for another's as for none.
    """
    visible = workspaces_visible_to(user)
    bound = None if isinstance(user, AnonymousUser) or user.token is None else user.token.workspace_id
    try:
        if slug is not None:
            return visible.get(slug=slug)
        return visible.get(personal_of=user.pk) if bound is None else visible.get(pk=bound)
    except Workspace.DoesNotExist:
        raise Http404 from None


def memberships_visible_to(user: User) -> QuerySet[Membership]:
    """The user's own: of each visible workspace one, the personal one's first."""
    mine = Membership.objects.filter(user=user.pk, workspace__in=workspaces_visible_to(user))
    first = F("workspace__personal_of").asc(nulls_last=True)
    return mine.select_related("workspace").order_by(first, "workspace__slug")


def members_of(workspace: Workspace) -> QuerySet[Membership]:
    return workspace.memberships.select_related("user", "workspace").order_by("user__username")


def member_of(workspace: Workspace, user_id: int) -> Membership:
    """Raises Http404."""
    return _found(members_of(workspace).filter(user=user_id))


def invitations_of(workspace: Workspace) -> QuerySet[Invitation]:
    return workspace.invitations.select_related("invited_by", "accepted_by", "workspace")


def invitation_of(workspace: Workspace, invitation_id: UUID) -> Invitation:
    """Raises Http404."""
    return _found(invitations_of(workspace).filter(pk=invitation_id))


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """The user's own, also those that have ended."""
    return ApiToken.objects.filter(user=user.pk).select_related("workspace", "user")


def token_of(user: User, token_id: UUID | str) -> ApiToken:
    """Raises Http404."""
    return _found(tokens_of(user).filter(pk=token_id))


def tokens_in(workspace: Workspace) -> QuerySet[ApiToken]:
    """Members' tokens that act in the workspace now."""
    acting = ApiToken.objects.filter(revoked_at=None, expires_at__gt=timezone.now())
    members = acting.filter(user__memberships__workspace=workspace).exclude(barred_from=workspace)
    return members.filter(Q(workspace=workspace) | Q(workspace=None)).select_related("workspace", "user")


def token_in(workspace: Workspace, token_id: UUID) -> ApiToken:
    """Raises Http404."""
    return _found(tokens_in(workspace).filter(pk=token_id))


def audit_of(workspace: Workspace) -> QuerySet[AuditEntry]:
    return AuditEntry.objects.filter(workspace=workspace)


# --- What may be done ---------------------------------------------------------------------------------------


def role_of(user: User | AnonymousUser, workspace_id: int) -> Role | None:
    """None for who is no member, and for a token that does not act there."""
    if not isinstance(user, User) or not workspaces_visible_to(user).filter(pk=workspace_id).exists():
        return None
    return Role(Membership.objects.get(workspace=workspace_id, user=user.pk).role)


def role_needed(user: User, action: str, thing: Owned | None) -> Role | None:
    """The least role for the action on this thing; None where none is needed."""
    rule = ACTIONS[action]
    if rule.own is not None and getattr(thing, "owner_id", None) == user.pk:
        return rule.own
    return rule.role


def has_scope(user: User, action: str) -> bool:
    """Whether the token, where there is one, is good for the action."""
    return user.token is None or user.token.has_scope(ACTIONS[action].scope)


def may(user: User | AnonymousUser, action: str, thing: Owned) -> bool:
    """Whether the user may do this to `thing`, a workspace or what belongs to one."""
    role = role_of(user, thing.workspace_id)
    if role is None or not isinstance(user, User) or not has_scope(user, action):
        return False
    needed = role_needed(user, action, thing)
    return needed is None or role.rank >= needed.rank


def allowed_actions(role: Role) -> Collection[str]:
    """What a role may do to anything in its workspace; a page shows its buttons by these."""
    return [name for name, rule in ACTIONS.items() if rule.role is not None and rule.role.rank <= role.rank]


def _found(records: QuerySet[Record]) -> Record:
    record = records.first()
    if record is None:
        raise Http404
    return record

"""Reads of workspaces. Whatever a user may see comes through `workspaces_visible_to`."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.http import Http404

from webapp.accounts.models import User
from webapp.workspaces.models import Workspace


def workspaces_visible_to(user: User | AnonymousUser) -> QuerySet[Workspace]:
    """The one place that decides: the workspaces of which the user is a member, whatever the role."""
    if not isinstance(user, User) or not user.is_active:
        return Workspace.objects.none()
    return Workspace.objects.filter(memberships__user=user.pk)


def workspace_visible_to(user: User | AnonymousUser, slug: str | None) -> Workspace:
    """The workspace of this name; without one, the user's own. Raises Http404, for another's as for none."""
    visible = workspaces_visible_to(user)
    try:
        return visible.get(personal_of=user.pk) if slug is None else visible.get(slug=slug)
    except Workspace.DoesNotExist:
        raise Http404 from None

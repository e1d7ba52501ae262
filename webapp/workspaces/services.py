"""Writes of workspaces."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from webapp.accounts.models import User
from webapp.workspaces.models import Membership, Workspace
from webapp.workspaces.roles import Role


def personal_workspace_ensure(*, user: User) -> Workspace:
    """The user's own workspace, made when there is none yet."""
    if (found := Workspace.objects.filter(personal_of=user).first()) is not None:
        return found
    stem = slugify(user.username)[:50] or "user"
    for number in range(1, 1000):
        slug = stem if number == 1 else f"{stem}-{number}"
        if Workspace.objects.filter(slug=slug).exists():
            continue
        try:
            with transaction.atomic():
                workspace = Workspace.objects.create(slug=slug, name=user.username, personal_of=user)
                Membership.objects.create(workspace=workspace, user=user, role=Role.ADMIN)
            return workspace
        except IntegrityError:  # the name, or the whole workspace, was made in this moment
            if (found := Workspace.objects.filter(personal_of=user).first()) is not None:
                return found
    raise RuntimeError(f"no free name for the workspace of user {user.pk}")

"""Writes of workspaces and their members. Who may call them is asked before, by `access.require`."""

from __future__ import annotations

import re

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.text import slugify

from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.workspaces import audit
from webapp.workspaces.models import ApiToken, Membership, Workspace
from webapp.workspaces.roles import Role

TEAMS_MAX = 100
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")


def personal_workspace_ensure(*, user: User) -> Workspace:
    """The user's own workspace, made when there is none yet."""
    if (found := Workspace.objects.filter(personal_of=user).first()) is not None:
        return found
    stem = slugify(user.username)[:50].strip("-_") or "user"
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


def workspace_create(*, user: User, slug: str, name: str) -> Workspace:
    """A team's workspace, with the user as its admin. Raises ProblemError for a name that is taken."""
    _check_slug(slug)
    if Membership.objects.filter(user=user, workspace__personal_of=None).count() >= TEAMS_MAX:
        raise ProblemError(409, "too-many-workspaces", f"You are in {TEAMS_MAX} workspaces. Leave one first.")
    try:
        with transaction.atomic():
            workspace = Workspace.objects.create(slug=slug, name=_name(name))
            Membership.objects.create(workspace=workspace, user=user, role=Role.ADMIN)
            audit.record(
                "workspace.create",
                actor=user,
                workspace=workspace,
                thing=workspace,
                detail={"name": workspace.name},
            )
    except IntegrityError:
        raise _taken(slug) from None
    return workspace


def workspace_edit(
    *, user: User, workspace: Workspace, version: int, slug: str | None, name: str | None
) -> Workspace:
    """Changes what is given. Raises ProblemError 412 when it is not at `version` any more."""
    changes = {"slug": slug, "name": None if name is None else _name(name)}
    changes = {field: value for field, value in changes.items() if value is not None}
    if slug is not None:
        _check_slug(slug)
    try:
        with transaction.atomic():
            version_advance(workspace=workspace, version=version)
            Workspace.objects.filter(pk=workspace.pk).update(**changes)
            detail = {field: [getattr(workspace, field), value] for field, value in changes.items()}
            audit.record("workspace.edit", actor=user, workspace=workspace, thing=workspace, detail=detail)
    except IntegrityError:
        raise _taken(slug or "") from None
    workspace.refresh_from_db()
    return workspace


def version_advance(*, workspace: Workspace, version: int) -> None:
    """Before the settings are changed, in the same transaction. Raises ProblemError 412."""
    at_version = Workspace.objects.filter(pk=workspace.pk, version=version)
    if not at_version.update(version=F("version") + 1):
        detail = "The workspace was changed meanwhile. Get it again, and change that."
        raise ProblemError(412, "changed-meanwhile", detail)


def member_role_set(*, user: User, member: Membership, role: Role) -> Membership:
    """Raises ProblemError for a personal workspace, and where no admin would be left."""
    with transaction.atomic():
        locked = _locked(member)
        if role != Role.ADMIN and locked.is_last_admin:
            raise _last_admin()
        before, locked.role = locked.role, role
        locked.save(update_fields=["role"])
        detail = {"member": locked.user.username, "role": [before, role.value]}
        audit.record("member.edit", actor=user, workspace=locked.workspace, thing=locked.user, detail=detail)
    return locked


def member_remove(*, user: User, member: Membership) -> None:
    """Takes a member out, or lets one leave; their tokens for here end. Raises ProblemError as above."""
    with transaction.atomic():
        locked = _locked(member)
        if locked.is_last_admin:
            raise _last_admin()
        ending = ApiToken.objects.filter(workspace=locked.workspace_id, user=locked.user_id, revoked_at=None)
        ended = ending.update(revoked_at=timezone.now())
        detail = {"member": locked.user.username, "role": locked.role, "tokens_revoked": ended}
        audit.record(
            "member.remove", actor=user, workspace=locked.workspace, thing=locked.user, detail=detail
        )
        locked.delete()


def _locked(member: Membership) -> Membership:
    """The membership as it is now. The workspace's lock keeps changes of members one after the other."""
    workspace = Workspace.objects.select_for_update().get(pk=member.workspace_id)
    if workspace.is_personal:
        raise ProblemError(409, "personal-workspace", "A personal workspace has one member, for good.")
    locked = Membership.objects.select_related("user", "workspace").filter(pk=member.pk).first()
    if locked is None:
        raise ProblemError(404, "not-found", "This user is no member any more.")
    return locked


def _last_admin() -> ProblemError:
    detail = "A workspace keeps at least one admin. Make somebody else admin first."
    return ProblemError(409, "last-admin", detail)


def _check_slug(slug: str) -> None:
    if not _SLUG.fullmatch(slug):
        detail = "slug: takes 1 to 64 small letters, digits and hyphens, none of these at an end"
        raise ProblemError(400, "invalid", detail)


def _name(name: str) -> str:
    if not 1 <= len(name.strip()) <= 200 or "\x00" in name:
        raise ProblemError(400, "invalid", "name: takes 1 to 200 characters")
    return name.strip()


def _taken(slug: str) -> ProblemError:
    return ProblemError(409, "name-taken", f"There is a workspace {slug!r} already. Choose another name.")

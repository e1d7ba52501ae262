"""Invitations: sent by mail or handed over as a link, accepted once, by who is signed in and has it."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Literal

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.common.secrets import secret, secret_hash
from webapp.workspaces import audit
from webapp.workspaces.models import Invitation, Membership, Workspace
from webapp.workspaces.roles import Role

logger = logging.getLogger(__name__)

OPEN_MAX = 200
#: sent: by mail. not_configured, failed: the link is in the answer, to be handed over. no_address: likewise.
Mail = Literal["sent", "not_configured", "failed", "no_address"]


def invitation_create(
    *, user: User, workspace: Workspace, email: str, role: Role, lifetime: timedelta
) -> tuple[Invitation, str]:
    """The record, and the token of its link, which cannot be had again. Raises ProblemError."""
    if workspace.is_personal:
        why = "A personal workspace has one member. Make a workspace for a team and invite people there."
        raise ProblemError(409, "personal-workspace", why)
    token = secret()
    now = timezone.now()
    with transaction.atomic():
        if Invitation.objects.filter(_open(now), workspace=workspace).count() >= OPEN_MAX:
            raise ProblemError(409, "too-many-invitations", f"{OPEN_MAX} are open. Take some back first.")
        invitation = Invitation.objects.create(
            workspace=workspace,
            email=email,
            role=role,
            token_hash=secret_hash(token),
            invited_by=user,
            expires_at=now + lifetime,
        )
        detail = {"email": email, "role": role.value}
        audit.record("invitation.create", actor=user, workspace=workspace, thing=invitation, detail=detail)
    return invitation, token


def invitation_mail(*, invitation: Invitation, link: str, sender: str) -> Mail:
    """Sends the link, where there is an address and a mail server. Never raises for what the server does."""
    if not invitation.email:
        return "no_address"
    if not settings.MAIL_CONFIGURED:
        return "not_configured"
    text = (
        f"{sender} invites you to the workspace {invitation.workspace.name!r} on Kernelwright, "
        f"as {invitation.role}.\n\n{link}\n\nThe link works once, until "
        f"{invitation.expires_at:%Y-%m-%d %H:%M} UTC. If you do not know what this is about, do nothing.\n"
    )
    try:
        EmailMessage(
            subject=f"Invitation to {invitation.workspace.name}", body=text, to=[invitation.email]
        ).send()
    except Exception as error:  # every kind of mail server has errors of its own
        logger.error("the invitation %s could not be mailed: %s", invitation.pk, error)
        return "failed"
    return "sent"


def _open(now: datetime) -> Q:
    return Q(accepted_at=None, revoked_at=None, expires_at__gt=now)


def invitation_find(token: str) -> Invitation | None:
    """The open invitation of a link; None for one that is used, taken back, too old or never was."""
    found = Invitation.objects.filter(_open(timezone.now()), token_hash=secret_hash(token))
    return found.select_related("workspace", "invited_by").first()


def invitation_accept(*, user: User, token: str) -> Membership:
    """Makes the user a member. Raises ProblemError 410 for a link that is no good, 409 for a member."""
    now = timezone.now()
    try:
        with transaction.atomic():
            # One UPDATE, so that of two at once only one gets in; undone when this one is a member already.
            accepted = Invitation.objects.filter(_open(now), token_hash=secret_hash(token))
            if not accepted.update(accepted_at=now, accepted_by=user):
                why = "This invitation was used already, taken back, or is too old. Ask for a new one."
                raise ProblemError(410, "invitation-gone", why)
            invitation = Invitation.objects.select_related("workspace").get(token_hash=secret_hash(token))
            member = Membership.objects.create(
                workspace=invitation.workspace, user=user, role=invitation.role
            )
            detail = {"role": invitation.role, "email": invitation.email}
            audit.record(
                "invitation.accept",
                actor=user,
                workspace=invitation.workspace,
                thing=invitation,
                detail=detail,
            )
    except IntegrityError:
        raise ProblemError(409, "member-already", "You are a member of this workspace already.") from None
    return member


def invitation_revoke(*, user: User, invitation: Invitation) -> None:
    """Takes it back. Does nothing to one that was taken back; raises ProblemError for an accepted one."""
    with transaction.atomic():
        if Invitation.objects.filter(pk=invitation.pk, accepted_at=None, revoked_at=None).update(
            revoked_at=timezone.now()
        ):
            audit.record(
                "invitation.revoke",
                actor=user,
                workspace=invitation.workspace,
                thing=invitation,
                detail={"email": invitation.email},
            )
            return
    invitation.refresh_from_db()
    if invitation.accepted_at is not None:
        detail = "This invitation was accepted already. Remove the member instead."
        raise ProblemError(409, "invitation-accepted", detail)

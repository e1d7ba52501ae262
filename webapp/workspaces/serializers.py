"""Between REST and records."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils import timezone

from webapp.accounts.models import BrowserSession
from webapp.common.errors import ProblemError
from webapp.live.resources_workspaces import (
    AuditItem,
    InvitationInfo,
    Member,
    QuotaSetting,
    QuotaSettings,
    QuotaUseInfo,
    SessionInfo,
    TokenInfo,
    UsageReport,
    WorkspaceDetail,
    WorkspaceSummary,
)
from webapp.workspaces.models import (
    ApiToken,
    AuditEntry,
    Invitation,
    Membership,
    QuotaKind,
    Workspace,
    month_of,
)
from webapp.workspaces.quotas import QuotaUse, Setting
from webapp.workspaces.roles import Role
from webapp.workspaces.selectors import allowed_actions

_CSV = (
    "at",
    "actor",
    "token_prefix",
    "action",
    "denied",
    "object_kind",
    "object_id",
    "object_title",
    "detail",
    "address",
    "request_id",
)


def workspace_summary(workspace: Workspace, role: str) -> WorkspaceSummary:
    return WorkspaceSummary(**_workspace(workspace, role))


def workspace_detail(workspace: Workspace, role: Role) -> WorkspaceDetail:
    return WorkspaceDetail(
        **_workspace(workspace, role.value),
        members=workspace.memberships.count(),
        actions=sorted(allowed_actions(role)),
    )


def _workspace(workspace: Workspace, role: str) -> dict[str, Any]:
    return {
        "slug": workspace.slug,
        "name": workspace.name,
        "personal": workspace.is_personal,
        "role": role,
        "created_at": workspace.created_at,
    }


def member(record: Membership) -> Member:
    return Member.model_validate(
        {
            "user": record.user_id,
            "username": record.user.username,
            "role": record.role,
            "since": record.created_at,
        }
    )


def invitation(record: Invitation) -> InvitationInfo:
    return InvitationInfo.model_validate(invitation_fields(record))


def invitation_fields(record: Invitation) -> dict[str, Any]:
    return {
        "id": record.pk,
        "email": record.email,
        "role": record.role,
        "state": record.state.value,
        "invited_by": record.invited_by.username if record.invited_by else None,
        "accepted_by": record.accepted_by.username if record.accepted_by else None,
        "created_at": record.created_at,
        "expires_at": record.expires_at,
    }


def email_address(text: str) -> str:
    """Raises ProblemError for what is no address; nothing is one that hands over a link."""
    if text:
        try:
            validate_email(text)
        except ValidationError:
            raise ProblemError(400, "invalid", f"email: {text!r} is no mail address") from None
    return text


def token(record: ApiToken) -> TokenInfo:
    return TokenInfo.model_validate(token_fields(record))


def token_fields(record: ApiToken) -> dict[str, Any]:
    return {
        "id": record.pk,
        "name": record.name,
        "prefix": record.prefix,
        "user": record.user.username,
        "workspace": record.workspace.slug if record.workspace else None,
        "scopes": record.scopes,
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "revoked_at": record.revoked_at,
        "last_used_at": record.last_used_at,
    }


def browser_session(record: BrowserSession, current: str | None) -> SessionInfo:
    return SessionInfo(
        id=record.pk,
        current=record.session_key == current,
        agent=record.agent,
        address=record.address,
        signed_in_at=record.signed_in_at,
        last_seen_at=record.last_seen_at,
    )


def usage_report(uses: Sequence[QuotaUse]) -> UsageReport:
    return UsageReport(
        month=month_of(timezone.now()),
        quotas=[
            QuotaUseInfo.model_validate(
                {
                    "kind": use.kind.value,
                    "of": use.of,
                    "used": use.used,
                    "limit": use.limit,
                    "remaining": use.remaining,
                    "resets_at": use.resets_at,
                }
            )
            for use in uses
        ],
    )


def quota_settings(wanted: Iterable[Setting]) -> QuotaSettings:
    return QuotaSettings(
        quotas=[
            QuotaSetting.model_validate({"kind": it.kind.value, "member": it.user_id, "limit": it.limit})
            for it in wanted
        ]
    )


def settings_wanted(request: QuotaSettings) -> list[Setting]:
    return [Setting(QuotaKind(it.kind), it.member, it.limit) for it in request.quotas]


def audit_item(entry: AuditEntry) -> AuditItem:
    return AuditItem(
        id=entry.pk,
        at=entry.created_at,
        actor=entry.actor_name,
        token_prefix=entry.token_prefix,
        action=entry.action,
        denied=entry.denied,
        object_kind=entry.object_kind,
        object_id=entry.object_id,
        object_title=entry.object_title,
        detail=entry.detail,
        address=entry.address,
        request_id=entry.request_id,
    )


def audit_csv(entries: Iterable[AuditEntry]) -> Iterator[str]:
    """Line by line, the names of the columns first."""
    yield ",".join(_CSV) + "\r\n"
    for entry in entries:
        item = audit_item(entry)
        values = {**item.model_dump(mode="json"), "detail": json.dumps(item.detail, sort_keys=True)}
        line = io.StringIO()
        csv.writer(line).writerow([_inert(str(values[name])) for name in _CSV])
        yield line.getvalue()


def _inert(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text

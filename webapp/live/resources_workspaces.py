"""What REST answers and accepts about workspaces and accounts, as frozen data; see `resources`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from sandbox.types import Data

RoleName = Literal["viewer", "author", "reviewer", "maintainer", "admin"]
ScopeName = Literal["read", "runs:write", "evaluations:write", "reviews:write", "workspace:admin"]
QuotaName = Literal["runs_at_once", "gpu_seconds", "model_tokens"]
InvitationState = Literal["open", "accepted", "revoked", "expired"]

Days = Annotated[int, Field(ge=1, le=366)]
ShortText = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")]


class WorkspaceSummary(Data):
    slug: str  # its name in addresses and in `workspace` parameters
    name: str
    personal: bool  # a user's own, which stays theirs alone
    role: RoleName  # yours
    created_at: datetime


class WorkspaceDetail(WorkspaceSummary):
    """The answer's ETag is its version: send it as If-Match with a change of the settings."""

    members: int
    actions: list[str]  # what your role may do to anything here: "run.create", "member.edit"


class WorkspaceList(Data):
    results: list[WorkspaceSummary]  # your own first


class WorkspaceCreate(Data):
    slug: str = Field(max_length=64)  # small letters, digits and hyphens
    name: str = Field(max_length=200)


class WorkspaceEdit(Data):
    """What is absent stays."""

    slug: str | None = Field(default=None, max_length=64)
    name: str | None = Field(default=None, max_length=200)


class Member(Data):
    user: int  # the user's number, which addresses the member
    username: str
    role: RoleName
    since: datetime


class MemberList(Data):
    results: list[Member]


class MemberEdit(Data):
    role: RoleName


class InvitationInfo(Data):
    id: UUID
    email: str  # where it was sent; empty for a link that is handed over
    role: RoleName
    state: InvitationState
    invited_by: str | None
    accepted_by: str | None
    created_at: datetime
    expires_at: datetime


class InvitationList(Data):
    results: list[InvitationInfo]


class InvitationCreate(Data):
    """Sent to `email`, where the server can send mail; else the answer has a link to hand over."""

    role: RoleName
    email: str = Field(default="", max_length=254)
    days: Days = 7  # until it expires


class InvitationCreated(InvitationInfo):
    mail: Literal["sent", "not_configured", "failed", "no_address"]
    link: str | None  # this once; None when it was sent by mail


class InvitationAccept(Data):
    token: str = Field(max_length=200)  # the last part of the link


class TokenInfo(Data):
    id: UUID
    name: str
    prefix: str  # how the token begins
    user: str
    workspace: str | None  # the only one it acts in; None: all of its user's
    scopes: list[ScopeName]
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None  # to the minute


class TokenList(Data):
    results: list[TokenInfo]


class TokenCreate(Data):
    name: ShortText
    scopes: list[ScopeName] = Field(min_length=1, max_length=20)
    workspace: str | None = None  # absent: all of yours
    days: Days = 90  # until it expires


class TokenCreated(TokenInfo):
    token: str  # this once


class SessionInfo(Data):
    """A browser that is signed in as you."""

    id: UUID
    current: bool  # the one that asks
    agent: str  # what it says it is
    address: str  # where it was seen last
    signed_in_at: datetime
    last_seen_at: datetime  # to the minute


class SessionList(Data):
    results: list[SessionInfo]


class AuditItem(Data):
    id: int
    at: datetime
    actor: str  # user name; empty for what nobody asked for
    token_prefix: str  # of the API token; empty: by browser
    action: str
    denied: bool
    object_kind: str
    object_id: str
    object_title: str
    detail: dict[str, object]
    address: str
    request_id: str


class AuditPage(Data):
    """One page, newest first."""

    results: list[AuditItem]
    next: str | None
    previous: str | None


class QuotaUseInfo(Data):
    kind: QuotaName
    of: Literal["workspace", "member", "user"]  # as a whole; yours in it; yours over all workspaces
    used: float
    limit: int | None  # None: no limit
    remaining: float | None
    resets_at: datetime | None  # None: as runs end


class UsageReport(Data):
    month: datetime  # its beginning, UTC
    quotas: list[QuotaUseInfo]


class QuotaSetting(Data):
    kind: QuotaName
    member: int | None = None  # the user's number; absent: the workspace as a whole
    limit: int = Field(ge=0, le=2**62)


class QuotaSettings(Data):
    """What the workspace's admins set. A limit of the server that is lower holds all the same."""

    quotas: list[QuotaSetting] = Field(max_length=3000)

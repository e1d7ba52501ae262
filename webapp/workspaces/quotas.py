"""Quotas: what is used, what the limits are, and that nobody gets over them. The lowest that applies holds.

There are four: the server's for a workspace and for a user (over all workspaces), which come from the
environment or, for one of them, from the server's admin; and a workspace's own, for itself and for a member
in it, which its admins set.

Where the numbers come from: an app that does work says by `counted` how to count what is open or was used
(runs at once, tokens of language models); what nobody counts is added up by `usage_add` (GPU seconds).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q, Sum
from django.utils import timezone

from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.workspaces import audit
from webapp.workspaces.models import Membership, Quota, QuotaKind, Usage, Workspace, month_of
from webapp.workspaces.services import version_advance

#: Whose limit: the workspace's as a whole, the user's in it, the user's over all workspaces.
Of = Literal["workspace", "member", "user"]

#: How much a workspace (None: any) and a user (None: anybody) use: now, or since a time.
Count = Callable[[Workspace | None, User | None, datetime], float]
_counts: dict[QuotaKind, list[Count]] = {kind: [] for kind in QuotaKind}


def counted(kind: QuotaKind, count: Count) -> None:
    """From an app's `ready`: this is a part of what is used."""
    _counts[kind].append(count)


_WORDS = {
    QuotaKind.RUNS_AT_ONCE: "unfinished runs",
    QuotaKind.GPU_SECONDS: "seconds on a GPU this month",
    QuotaKind.MODEL_TOKENS: "tokens of language models this month",
}
_OF = {"workspace": "The workspace has", "member": "You have in this workspace", "user": "You have"}


@dataclass(frozen=True)
class QuotaUse:
    """A limit, and how much of it is used."""

    kind: QuotaKind
    of: Of
    used: float
    limit: int | None  # None: no limit
    resets_at: datetime | None  # None: when a run ends

    @property
    def remaining(self) -> float | None:
        return None if self.limit is None else max(0.0, self.limit - self.used)


@dataclass(frozen=True)
class Setting:
    """A limit that a workspace's admins set, of the workspace or of one member."""

    kind: QuotaKind
    user_id: int | None
    limit: int


def quota_uses(*, user: User, workspace: Workspace, kinds: Iterable[QuotaKind] = QuotaKind) -> list[QuotaUse]:
    """All that apply to what the user does in the workspace."""
    wanted = list(kinds)
    rows = list(Quota.objects.filter(Q(workspace=workspace) | Q(workspace=None, user=user.pk)))
    uses = []
    for kind in wanted:
        for of in ("workspace", "member", "user"):
            limit = _limit(rows, kind, of, user)
            if of == "member" and limit is None:
                continue
            where = None if of == "user" else workspace
            who = None if of == "workspace" else user
            uses.append(QuotaUse(kind, of, _used(kind, where, who), limit, _resets_at(kind)))
    return uses


def quota_check(*, user: User, workspace: Workspace, kinds: Sequence[QuotaKind]) -> list[QuotaUse]:
    """Before work begins. Raises ProblemError 429 where nothing remains.

    In a transaction: locks the user and the workspace, so that of two at once only one gets the last place.
    """
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
    uses = quota_uses(user=user, workspace=workspace, kinds=kinds)
    for use in uses:
        if use.remaining is not None and use.remaining <= 0:
            raise _exceeded(use, uses)
    return uses


def remaining(*, user: User, workspace: Workspace, kind: QuotaKind) -> int | None:
    """What may still be used, for work that can be told to stop there; None: no limit."""
    left = [use.remaining for use in quota_uses(user=user, workspace=workspace, kinds=[kind])]
    return min((math.floor(it) for it in left if it is not None), default=None)


def headers(uses: Sequence[QuotaUse]) -> dict[str, str]:
    """RateLimit and RateLimit-Policy, as draft-ietf-httpapi-ratelimit-headers-10 writes them."""
    policies, states = [], []
    for use in uses:
        if use.limit is None or use.remaining is None:
            continue
        name = f'"{use.kind.value}-{use.of}"'
        policies.append(f"{name};q={use.limit}")
        reset = "" if use.resets_at is None else f";t={_seconds_until(use.resets_at)}"
        states.append(f"{name};r={math.floor(use.remaining)}{reset}")
    return {"RateLimit-Policy": ", ".join(policies), "RateLimit": ", ".join(states)} if policies else {}


def usage_add(*, workspace_id: int, user_id: int, kind: QuotaKind, amount: float) -> None:
    """Adds to this month's account, in the transaction that stores what was used."""
    month = month_of(timezone.now()).date()
    row = Usage.objects.filter(workspace=workspace_id, user=user_id, kind=kind, month=month)
    if row.update(amount=F("amount") + amount):
        return
    try:
        with transaction.atomic():
            Usage.objects.create(
                workspace_id=workspace_id, user_id=user_id, kind=kind, month=month, amount=amount
            )
    except IntegrityError:  # the month's first, twice in the same moment
        row.update(amount=F("amount") + amount)


def settings_of(workspace: Workspace) -> list[Setting]:
    """What the workspace's admins have set."""
    rows = Quota.objects.filter(workspace=workspace, by_server=False).order_by("kind", "user")
    return [Setting(QuotaKind(row.kind), row.user_id, row.limit) for row in rows]


def settings_replace(*, user: User, workspace: Workspace, version: int, wanted: Sequence[Setting]) -> None:
    """Sets exactly these. Raises ProblemError for no member, for twice the same, 412 when changed."""
    keys = [(it.kind, it.user_id) for it in wanted]
    if len(set(keys)) < len(keys):
        raise ProblemError(400, "invalid", "quotas: the same limit is there twice")
    members = set(Membership.objects.filter(workspace=workspace).values_list("user", flat=True))
    if strangers := {it.user_id for it in wanted if it.user_id is not None} - members:
        raise ProblemError(400, "invalid", f"quotas: user {min(strangers)} is no member of the workspace")
    with transaction.atomic():
        version_advance(workspace=workspace, version=version)
        Quota.objects.filter(workspace=workspace, by_server=False).delete()
        Quota.objects.bulk_create(
            Quota(workspace=workspace, user_id=it.user_id, kind=it.kind, limit=it.limit) for it in wanted
        )
        detail = {"quotas": [[it.kind.value, it.user_id, it.limit] for it in wanted]}
        audit.record("quota.edit", actor=user, workspace=workspace, thing=workspace, detail=detail)
    workspace.refresh_from_db()


def _limit(rows: Sequence[Quota], kind: QuotaKind, of: Of, user: User) -> int | None:
    """The lowest of those that apply: the server's (a row of its own before the default), the admins'."""
    of_whom = [
        row
        for row in rows
        if row.kind == kind
        and (row.workspace_id is None) == (of == "user")
        and row.user_id == (None if of == "workspace" else user.pk)
    ]
    default = None if of == "member" else settings.QUOTAS[of][kind.value]
    servers = next((row.limit for row in of_whom if row.by_server), default)
    limits = [servers, *(row.limit for row in of_whom if not row.by_server)]
    return min((limit for limit in limits if limit is not None), default=None)


def _used(kind: QuotaKind, workspace: Workspace | None, user: User | None) -> float:
    month = month_of(timezone.now())
    used = sum(count(workspace, user, month) for count in _counts[kind])
    rows = Usage.objects.filter(kind=kind, month=month.date())
    if workspace is not None:
        rows = rows.filter(workspace=workspace)
    if user is not None:
        rows = rows.filter(user=user.pk)
    return used + (rows.aggregate(total=Sum("amount"))["total"] or 0.0)


def _resets_at(kind: QuotaKind) -> datetime | None:
    if kind == QuotaKind.RUNS_AT_ONCE:
        return None
    return month_of(month_of(timezone.now()) + timedelta(days=32))


def _exceeded(use: QuotaUse, uses: Sequence[QuotaUse]) -> ProblemError:
    if use.resets_at is None:
        slug, wait = "too-many-runs", 10
        todo = "Wait for one to end, or stop one."
    else:
        slug, wait = "quota-exceeded", _seconds_until(use.resets_at)
        todo = f"It starts anew on {use.resets_at:%Y-%m-%d} (UTC)."
    if use.of != "user":
        todo += " An admin of the workspace can change its quotas."
    used = math.floor(use.used)
    detail = f"{_OF[use.of]} {used} {_WORDS[use.kind]}; the limit is {use.limit}. {todo}"
    return ProblemError(429, slug, detail, headers={"Retry-After": str(wait), **headers(uses)})


def _seconds_until(at: datetime) -> int:
    return max(1, math.ceil((at - timezone.now()).total_seconds()))

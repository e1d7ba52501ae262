"""Browsers that are signed in: seen, listed, signed out."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from uuid import UUID

from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone

from webapp.accounts.models import BrowserSession, User
from webapp.accounts.selectors import signed_in
from webapp.workspaces import audit

SEEN_SECONDS = 60


class SeenMiddleware:
    """Notes, once a minute, where and when a signed-in browser was seen. After the view: it may sign in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # Only where the view looked at the session at all: nothing is read for the sake of this.
        if request.session.accessed:
            session_seen(request)
        return response


def session_seen(request: HttpRequest) -> None:
    """Notes it, unless that was done within the last minute, or nobody is signed in."""
    key = request.session.session_key
    if not key or not request.user.is_authenticated or not cache.add(f"seen:{key}", True, SEEN_SECONDS):
        return
    BrowserSession.objects.update_or_create(
        session_key=key,
        defaults={
            "user": signed_in(request.user),
            "agent": request.META.get("HTTP_USER_AGENT", "")[:300].replace("\x00", ""),
            "address": request.META.get("REMOTE_ADDR", "")[:64],
            "last_seen_at": timezone.now(),
        },
    )


def sessions_of(user: User) -> list[BrowserSession]:
    """Those that still hold, the one seen last first. Forgets those that do not."""
    alive = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    mine = BrowserSession.objects.filter(user=user.pk)
    mine.exclude(session_key__in=alive).delete()
    return list(mine.order_by("-last_seen_at", "-signed_in_at"))


def session_of(user: User, session_id: UUID | str) -> BrowserSession:
    """Raises Http404."""
    found = BrowserSession.objects.filter(user=user.pk, pk=session_id).first()
    if found is None:
        raise Http404
    return found


def session_end(*, user: User, session: BrowserSession) -> None:
    """Signs the browser out: at its next request, and on its websockets within seconds."""
    store = import_module(settings.SESSION_ENGINE).SessionStore
    with transaction.atomic():
        store().delete(session.session_key)
        detail = {"agent": session.agent, "address": session.address}
        audit.record("session.end", actor=user, workspace=None, thing=session, detail=detail)
        session.delete()
    cache.delete(f"seen:{session.session_key}")


def sessions_end_others(*, user: User, current: str | None) -> int:
    """Signs out all but this one. Returns how many."""
    others = [it for it in sessions_of(user) if it.session_key != current]
    for session in others:
        session_end(user=user, session=session)
    return len(others)

"""The plain pages: one's account, and an invitation to accept."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from webapp.accounts.models import User
from webapp.accounts.selectors import oidc_connected, signed_in
from webapp.common.bodies import parsed
from webapp.common.errors import ProblemError
from webapp.live.resources_workspaces import TokenCreate
from webapp.workspaces import invitations, selectors, sessions, tokens
from webapp.workspaces.roles import Scope


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Workspaces, browsers that are signed in, API tokens."""
    user = signed_in(request.user)
    sessions.session_seen(request)
    context: dict[str, object] = {}
    status = 200
    if request.method == "POST":
        try:
            made = _account_change(request, user)
        except ProblemError as problem:
            context["wrong"], status = problem.detail, problem.status
        else:
            if made is None:
                return redirect("account")
            context["made"] = made  # shown in this answer, and never again
    context |= {
        "memberships": selectors.memberships_visible_to(user),
        "sessions": sessions.sessions_of(user),
        "current": request.session.session_key,
        "tokens": selectors.tokens_of(user)[:200],
        "scopes": Scope.values,
        "oidc": settings.OIDC if settings.OIDC["issuer"] else None,
        "connected": oidc_connected(user),
    }
    return render(request, "account.html", context, status=status)


def _account_change(request: HttpRequest, user: User) -> str | None:
    """Does what the form's button says; the token, where one was made. Raises ProblemError, Http404."""
    form = request.POST
    try:
        match form.get("do"):
            case "session-end":
                session = sessions.session_of(user, form["id"])
                sessions.session_end(user=user, session=session)
            case "sessions-end":
                sessions.sessions_end_others(user=user, current=request.session.session_key)
            case "token-revoke":
                tokens.token_revoke(user=user, token=selectors.token_of(user, form["id"]))
            case "token-create":
                return _token_made(request, user)
            case _:
                raise ProblemError(400, "invalid", "This form has no such button.")
    except (KeyError, ValidationError):
        raise Http404 from None
    return None


def _token_made(request: HttpRequest, user: User) -> str:
    slug = request.POST.get("workspace") or None
    days = request.POST.get("days", "")
    wanted = parsed(
        TokenCreate,
        {
            "name": request.POST.get("name", "").strip(),
            "scopes": request.POST.getlist("scopes"),
            "workspace": slug,
            "days": int(days) if days.isdecimal() else days,
        },
    )
    _, text = tokens.token_create(
        user=user,
        name=wanted.name,
        scopes=[Scope(scope) for scope in wanted.scopes],
        workspace=None if slug is None else selectors.workspace_visible_to(user, slug),
        lifetime=timedelta(days=wanted.days),
    )
    return text


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Shows who invites to what; only the button accepts, so that a preview of the link uses nothing up."""
    user = signed_in(request.user)
    if request.method == "POST":
        try:
            invitations.invitation_accept(user=user, token=token)
        except ProblemError as problem:
            context = {"title": "Not accepted", "message": problem.detail}
            return render(request, "message.html", context, status=problem.status)
        return redirect("account")
    found = invitations.invitation_find(token)
    if found is None:
        message = "This invitation was used already, taken back, or is too old. Ask for a new one."
        return render(request, "message.html", {"title": "No invitation", "message": message}, status=410)
    return render(request, "invitation.html", {"invitation": found})

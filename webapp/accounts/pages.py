"""Signing in and out."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from webapp.accounts import services, throttle


class SignIn(LoginView):
    """By name and password; slowed down after repeated failures."""

    template_name = "sign_in.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(oidc=settings.OIDC if settings.OIDC["issuer"] else None, **kwargs)

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        key = throttle.key(request)
        if throttle.is_blocked(key):
            message = "Too many failed attempts. Wait five minutes, or use a sign-in link."
            context = {"title": "Too many attempts", "message": message}
            blocked = render(request, "message.html", context, status=429)
            blocked["Retry-After"] = str(throttle.SECONDS)
            return blocked
        response = super().post(request, *args, **kwargs)
        if response.status_code == 200:
            throttle.failed(key)
        return response


class SignOut(LogoutView):
    next_page = "sign-in"


# Not HEAD: what previews links must not use one up.
@never_cache
@require_GET
def enter(request: HttpRequest, token: str) -> HttpResponse:
    user = services.sign_in_link_use(token)
    if user is None:
        if request.user.is_authenticated:
            return redirect("ide")
        message = (
            "This link was used already or is too old. `kernelwright serve` prints a new one when it starts."
        )
        return render(request, "message.html", {"title": "Link not valid", "message": message}, status=410)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("ide")


def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """The admin's own form would not slow down guessing. Who is signed in and sent here is not staff."""
    if request.user.is_authenticated:
        raise PermissionDenied
    return redirect_to_login(request.GET.get("next", "/admin/"))


sign_in = require_http_methods(["GET", "POST"])(SignIn.as_view())
sign_out = require_http_methods(["POST"])(SignOut.as_view())

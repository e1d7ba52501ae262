"""Session cookies for the API, with CSRF checks, answering 401 (not 403) to those who are not signed in."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request


class SessionAuthentication(authentication.SessionAuthentication):
    def authenticate_header(self, request: Request) -> str:
        return "Session"


def still_signed_in(request: Request) -> Any:
    """Who sent this request, as the session or the token stands now; None when that is over.

    For responses that go on for a long time.
    """
    authenticator = request.successful_authenticator
    if authenticator is None:
        return None
    if isinstance(authenticator, SessionAuthentication):
        store = import_module(settings.SESSION_ENGINE).SessionStore
        session = store(request._request.session.session_key)
        asked = HttpRequest()
        asked.session = session
        user = get_user(asked)
        return user if user.is_authenticated else None
    try:
        found = authenticator.authenticate(request)
    except AuthenticationFailed:
        return None
    return found[0] if found else None


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The same, in the OpenAPI document."""

    target_class = SessionAuthentication
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}

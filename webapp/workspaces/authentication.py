"""API tokens: `Authorization: Bearer kw_...`, in REST and on websockets. No cookie, hence no CSRF check."""

from __future__ import annotations

from typing import Any

from channels.db import database_sync_to_async
from django.contrib.auth.models import AnonymousUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from webapp.accounts.models import User
from webapp.workspaces.models import ApiToken
from webapp.workspaces.tokens import token_user

_KEYWORD = "bearer"


class TokenAuthentication(authentication.BaseAuthentication):
    """Whoever sends a token acts by it, also where a cookie comes along."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        text = bearer_of(request.META.get("HTTP_AUTHORIZATION", ""))
        if text is None:
            return None
        user = token_user(text)
        if user is None or user.token is None:
            raise AuthenticationFailed("This token is not known, has ended, or was revoked. Make a new one.")
        return user, user.token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="kernelwright"'


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The same, in the OpenAPI document."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "kw_..."}


class TokenOrBrowser:
    """Websockets: a handshake with a bearer token goes to `by_token`, every other to `by_browser`.

    A page cannot set that header, so where it came from need not be asked; cookies beside it do not count.
    """

    def __init__(self, by_token: Any, by_browser: Any) -> None:
        self.by_token = by_token
        self.by_browser = by_browser

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        text = bearer_of(headers.get(b"authorization", ""))
        if text is None:
            return await self.by_browser(scope, receive, send)
        user = await database_sync_to_async(token_user)(text)
        return await self.by_token({**scope, "user": user or AnonymousUser(), "bearer": text}, receive, send)


def bearer_of(header: str) -> str | None:
    """The token of an Authorization header; None where it is of another kind."""
    keyword, _, text = header.strip().partition(" ")
    return text.strip() if keyword.lower() == _KEYWORD else None

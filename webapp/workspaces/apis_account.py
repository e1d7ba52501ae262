"""REST of one's own account: API tokens and browsers that are signed in; and of members' tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.accounts.selectors import signed_in
from webapp.common.bodies import parsed
from webapp.live import resources_workspaces as resources
from webapp.workspaces import selectors, serializers, sessions, tokens
from webapp.workspaces.apis import DENIED, NOT_FOUND, PROBLEM, workspace_for
from webapp.workspaces.roles import Scope

TAGS = ["account"]


class TokensApi(APIView):
    actions: ClassVar = {"GET": "account.view", "POST": "account.edit"}

    @extend_schema(operation_id="tokens_list", tags=TAGS, responses=resources.TokenList)
    def get(self, request: Request) -> Response:
        """Your API tokens, also those that have ended, newest first."""
        found = selectors.tokens_of(signed_in(request.user))[:200]
        return Response(resources.TokenList(results=[serializers.token(it) for it in found]))

    @extend_schema(
        operation_id="tokens_create",
        tags=TAGS,
        request=resources.TokenCreate,
        responses={201: resources.TokenCreated, 400: PROBLEM, 409: PROBLEM, **DENIED, **NOT_FOUND},
    )
    def post(self, request: Request) -> Response:
        """Makes an API token. It is in this answer, this once. Not by a token: sign in with a browser."""
        wanted = parsed(resources.TokenCreate, request.data)
        user = signed_in(request.user)
        bound = None
        if wanted.workspace is not None:
            bound = selectors.workspace_visible_to(user, wanted.workspace)
        record, text = tokens.token_create(
            user=user,
            name=wanted.name,
            scopes=[Scope(scope) for scope in wanted.scopes],
            workspace=bound,
            lifetime=timedelta(days=wanted.days),
        )
        created = resources.TokenCreated(**serializers.token_fields(record), token=text)
        return Response(created, status=201, headers={"Cache-Control": "no-store"})


class TokenApi(APIView):
    actions: ClassVar = {"DELETE": "account.edit"}

    @extend_schema(operation_id="tokens_revoke", tags=TAGS, responses={204: None, **DENIED, **NOT_FOUND})
    def delete(self, request: Request, token_id: UUID) -> Response:
        """Revokes one of your tokens, at once and for good."""
        user = signed_in(request.user)
        tokens.token_revoke(user=user, token=selectors.token_of(user, token_id))
        return Response(status=204)


class MemberTokensApi(APIView):
    actions: ClassVar = {"GET": "token.view"}

    @extend_schema(
        operation_id="member_tokens_list",
        tags=["workspaces"],
        responses={200: resources.TokenList, **DENIED, **NOT_FOUND},
    )
    def get(self, request: Request, slug: str) -> Response:
        """The members' tokens that act in the workspace."""
        found = selectors.tokens_in(workspace_for(request, slug, "token.view"))
        return Response(resources.TokenList(results=[serializers.token(it) for it in found]))


class MemberTokenApi(APIView):
    actions: ClassVar = {"DELETE": "token.revoke"}

    @extend_schema(
        operation_id="member_tokens_revoke",
        tags=["workspaces"],
        responses={204: None, **DENIED, **NOT_FOUND},
    )
    def delete(self, request: Request, slug: str, token_id: UUID) -> Response:
        """Keeps a member's token out of the workspace. One that is for this workspace alone ends by that."""
        workspace = workspace_for(request, slug, "token.revoke")
        token = selectors.token_in(workspace, token_id)
        tokens.token_bar(user=signed_in(request.user), token=token, workspace=workspace)
        return Response(status=204)


class SessionsApi(APIView):
    actions: ClassVar = {"GET": "account.edit", "DELETE": "account.edit"}

    @extend_schema(operation_id="sessions_list", tags=TAGS, responses={200: resources.SessionList, **DENIED})
    def get(self, request: Request) -> Response:
        """The browsers that are signed in as you, the one seen last first."""
        sessions.session_seen(request._request)
        found = sessions.sessions_of(signed_in(request.user))
        current = request._request.session.session_key
        return Response(
            resources.SessionList(results=[serializers.browser_session(it, current) for it in found])
        )

    @extend_schema(operation_id="sessions_end_others", tags=TAGS, responses={204: None, **DENIED})
    def delete(self, request: Request) -> Response:
        """Signs all other browsers out."""
        user = signed_in(request.user)
        sessions.sessions_end_others(user=user, current=request._request.session.session_key)
        return Response(status=204)


class BrowserSessionApi(APIView):
    actions: ClassVar = {"DELETE": "account.edit"}

    @extend_schema(operation_id="sessions_end", tags=TAGS, responses={204: None, **DENIED, **NOT_FOUND})
    def delete(self, request: Request, session_id: UUID) -> Response:
        """Signs one browser out."""
        user = signed_in(request.user)
        sessions.session_end(user=user, session=sessions.session_of(user, session_id))
        return Response(status=204)

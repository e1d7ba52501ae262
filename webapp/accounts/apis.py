"""REST of accounts."""

from __future__ import annotations

from typing import ClassVar

from django.middleware.csrf import get_token
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.accounts import selectors
from webapp.live.resources import Session


class SessionApi(APIView):
    actions: ClassVar = {"GET": "account.view"}

    @extend_schema(responses=Session, operation_id="session_get", tags=["session"])
    def get(self, request: Request) -> Response:
        """Who is signed in, what a run can be asked for, and the CSRF token."""
        return Response(selectors.session_of(selectors.signed_in(request.user), get_token(request._request)))

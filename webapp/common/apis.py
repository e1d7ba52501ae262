"""REST of the server itself."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from pydantic import RootModel
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from sandbox.doctor import examine
from webapp.common import services_found
from webapp.live.resources import Finding


class FindingList(RootModel[list[Finding]]):
    """What was found, in the order in which it is needed."""


class DoctorApi(APIView):
    actions: ClassVar = {"GET": "server.view"}

    @extend_schema(operation_id="doctor", tags=["session"], responses=FindingList)
    def get(self, request: Request) -> Response:
        """What this server's machine can do, and how to get what is missing. Takes a second or two."""
        machine = [
            Finding(name=it.name, ok=it.ok, detail=it.detail, how=it.how, needed=it.needed)
            for it in examine()
        ]
        return Response(FindingList([*machine, *services_found.services()]))

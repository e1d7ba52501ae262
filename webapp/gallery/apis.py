"""REST of the gallery."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import OpenApiResponse, extend_schema
from pydantic import RootModel
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.common.errors import ProblemError
from webapp.gallery import selectors
from webapp.live.resources import ExampleItem, ProblemDocument, Recording


class ExampleList(RootModel[tuple[ExampleItem, ...]]):
    """The gallery, in its order."""


class ExamplesApi(APIView):
    actions: ClassVar = {"GET": "server.view"}

    @extend_schema(operation_id="examples_list", tags=["gallery"], responses=ExampleList)
    def get(self, request: Request) -> Response:
        """The examples with their sources, and the recordings."""
        return Response(ExampleList(selectors.gallery()))


class RecordingApi(APIView):
    actions: ClassVar = {"GET": "server.view"}

    @extend_schema(
        operation_id="recordings_get",
        tags=["gallery"],
        responses={200: Recording, 404: OpenApiResponse(ProblemDocument, description="No such recording")},
    )
    def get(self, request: Request, name: str) -> Response:
        """A recorded run: its events with the seconds at which they happened."""
        found = selectors.recording(name)
        if found is None:
            raise ProblemError(404, "not-found", f"There is no recording {name!r}.")
        return Response(found)

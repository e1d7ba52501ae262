"""REST of cards, and of the artifacts that workers hand each other."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.cards import artifacts, serializers
from webapp.common.errors import ProblemError
from webapp.live.resources import DeviceList


class DevicesApi(APIView):
    actions: ClassVar = {"GET": "server.view"}

    @extend_schema(operation_id="devices_list", tags=["devices"], responses=DeviceList)
    def get(self, request: Request) -> Response:
        """The cards of GPU workers: where they are, whether they are in service, what waits for them."""
        return Response(serializers.device_list())


class Bytes(BaseParser):
    """As they are, at most `ARTIFACT_BYTES_MAX`."""

    media_type = "application/octet-stream"

    def parse(  # type: ignore[override]
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> bytes:
        limit = settings.ARTIFACT_BYTES_MAX
        body: bytes = stream.read(limit + 1)
        if len(body) > limit:
            raise ProblemError(413, "too-large", f"The artifact is larger than {limit} bytes.")
        return body


class WorkersApi(APIView):
    """For workers alone, who show the token that the server was given."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    parser_classes = (Bytes,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if len(settings.WORKER_TOKEN) < settings.WORKER_TOKEN_CHARACTERS_MIN:
            least = settings.WORKER_TOKEN_CHARACTERS_MIN
            detail = f"No worker is let in: KERNELWRIGHT_WORKER_TOKEN has to have {least} characters here."
            raise ProblemError(403, "no-workers", detail)
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not hmac.compare_digest(token.encode(), settings.WORKER_TOKEN.encode()):
            detail = "That is not this server's worker token (KERNELWRIGHT_WORKER_TOKEN)."
            raise ProblemError(401, "wrong-token", detail, headers={"WWW-Authenticate": "Bearer"})


@extend_schema(exclude=True)
class ArtifactsApi(WorkersApi):
    def get(self, request: Request) -> HttpResponse:
        """Whether the token is right, and artifacts can be kept."""
        try:
            artifacts.FolderStore().check()
        except OSError as error:
            raise ProblemError(503, "no-artifacts", f"Artifacts cannot be kept: {error}") from error
        return HttpResponse(status=204)


@extend_schema(exclude=True)
class ArtifactApi(WorkersApi):
    def get(self, request: Request, name: str) -> HttpResponse:
        try:
            data = artifacts.FolderStore().get(name)
        except artifacts.ArtifactProblem as problem:
            raise ProblemError(404, "no-artifact", str(problem)) from problem
        return HttpResponse(data, content_type="application/octet-stream")

    def put(self, request: Request, name: str) -> HttpResponse:
        data = request.data
        if not isinstance(data, bytes) or artifacts.hash_of(data) != name:
            raise ProblemError(400, "wrong-hash", "The bytes do not have the hash by which they are named.")
        artifacts.FolderStore().put(data)
        return HttpResponse(status=204)

    def delete(self, request: Request, name: str) -> HttpResponse:
        artifacts.FolderStore().delete(name)
        return HttpResponse(status=204)

"""What every response of the API says: its version, and how much may be asked still."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from webapp.common import limits

API_VERSION = "1"


class ApiHeadersMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith("/api/"):
            response["API-Version"] = API_VERSION
            limits.set_headers(request, response)
        return response

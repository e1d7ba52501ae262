"""The plain pages: what is shown when the IDE cannot be."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.common.errors import ProblemError
from webapp.common.problems import CONTENT_TYPE, problem_document


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _page(request, 404, "Not found", "There is nothing at this address that you may see.")


def server_error(request: HttpRequest) -> HttpResponse:
    return _page(
        request, 500, "Internal error", "Kernelwright's own fault. The server's log has the details."
    )


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _page(request, 403, "Not allowed", "You may not see or do this.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _page(
        request, 403, "Not allowed", "This form did not come from this site's own page. Load it again."
    )


def _page(request: HttpRequest, status: int, title: str, message: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        problem = ProblemError(status, title.lower().replace(" ", "-"), message)
        document = problem_document(problem, request.path).model_dump_json()
        return HttpResponse(document, status=status, content_type=CONTENT_TYPE)
    return render(
        request, "message.html", {"title": title, "message": message, "status": status}, status=status
    )

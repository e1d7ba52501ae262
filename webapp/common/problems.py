"""Errors of the API as RFC 9457 problem documents, one shape for all of them."""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from webapp.common.errors import ProblemError
from webapp.common.requests import current_request_id
from webapp.live.resources import ProblemDocument

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
_TITLES = {
    400: "Bad request",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Gone",
    412: "Changed meanwhile",
    413: "Too large",
    415: "Unsupported media type",
    428: "If-Match missing",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available",
}


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's hook. Keeps the headers that DRF sets (Retry-After, WWW-Authenticate, Allow)."""
    set_rollback()
    path = context["request"].path
    problem = _as_problem(error)
    if problem.status >= 500:
        logger.error("%s failed", path, exc_info=error)
    return Response(
        problem_document(problem, path),
        status=problem.status,
        headers=problem.headers,
        content_type=CONTENT_TYPE,
    )


def problem_document(problem: ProblemError, path: str) -> ProblemDocument:
    return ProblemDocument(
        type=f"/problems/{problem.slug}",
        title=_TITLES.get(problem.status, "Error"),
        status=problem.status,
        detail=problem.detail,
        instance=path,
        request_id=current_request_id(),
        errors=problem.errors,
        code_moved=problem.code_moved,
    )


def _as_problem(error: Exception) -> ProblemError:
    match error:
        case ProblemError():
            return error
        case Http404():
            return ProblemError(404, "not-found", "There is nothing at this address that you may see.")
        case PermissionDenied():
            return ProblemError(403, "not-allowed", str(error) or "You may not do this.")
        case DjangoValidationError():
            return ProblemError(400, "invalid", "; ".join(error.messages))
        case exceptions.NotAuthenticated():
            return ProblemError(401, "not-signed-in", "Sign in first.", headers=_headers(error))
        case exceptions.APIException():
            slug = str(error.default_code).replace("_", "-")
            return ProblemError(error.status_code, slug, _sentence(error.detail), headers=_headers(error))
    return ProblemError(
        500, "internal", "Kernelwright's own fault. The server's log has the details under the request id."
    )


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers: dict[str, str] = {}
    if authenticate := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = authenticate
    if (wait := getattr(error, "wait", None)) is not None:
        headers["Retry-After"] = str(int(wait))
    return headers


def _sentence(detail: Any) -> str:
    if isinstance(detail, list):
        return "; ".join(_sentence(item) for item in detail)
    if isinstance(detail, dict):
        return "; ".join(f"{key}: {_sentence(value)}" for key, value in detail.items())
    return str(detail)

"""One id for a request, in its response, in its problem document and in the log."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

_current: ContextVar[str] = ContextVar("request_id", default="-")
_address: ContextVar[str] = ContextVar("address", default="")
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")


def current_request_id() -> str:
    """The id of the request being answered; "-" outside of one."""
    return _current.get()


def current_address() -> str:
    """Where the request being answered came from; empty outside of one."""
    return _address.get()


class RequestIdMiddleware:
    """Takes the caller's X-Request-ID where it is harmless, else makes one; answers with it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        request_id = given if _ACCEPTABLE.fullmatch(given) else uuid.uuid4().hex
        token = _current.set(request_id)
        came_from = _address.set(request.META.get("REMOTE_ADDR", "")[:64])
        try:
            response = self.get_response(request)
        finally:
            _current.reset(token)
            _address.reset(came_from)
        response["X-Request-ID"] = request_id
        return response


class RequestIdFilter(logging.Filter):
    """Lets a log format say {request_id}."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = current_request_id()
        return True

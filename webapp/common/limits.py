"""How much of the API one user may use in a minute, told in the headers of every response.

RateLimit and RateLimit-Policy as in the IETF's draft "RateLimit header fields for HTTP". Counted in Django's
cache: per server process, unless that is shared.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 60
CREATING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class PerMinute(BaseThrottle):
    """A window of a minute for a user (an address, for those not signed in); writing has one of its own."""

    def __init__(self) -> None:
        self._wait = 0.0

    def allow_request(self, request: Request, view: Any) -> bool:
        writes = request.method in CREATING
        policy = "write" if writes else "read"
        quota = settings.API_WRITES_PER_MINUTE if writes else settings.API_READS_PER_MINUTE
        who = f"user:{request.user.pk}" if request.user.is_authenticated else self.get_ident(request)
        now = time.time()
        window = int(now) // WINDOW_SECONDS
        self._wait = (window + 1) * WINDOW_SECONDS - now
        used = _counted(f"api:{policy}:{who}:{window}")
        state = (policy, quota, max(0, quota - used), int(self._wait) + 1)
        request._request.rate_limit = state  # type: ignore[attr-defined]
        return used <= quota

    def wait(self) -> float:
        return self._wait + 1


def _counted(key: str) -> int:
    """One more; a cache that is away must not take the API with it."""
    try:
        cache.add(key, 0, 2 * WINDOW_SECONDS)
        return int(cache.incr(key))
    except ValueError:  # gone between the two lines
        return 1
    except Exception as error:
        logger.warning("requests cannot be counted: %s", error)
        return 0


def set_headers(request: HttpRequest, response: HttpResponse) -> None:
    state: Any = getattr(request, "rate_limit", None)
    if state is not None:
        policy, quota, left, seconds = state
        # A view may have told of other limits already.
        for name, item in (
            ("RateLimit-Policy", f'"{policy}";q={quota};w={WINDOW_SECONDS}'),
            ("RateLimit", f'"{policy}";r={left};t={seconds}'),
        ):
            response[name] = f"{response[name]}, {item}" if name in response else item

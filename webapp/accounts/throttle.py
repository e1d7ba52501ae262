"""Guessing passwords is slow: ten failures from one address for one name, then five minutes' wait."""

from __future__ import annotations

import hashlib

from django.core.cache import cache
from django.http import HttpRequest

FAILURES_MAX = 10
SECONDS = 300


def key(request: HttpRequest) -> str:
    who = f"{request.META.get('REMOTE_ADDR', '')}\n{request.POST.get('username', '').lower()}"
    return "sign-in:" + hashlib.sha256(who.encode()).hexdigest()


def is_blocked(key: str) -> bool:
    return int(cache.get(key, 0)) >= FAILURES_MAX


def failed(key: str) -> None:
    cache.add(key, 0, SECONDS)
    try:
        cache.incr(key)
    except ValueError:  # expired between the two lines
        cache.add(key, 1, SECONDS)

"""The services this server is configured with, and whether they answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.db import DatabaseError, connection

from webapp.celery import app
from webapp.live.resources import Finding

_SECONDS = 3
_MANIFEST = Path(__file__).resolve().parents[1] / "static/ide/.vite/manifest.json"


#: What apps above this one want looked at too (`AppConfig.ready`).
further: list[Callable[[], list[Finding]]] = []


def services() -> list[Finding]:
    """All of them, in the order in which a server needs them."""
    found = [database(), channel_layer(), task_queue(), front_end()]
    return [*found, *(finding for look in further for finding in look())]


def database() -> Finding:
    values = connection.settings_dict
    where = values["NAME"] if connection.vendor == "sqlite" else f"{values['NAME']} on {values['HOST']}"
    name = f"{connection.display_name}, {where}"
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        reason = str(error).strip().splitlines()[0]
        return _missing("database", f"the database ({name}) cannot be reached: {reason}", "DATABASE_URL")
    return _found("database", name)


def channel_layer() -> Finding:
    if not settings.CHANNEL_URL:
        return _found("channel_layer", "in this process")
    where = _place(settings.CHANNEL_URL)
    try:
        with redis.Redis.from_url(
            settings.CHANNEL_URL, socket_connect_timeout=_SECONDS, socket_timeout=_SECONDS
        ) as client:
            client.ping()
    except (redis.RedisError, ValueError, OSError) as error:
        return _missing(
            "channel_layer", f"the channel layer ({where}) cannot be reached: {error}", "CHANNEL_URL"
        )
    return _found("channel_layer", where)


def task_queue() -> Finding:
    if settings.WORKER_IN_PROCESS:
        return _found("task_queue", f"in this process, {settings.WORKER_CONCURRENCY} at once")
    where = _place(settings.BROKER_URL)
    try:
        with app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=_SECONDS)
    except Exception as error:  # every kind of broker has errors of its own
        return _missing("task_queue", f"the broker ({where}) cannot be reached: {error}", "BROKER_URL")
    return _found("task_queue", f"{where}; workers are started by: celery -A webapp worker")


def front_end() -> Finding:
    if _MANIFEST.exists():
        return _found("front_end", "built")
    return Finding(name="front_end", ok=False, detail="not built", how="make setup", needed=False)


def _place(address: str) -> str:
    """An address without its password."""
    parts = urlsplit(address)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _found(name: str, detail: str) -> Finding:
    return Finding(name=name, ok=True, detail=detail, how="", needed=True)


def _missing(name: str, detail: str, variable: str) -> Finding:
    return Finding(name=name, ok=False, detail=detail, how=f"See KERNELWRIGHT_{variable}", needed=True)

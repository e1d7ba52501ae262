"""Whether what the environment names answers (database, broker, channel layer); whether the page is built."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from sandbox.doctor import Finding
from sandbox.home import home
from webapp import environment

MANIFEST = Path(__file__).resolve().parents[1] / "static/ide/.vite/manifest.json"
_PORTS = {"postgresql": 5432, "postgres": 5432, "redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671}
_SECONDS = 2.0


def examine_services() -> list[Finding]:
    """A service that is not configured is done by this process, and says so."""
    return [
        _service("database", "KERNELWRIGHT_DATABASE_URL", f"SQLite, {home() / 'kernelwright.sqlite3'}"),
        _service("broker", "KERNELWRIGHT_BROKER_URL", "none set: the server works on runs itself"),
        _service("channel_layer", "KERNELWRIGHT_CHANNEL_URL", "none set: in this process"),
        _language_model(),
        _front_end(),
    ]


def _service(name: str, variable: str, default: str) -> Finding:
    url = environment.url(variable)
    if not url or url.startswith("sqlite"):
        return Finding(name, True, default, "")
    parts = urlsplit(url)
    shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))  # without user and password
    port = parts.port or _PORTS.get(parts.scheme)
    if parts.hostname is None or port is None:
        return Finding(name, True, f"{shown}, on this machine", "")
    try:
        socket.create_connection((parts.hostname, port), timeout=_SECONDS).close()
    except OSError as error:
        return Finding(name, False, f"{shown} does not answer: {error}", f"start it, or change {variable}")
    return Finding(name, True, f"{shown} answers", "")


def _language_model() -> Finding:
    if os.environ.get("KERNELWRIGHT_LLM_BASE_URL"):
        detail = "an endpoint is set, but this version has no language-model policy"
    else:
        detail = "no endpoint set; the built-in policy needs none"
    return Finding("llm", False, detail, "", needed=False)


def _front_end() -> Finding:
    if MANIFEST.exists():
        return Finding("front_end", True, "built", "")
    return Finding("front_end", False, "not built", "make setup", needed=False)

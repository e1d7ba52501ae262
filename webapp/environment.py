"""What the environment says, read once, with every default in one place. No Django in here."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit


def secret_key(folder: Path) -> str:
    """The server's signing key: made once, readable by its owner only."""
    if configured := os.environ.get("KERNELWRIGHT_SECRET_KEY"):
        return configured
    path = folder / "secret_key"
    if not path.exists():
        # Whole or not at all: a worker that starts beside the server must not read half a key.
        descriptor, making = tempfile.mkstemp(prefix=".secret_key-", dir=folder)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(64))
        with contextlib.suppress(FileExistsError):
            os.link(making, path)
        os.unlink(making)
    return path.read_text().strip()


def url(name: str) -> str:
    """A service's address; empty means in this process."""
    return os.environ.get(name, "").strip()


def words(name: str, default: str = "") -> list[str]:
    """A list separated by commas."""
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def flag(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() in ("1", "true", "yes", "on")


def limit(name: str, default: int | None) -> int | None:
    """A number from 0 up; "none" is no limit."""
    text = os.environ.get(name, "").strip().lower()
    if not text:
        return default
    if text == "none":
        return None
    if not text.isdecimal():
        raise ValueError(f"{name}={text!r} is no limit: give a number from 0 up, or none")
    return int(text)


@dataclass(frozen=True)
class Mail:
    """A mail server."""

    server: tuple[str, int, str, str]  # host, port, user, password
    security: str  # "tls" from the start, "starttls", "none"


#: Scheme of a mail server's address: its security and usual port.
_MAIL = {"smtps": ("tls", 465), "smtp": ("starttls", 587), "smtp+plain": ("none", 25)}


def mail(name: str) -> Mail | None:
    """The mail server of an address, smtp://user:password@host:587; None when there is none."""
    text = url(name)
    if not text:
        return None
    parts = urlsplit(text)
    if parts.scheme not in _MAIL or not parts.hostname:
        raise ValueError(
            f"{name} is no mail server: give smtp://user:password@host, smtps:// or smtp+plain://"
        )
    security, port = _MAIL[parts.scheme]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Mail((parts.hostname, parts.port or port, user, password), security)


def issuer(name: str) -> str:
    """The address of an identity provider; plain HTTP only on this machine. Empty: there is none."""
    text = url(name).rstrip("/")
    parts = urlsplit(text)
    loopback = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if text and not (parts.scheme == "https" or (parts.scheme == "http" and loopback)):
        raise ValueError(f"{name}={text!r} is no issuer: give the provider's https:// address")
    return text

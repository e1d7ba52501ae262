"""What the environment says, read once, with every default in one place. No Django in here."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path


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

"""Secrets that are shown once: what is kept of them is a hash, which finds them again."""

from __future__ import annotations

import hashlib
import secrets


def secret() -> str:
    """256 random bits, in characters that an address takes."""
    return secrets.token_urlsafe(32)


def secret_hash(text: str) -> str:
    """SHA-256, 64 hexadecimal digits. No salt and no slow hash: nobody guesses 256 random bits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

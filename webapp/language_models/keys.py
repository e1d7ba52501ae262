"""Keys of language models at rest: encrypted, and of no use for another address than their own.

AES-GCM with a key derived from Django's SECRET_KEY; the address (scheme, host, port) is authenticated with
it. What was sealed under an earlier SECRET_KEY is opened by KERNELWRIGHT_SECRET_KEY_FALLBACKS.
"""

from __future__ import annotations

import base64
import os
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

_NONCE_BYTES = 12
_PORTS = {"http": 80, "https": 443}


class KeyUnreadable(Exception):
    """The key was sealed under another SECRET_KEY, or for another address."""


def place(base_url: str) -> str:
    """What a key is bound to: scheme, host and port."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{parts.port or _PORTS.get(parts.scheme, 0)}"


def seal(key: str, base_url: str) -> str:
    nonce = os.urandom(_NONCE_BYTES)
    sealed = _cipher(settings.SECRET_KEY).encrypt(nonce, key.encode(), place(base_url).encode())
    return base64.b64encode(nonce + sealed).decode()


def unseal(sealed: str, base_url: str) -> str:
    """Raises KeyUnreadable."""
    raw = base64.b64decode(sealed)
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        try:
            opened = _cipher(secret).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], place(base_url).encode())
        except InvalidTag:
            continue
        return opened.decode()
    raise KeyUnreadable("its key cannot be read: the server's secret key has changed; enter the key again")


def _cipher(secret: str) -> AESGCM:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"kernelwright language model keys")
    return AESGCM(derived.derive(secret.encode()))

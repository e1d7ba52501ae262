"""Bulk that workers hand each other: bytes named by their SHA-256.

The server keeps them in a folder (Django's storage "artifacts"). Workers on other machines reach them over
HTTP, with a token; those that share the server's data folder need neither. Whoever reads checks the hash, so
that nothing in between need be trusted with more than losing them.
"""

from __future__ import annotations

import hashlib
import re
from typing import Protocol

import httpx2
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import storages

_NAME = re.compile(r"[0-9a-f]{64}")
_SECONDS = 60.0
_RETRIES = 3


class ArtifactProblem(Exception):
    """An artifact could not be kept or had. The message says why."""


class Store(Protocol):
    def put(self, data: bytes) -> str:
        """Its name, the hash. Raises ArtifactProblem."""

    def get(self, name: str) -> bytes:
        """What has this hash, checked. Raises ArtifactProblem."""

    def delete(self, name: str) -> None:
        """Does nothing when it is gone. Raises ArtifactProblem."""

    def check(self) -> None:
        """Raises ArtifactProblem where nothing could be kept."""


def store() -> Store:
    """Where this process keeps them: over HTTP where KERNELWRIGHT_SERVER_URL says so."""
    if settings.SERVER_URL:
        return HttpStore(settings.SERVER_URL, settings.WORKER_TOKEN)
    return FolderStore()


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class FolderStore:
    """The server's own."""

    def __init__(self) -> None:
        self._storage = storages["artifacts"]

    def put(self, data: bytes) -> str:
        if len(data) > settings.ARTIFACT_BYTES_MAX:
            raise ArtifactProblem(f"{len(data)} bytes; at most {settings.ARTIFACT_BYTES_MAX} are taken")
        name = hash_of(data)
        if not self._storage.exists(name):
            self._storage.save(name, ContentFile(data))
        return name

    def get(self, name: str) -> bytes:
        try:
            with self._storage.open(_checked(name)) as file:
                data: bytes = file.read()
        except FileNotFoundError:
            raise ArtifactProblem(f"there is no artifact {name[:12]}") from None
        return _matching(data, name)

    def delete(self, name: str) -> None:
        self._storage.delete(_checked(name))

    def check(self) -> None:
        self.delete(self.put(b"check"))


class HttpStore:
    """The server's, from another machine."""

    def __init__(self, server: str, token: str) -> None:
        if not token:
            message = "KERNELWRIGHT_SERVER_URL is set but KERNELWRIGHT_WORKER_TOKEN is not: set the server's"
            raise ArtifactProblem(message)
        self._server = server.rstrip("/")
        self._http = httpx2.Client(
            headers={"Authorization": f"Bearer {token}"},
            timeout=_SECONDS,
            transport=httpx2.HTTPTransport(retries=_RETRIES),
        )

    def put(self, data: bytes) -> str:
        name = hash_of(data)
        self._ask("PUT", f"/{name}", data)
        return name

    def get(self, name: str) -> bytes:
        return _matching(self._ask("GET", f"/{_checked(name)}"), name)

    def delete(self, name: str) -> None:
        self._ask("DELETE", f"/{_checked(name)}")

    def check(self) -> None:
        self._ask("GET", "")

    def _ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        headers = {} if data is None else {"Content-Type": "application/octet-stream"}
        try:
            answer = self._http.request(
                method, f"{self._server}/api/v1/artifacts{path}", content=data, headers=headers
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ArtifactProblem(f"the server {self._server} cannot be reached: {error}") from error
        if answer.is_success:
            return answer.content
        raise ArtifactProblem(f"the server {self._server} refuses: {_reason(answer)}")


def _reason(answer: httpx2.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}"


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ArtifactProblem(f"{name[:80]!r} is not the name of an artifact")
    return name


def _matching(data: bytes, name: str) -> bytes:
    if hash_of(data) != name:
        raise ArtifactProblem(f"artifact {name[:12]} is not what its name says: its bytes have changed")
    return data

"""Sends the client's requests: what may be sent again is, what went wrong is said in the server's words.

A GET, and a POST with an Idempotency-Key, is sent again when the connection breaks or the server says when to
come back (429, 503), up to three times.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, cast

import httpx2

from webapp.client.operations import Operations, ProblemDocument

ATTEMPTS = 3
SECONDS = 30.0
#: Between two beats of a stream; the server sends one every fifteen seconds.
SILENCE_SECONDS = 45.0
WAIT_MAX_SECONDS = 60.0
_AGAIN = frozenset({429, 503})


class ApiProblem(Exception):
    """The server's answer is a problem. `document` is RFC 9457 data where the server sent such."""

    def __init__(self, status: int, detail: str, document: ProblemDocument | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.document = document


class Unreachable(Exception):
    """There is no server at this address, or the connection broke too often."""


class Client(Operations):
    """All operations, and a run's frames as they come."""

    def __init__(
        self,
        server: str,
        *,
        token: str,
        attempts: int = ATTEMPTS,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.server = server.rstrip("/")
        self._attempts = attempts
        self._http = httpx2.Client(
            base_url=self.server,
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=SECONDS,
            follow_redirects=False,
            transport=transport,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Any:
        """Raises ApiProblem, Unreachable."""
        known = {name: str(value) for name, value in (headers or {}).items() if value is not None}
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        repeatable = method == "GET" or "Idempotency-Key" in known
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts or not repeatable
            try:
                response = self._http.request(
                    method,
                    path,
                    params=asked,
                    headers={**known, "Accept": "application/json, */*;q=0.5"},
                    json=body if body is not None else None,
                )
            except httpx2.TransportError as error:
                if last:
                    raise self._unreachable(error) from error
                time.sleep(0.5 * attempt)
                continue
            if response.status_code in _AGAIN and not last:
                time.sleep(_wait(response))
                continue
            return _content(response)
        raise AssertionError("a last attempt answers or raises")

    def run_frames(
        self, run_id: str, *, after_seq: int = 0, lost: Callable[[str], None] = lambda _: None
    ) -> Iterator[dict[str, Any]]:
        """A run's frames (`event`, `live`, `delta`), until its `run_ended`.

        After a broken connection goes on where it was; `lost` is told why, each time. Raises ApiProblem, and
        Unreachable when the server stays away.
        """
        failures = 0
        while True:
            try:
                for frame in self._frames(run_id, after_seq):
                    failures = 0
                    if frame["type"] == "reset":
                        after_seq = 0
                        continue
                    if frame["type"] == "event":
                        if frame["seq"] <= after_seq:
                            continue
                        after_seq = frame["seq"]
                    yield frame
                    if frame["type"] == "event" and frame["event"]["type"] == "run_ended":
                        return
            except httpx2.TransportError as error:
                failures += 1
                if failures > 10:
                    raise self._unreachable(error) from error
                lost(str(error) or type(error).__name__)
            except ApiProblem as problem:
                if problem.status not in _AGAIN and problem.status < 500:
                    raise
                failures += 1
                if failures > 10:
                    raise
                lost(problem.detail)
            time.sleep(min(5.0, 0.2 * 2**failures))

    def _frames(self, run_id: str, after_seq: int) -> Iterator[dict[str, Any]]:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after_seq)}
        timeout = httpx2.Timeout(SECONDS, read=SILENCE_SECONDS)
        with self._http.stream(
            "GET", f"/api/v1/runs/{run_id}/events", headers=headers, timeout=timeout
        ) as response:
            if response.status_code != 200:
                response.read()
                _content(response)
            data: list[str] = []
            for line in response.iter_lines():
                if line.startswith("data:"):
                    data.append(line[5:].removeprefix(" "))
                elif not line and data:
                    frame: dict[str, Any] = json.loads("\n".join(data))
                    data = []
                    yield frame

    def _unreachable(self, error: Exception) -> Unreachable:
        return Unreachable(f"{self.server} cannot be reached: {error or type(error).__name__}")


def new_key() -> str:
    """An Idempotency-Key: a request with it may be sent again without doing its work twice."""
    return uuid.uuid4().hex


def _content(response: httpx2.Response) -> Any:
    if response.status_code >= 400:
        raise _problem(response)
    if response.status_code >= 300:
        where = response.headers.get("location", "")
        raise ApiProblem(response.status_code, f"the server sends elsewhere: {where}")
    if not response.content:
        return None
    kind = response.headers.get("content-type", "")
    return response.json() if kind.startswith("application/json") else response.text


def _problem(response: httpx2.Response) -> ApiProblem:
    try:
        document = cast(ProblemDocument, response.json())
        return ApiProblem(response.status_code, str(document["detail"]), document)
    except (ValueError, KeyError, TypeError):
        return ApiProblem(response.status_code, f"the server answered {response.status_code}")


def _wait(response: httpx2.Response) -> float:
    text = response.headers.get("retry-after", "")
    return min(WAIT_MAX_SECONDS, float(text)) if text.isdigit() else 1.0

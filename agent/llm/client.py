"""Asking a model: one request, streamed, tried again where that may help, cancelled at once where wished.

Callers are ordinary threads. The connection lives in an event loop of this client's own, which is driven a
step at a time: between steps the caller's cancellation and deadline are looked at, and an answer that nobody
wants any more is closed in the middle.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import AsyncGenerator, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx2

from agent.llm import guard
from agent.llm.endpoint import Endpoint
from agent.llm.guard import AddressRefused, GuardedTransport, check_url
from agent.llm.wire import Answer, Assembly, BrokenStream, Request, Usage, error_text, estimated_tokens
from sandbox.cancellation import Cancellation

_Result = TypeVar("_Result")
#: How long a cancellation may go unseen while waiting for a server.
_POLL_SECONDS = 0.1
#: Worth another try: too early, too many, or the server's own trouble.
_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
#: An answer with more characters for each token that was allowed has no end.
_CHARACTERS_PER_TOKEN = 8
_MAX_EVENT_BYTES = 1 << 20
_MAX_ERROR_BYTES = 1 << 16


class EndpointFailed(Exception):
    """The model cannot be asked; the message says why and after how many attempts."""


class DeadlinePassed(Exception):
    """The caller's time was up before the answer's end."""


@dataclass(frozen=True)
class Piece:
    """New text of the answer. `thought`: not part of what it says, but what it thinks aloud."""

    text: str
    thought: bool = False


@dataclass(frozen=True)
class Waiting:
    """This attempt failed; the next begins in `seconds`. Pieces so far are void."""

    why: str
    attempt: int  # the one that failed, from 1
    of: int
    seconds: float


@dataclass
class _Failure(Exception):
    """One attempt failed."""

    why: str
    again: bool  # may another attempt help?
    wait: float | None = None  # seconds the server asked for


class ChatClient:
    """One conversation partner; one request at a time. Close it."""

    def __init__(
        self, endpoint: Endpoint, *, cancel: Cancellation, resolve: guard.Resolve = guard.resolve
    ) -> None:
        """Raises AddressRefused for a base URL of the wrong form."""
        self.endpoint = endpoint
        self.spent = Usage()  # of all attempts, failed ones included
        self._url = check_url(endpoint.base_url) + "/chat/completions"
        self._cancel = cancel
        self._resolve = resolve
        self._runner: asyncio.Runner | None = None
        self._http: httpx2.AsyncClient | None = None
        self._random = random.Random()

    def ask(self, request: Request, *, deadline: float) -> Generator[Piece | Waiting, None, Answer]:
        """Yields what comes in and returns the whole. `deadline` is of time.monotonic().

        Raises EndpointFailed, DeadlinePassed, Cancelled.
        """
        for attempt in range(1, self.endpoint.attempts + 1):
            self._pause(_paces.wait(self._url, self.endpoint.requests_per_minute), deadline)
            self._take_place(deadline)
            try:
                return (yield from self._attempt(request, attempt, deadline))
            except _Failure as failure:
                failure.why = _redacted(failure.why, self.endpoint)
                if not failure.again or attempt == self.endpoint.attempts:
                    tries = "" if attempt == 1 else f", after {attempt} attempts"
                    raise EndpointFailed(f"{failure.why}{tries}") from failure
                seconds, why = self._backoff(attempt, failure), failure.why
            finally:
                _places.leave(self._url)
            yield Waiting(why, attempt, self.endpoint.attempts, seconds)
            self._pause(seconds, deadline)
        raise AssertionError("every attempt returns or raises")

    def check_cancelled(self) -> None:
        """Raises Cancelled."""
        self._cancel.check()

    def close(self) -> None:
        if self._runner is not None:
            if self._http is not None:
                self._runner.run(self._http.aclose())
            self._runner.close()
            self._runner = self._http = None

    def _attempt(
        self, request: Request, number: int, deadline: float
    ) -> Generator[Piece | Waiting, None, Answer]:
        began, first = time.monotonic(), None
        assembly = Assembly()
        stream = self._stream(self._body(request))
        limit = min(deadline, began + self.endpoint.answer_seconds)
        try:
            while True:
                chunk = self._drive(_next(stream), limit)
                if chunk is None:
                    break
                said = assembly.add(chunk)
                if said and first is None:
                    first = time.monotonic() - began
                for text, thought in said:
                    yield Piece(text, thought)
                if assembly.size > request.answer_tokens * _CHARACTERS_PER_TOKEN:
                    assembly.finish = "cut"
                    break
        except TimeoutError:
            if time.monotonic() >= deadline:
                raise DeadlinePassed from None
            if not assembly.size:
                seconds = self.endpoint.answer_seconds
                raise _Failure(f"the model said nothing within {seconds:.0f} s", again=True) from None
            assembly.finish = "cut"
        except BrokenStream as error:
            raise _Failure(str(error), again=True) from error
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise _Failure(_transport_words(error, self.endpoint), again=True) from error
        except AddressRefused as error:
            raise _Failure(str(error), again=False) from error
        finally:
            self._drive_to_end(stream.aclose())
            usage = assembly.usage or _estimate(request, assembly)
            self.spent += usage
        return Answer(
            text=assembly.text,
            reasoning=assembly.reasoning,
            refusal=assembly.refusal,
            tool_calls=assembly.calls(),
            tokens=assembly.tokens,
            finish_reason=assembly.reason(),
            usage=usage,
            seconds=time.monotonic() - began,
            first_token_seconds=first,
            attempts=number,
        )

    async def _stream(self, body: dict[str, Any]) -> AsyncGenerator[Any]:
        """The answer's chunks, decoded. Ends where the server says that the answer does."""
        client = self._client()
        headers = {"Accept": "text/event-stream, application/json", **_credentials(self.endpoint)}
        async with client.stream("POST", self._url, json=body, headers=headers) as response:
            if response.status_code != 200:
                raise await _refusal(response)
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                yield _decoded((await _limited(response, _MAX_EVENT_BYTES)).decode(errors="replace"))
                return
            finished = False
            async for event in httpx2.EventSource(response, max_event_size=_MAX_EVENT_BYTES):
                if event.data.strip() == "[DONE]":
                    return
                chunk = _decoded(event.data)
                finished = finished or _finishes(chunk)
                yield chunk
            if not finished:
                raise BrokenStream("the answer broke off before its end")

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.endpoint.model,
            "messages": [message.wire() for message in request.messages],
            "stream": True,
            self.endpoint.token_limit_field: request.answer_tokens,
            **self.endpoint.sampling(),
        }
        if self.endpoint.usage_in_stream:
            body["stream_options"] = {"include_usage": True}
        if self.endpoint.logprobs:
            body["logprobs"] = True
        if request.tools:
            body["tools"] = list(request.tools)
        return body

    def _client(self) -> httpx2.AsyncClient:
        if self._http is None:
            self._http = _http_client(self.endpoint, self._resolve)
        return self._http

    def _drive(self, step: Coroutine[Any, Any, _Result], limit: float) -> _Result:
        """Runs one step in the event loop. Raises what it raises, Cancelled, TimeoutError at `limit`."""
        runner = self._open()
        task = runner.get_loop().create_task(step)
        while True:
            runner.run(_wait(task, min(_POLL_SECONDS, max(limit - time.monotonic(), 0.0))))
            if self._cancel.is_set or time.monotonic() >= limit:
                break
            if task.done():
                return task.result()
        task.cancel()
        runner.run(_wait(task, 5.0))
        if task.done() and not task.cancelled():
            task.exception()  # looked at, or the loop complains of it
        self._cancel.check()
        raise TimeoutError

    def _drive_to_end(self, closing: Coroutine[Any, Any, None]) -> None:
        with suppress(httpx2.TransportError, RuntimeError):
            self._open().run(closing)

    def _open(self) -> asyncio.Runner:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner

    def _backoff(self, attempt: int, failure: _Failure) -> float:
        """A random wait, so that many who failed together do not come back together, and never less than the
        server asked for. Raises EndpointFailed where it asks for more than is waited."""
        longest = self.endpoint.longest_wait_seconds
        most = min(self.endpoint.backoff_seconds * float(2 ** (attempt - 1)), longest)
        chosen = self._random.uniform(0.5, 1.0) * most
        if failure.wait is None:
            return chosen
        if failure.wait > longest:
            asked = f"the server asks to wait {failure.wait:.0f} s, longer than the {longest:.0f} s allowed"
            raise EndpointFailed(f"{failure.why}: {asked}") from failure
        return failure.wait + chosen

    def _take_place(self, deadline: float) -> None:
        """Waits for a free place. Raises Cancelled, and DeadlinePassed at the deadline."""
        while not _places.take(self._url, self.endpoint.requests_at_once, _POLL_SECONDS):
            self._cancel.check()
            if time.monotonic() >= deadline:
                raise DeadlinePassed

    def _pause(self, seconds: float, deadline: float) -> None:
        """Raises Cancelled, and DeadlinePassed at once where the wait would end after it."""
        until = time.monotonic() + seconds
        if until > deadline:
            raise DeadlinePassed
        while True:
            self._cancel.check()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _POLL_SECONDS))


def served_models(endpoint: Endpoint, *, seconds: float = 5.0) -> list[str]:
    """The names of the models that an endpoint says it serves. Raises EndpointFailed."""

    async def get() -> list[str]:
        async with _http_client(endpoint, guard.resolve) as client:
            url = f"{check_url(endpoint.base_url)}/models"
            response = await client.get(url, headers=_credentials(endpoint), timeout=seconds)
            if response.status_code != 200:
                raise await _refusal(response)
            body = _decoded(response.text)
            listed = body.get("data") if isinstance(body, dict) else None
            return [str(each["id"]) for each in listed or () if isinstance(each, dict) and "id" in each]

    try:
        with ThreadPoolExecutor(1) as pool:  # the caller's thread may have a running event loop
            return pool.submit(lambda: asyncio.run(get())).result()
    except httpx2.TransportError as error:
        raise EndpointFailed(_transport_words(error, endpoint)) from error
    except (AddressRefused, BrokenStream) as error:
        raise EndpointFailed(str(error)) from error
    except _Failure as failure:
        raise EndpointFailed(_redacted(failure.why, endpoint)) from failure


def _http_client(endpoint: Endpoint, resolve: guard.Resolve) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=GuardedTransport(
            allow_loopback=endpoint.allow_loopback, allow_private=endpoint.allow_private, resolve=resolve
        ),
        timeout=httpx2.Timeout(endpoint.silence_seconds, connect=endpoint.connect_seconds),
        trust_env=False,
        follow_redirects=False,
    )


def _redacted(words: str, endpoint: Endpoint) -> str:
    """Some servers repeat a key that they refuse."""
    key = endpoint.key.get_secret_value() if endpoint.key is not None else ""
    return words.replace(key, "(the key)") if key else words


def _credentials(endpoint: Endpoint) -> dict[str, str]:
    return {"Authorization": f"Bearer {endpoint.key.get_secret_value()}"} if endpoint.key is not None else {}


class _Paces:
    """Requests to one address are spread evenly over a minute, by all threads of this process together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}

    def wait(self, url: str, per_minute: float | None) -> float:
        """Takes the next place in the row; returns the seconds until it."""
        if per_minute is None:
            return 0.0
        with self._lock:
            now = time.monotonic()
            place = max(self._next.get(url, now), now)
            self._next[url] = place + 60.0 / per_minute
            return place - now


_paces = _Paces()


class _Places:
    """How many requests one address is asked at once, by all threads of this process together."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken: dict[str, int] = {}

    def take(self, url: str, most: int | None, seconds: float) -> bool:
        """False when there was no free place within this time."""
        with self._changed:
            if not self._changed.wait_for(lambda: most is None or self._taken.get(url, 0) < most, seconds):
                return False
            self._taken[url] = self._taken.get(url, 0) + 1
            return True

    def leave(self, url: str) -> None:
        with self._changed:
            self._taken[url] -= 1
            self._changed.notify()


_places = _Places()


def _estimate(request: Request, assembly: Assembly) -> Usage:
    """Nothing for an attempt that nothing came back from."""
    if not assembly.size:
        return Usage()
    asked = "".join(message.content for message in request.messages) + json.dumps(list(request.tools))
    return Usage(
        prompt_tokens=estimated_tokens(asked),
        completion_tokens=assembly.completion_estimate(),
        estimated=True,
    )


async def _next(stream: AsyncGenerator[Any]) -> Any:
    """The next chunk, None at the end."""
    return await anext(stream, None)


async def _wait(task: asyncio.Task[Any], seconds: float) -> None:
    await asyncio.wait({task}, timeout=seconds)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokenStream(f"a piece of the answer is not JSON: {text[:80]!r}") from error


def _finishes(chunk: Any) -> bool:
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    return any(isinstance(c, dict) and c.get("finish_reason") for c in choices or ())


async def _refusal(response: httpx2.Response) -> _Failure:
    """What a status other than 200 means."""
    status = response.status_code
    if response.is_redirect:
        return _Failure(f"HTTP {status}: redirects are not followed; give the final address", again=False)
    body = (await _limited(response, _MAX_ERROR_BYTES)).decode(errors="replace")
    try:
        words = error_text(json.loads(body))
    except (ValueError, RecursionError):
        words = error_text(body) or response.reason_phrase
    return _Failure(f"HTTP {status}: {words}", again=status in _TRY_AGAIN, wait=_asked_wait(response))


def _asked_wait(response: httpx2.Response) -> float | None:
    """Retry-After, in seconds or as a date."""
    asked = response.headers.get("retry-after")
    if asked is None:
        return None
    try:
        return max(float(asked), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(asked).timestamp() - time.time(), 0.0)
    except ValueError:
        return None


async def _limited(response: httpx2.Response, limit: int) -> bytes:
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > limit:
            break
    return body[:limit]


def _transport_words(error: Exception, endpoint: Endpoint) -> str:
    match error:
        case httpx2.ConnectTimeout():
            return f"no connection within {endpoint.connect_seconds:.0f} s"
        case httpx2.ReadTimeout():
            return f"the server was silent for {endpoint.silence_seconds:.0f} s"
        case httpx2.ConnectError():
            return f"no connection: {error}"
        case httpx2.SSEError() | httpx2.DecodingError():
            return f"the answer cannot be read: {error}"
        case _:
            return f"the connection broke: {error or type(error).__name__}"

"""A real HTTP server on loopback that speaks the chat-completions API by a script, one play a request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent.llm.endpoint import Endpoint

Play = Callable[["Handler", dict[str, Any]], None]


@dataclass
class ChatServer:
    """`requests` are the bodies as they came, `paths` and `headers` beside them."""

    plays: list[Play]
    base_url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)  # the client went away in mid-answer
    times: list[float] = field(default_factory=list)

    def endpoint(self, **settings: Any) -> Endpoint:
        usual: dict[str, Any] = {"allow_loopback": True, "backoff_seconds": 0.01, "silence_seconds": 5.0}
        return Endpoint(base_url=self.base_url, model="scripted", **{**usual, **settings})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        script = self.script
        script.requests.append(body)
        script.headers.append({name.lower(): value for name, value in self.headers.items()})
        script.paths.append(self.path)
        script.times.append(time.monotonic())
        play = script.plays.pop(0) if script.plays else status(500, "the script is at its end")
        try:
            play(self, body)
        except (BrokenPipeError, ConnectionResetError):
            script.hung_up.set()
            self.close_connection = True

    def do_GET(self) -> None:
        self.script.paths.append(self.path)
        self.script.headers.append({name.lower(): value for name, value in self.headers.items()})
        listed = {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
        self.whole(200, json.dumps(listed).encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def event(self, data: Any) -> None:
        self.chunk(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")

    def end_stream(self) -> None:
        self.chunk("")

    def whole(self, code: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def says(
    text: str,
    *,
    finish: str = "stop",
    usage: tuple[int, int] | None = (100, 20),
    size: int = 7,
    **first: Any,
) -> Play:
    """A streamed answer, `size` characters a piece. `first` are more fields of the first piece."""

    def play(handler: Handler, body: dict[str, Any]) -> None:
        handler.begin_stream()
        handler.event(delta(role="assistant", content="", **first))
        for start in range(0, len(text), size):
            handler.event(delta(content=text[start : start + size]))
        handler.event(delta(finish))
        if usage is not None:
            handler.event(
                {"choices": [], "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}}
            )
        handler.event("[DONE]")
        handler.end_stream()

    return play


def calls(*wanted: tuple[str, dict[str, Any] | str], text: str = "") -> Play:
    """An answer that calls tools; arguments come in two pieces, as servers send them."""

    def play(handler: Handler, body: dict[str, Any]) -> None:
        handler.begin_stream()
        if text:
            handler.event(delta(content=text))
        for index, (name, arguments) in enumerate(wanted):
            raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
            half = len(raw) // 2
            head = {"index": index, "id": f"c{index}", "type": "function"}
            handler.event(delta(tool_calls=[{**head, "function": {"name": name, "arguments": raw[:half]}}]))
            handler.event(delta(tool_calls=[{"index": index, "function": {"arguments": raw[half:]}}]))
        handler.event(delta("tool_calls"))
        handler.event({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}})
        handler.event("[DONE]")
        handler.end_stream()

    return play


def status(code: int, message: str, **headers: str) -> Play:
    def play(handler: Handler, body: dict[str, Any]) -> None:
        handler.whole(code, json.dumps({"error": {"message": message}}).encode(), **headers)

    return play


def whole(text: str, kind: str = "application/json") -> Play:
    """A body as it stands, not a stream."""
    return lambda handler, body: handler.whole(200, text.encode(), kind)


def raw_events(*events: str) -> Play:
    """These events and then the end of the stream, as a server that dies in the middle leaves it."""

    def play(handler: Handler, body: dict[str, Any]) -> None:
        handler.begin_stream()
        for event in events:
            handler.event(event)
        handler.end_stream()

    return play


def drops_connection(*events: str) -> Play:
    """Like raw_events, but the connection is lost."""

    def play(handler: Handler, body: dict[str, Any]) -> None:
        handler.begin_stream()
        for event in events:
            handler.event(event)
        handler.close_connection = True  # without the chunk that ends the stream

    return play


def endless(piece: str = "and so on ", pause: float = 0.0) -> Play:
    def play(handler: Handler, body: dict[str, Any]) -> None:
        handler.begin_stream()
        for _ in range(1_000_000):
            handler.event(delta(content=piece))
            time.sleep(pause)

    return play


def silent(seconds: float) -> Play:
    def play(handler: Handler, body: dict[str, Any]) -> None:
        time.sleep(seconds)
        handler.whole(500, b"too late")

    return play


@contextmanager
def serving(plays: Sequence[Play], port: int = 0) -> Iterator[ChatServer]:
    script = ChatServer(list(plays))
    server = ThreadingHTTPServer(("127.0.0.1", port), type("Scripted", (Handler,), {"script": script}))
    server.daemon_threads = True
    script.base_url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""An endpoint that takes so many requests at once is asked by no more, however many runs there are."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from chat_server import Handler, Play, says, serving

from agent.llm.client import ChatClient
from agent.llm.endpoint import Endpoint
from agent.llm.wire import Message, Request
from sandbox.cancellation import Cancellation


def ask(endpoint: Endpoint) -> None:
    with closing(ChatClient(endpoint, cancel=Cancellation())) as client:
        for _ in client.ask(Request([Message(role="user", content="x")]), deadline=time.monotonic() + 30):
            pass


def test_no_more_requests_at_once_than_are_allowed() -> None:
    lock, running, most = threading.Lock(), 0, 0

    def counted() -> Play:
        answer = says("ready")

        def play(handler: Handler, body: dict[str, Any]) -> None:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.1)
            with lock:
                running -= 1
            answer(handler, body)

        return play

    with serving([counted() for _ in range(6)]) as server, ThreadPoolExecutor(6) as pool:
        list(pool.map(ask, [server.endpoint(requests_at_once=2)] * 6))
        assert len(server.requests) == 6
    assert most == 2

"""A browser's end of a websocket, speaking ASGI to the application in this process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.test import Client

from webapp.asgi import application
from webapp.live.envelope import server_frames

HOST = "127.0.0.1:8000"
PATIENCE = 10.0  # seconds


class Socket:
    def __init__(
        self, address: str, client: Client | None, origin: str, host: str, bearer: str | None = None
    ) -> None:
        headers = [(b"host", host.encode())]
        if bearer is None:
            headers.append((b"origin", origin.encode()))
        else:  # a program, which says nothing of where it comes from
            headers.append((b"authorization", f"Bearer {bearer}".encode()))
        if client is not None:
            session = client.cookies[settings.SESSION_COOKIE_NAME].value
            headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={session}".encode()))
        scope = {
            "type": "websocket",
            "path": address.partition("?")[0],
            "query_string": address.partition("?")[2].encode(),
            "headers": headers,
            "subprotocols": [],
        }
        self.wire = ApplicationCommunicator(application, scope)

    async def connect(self) -> bool:
        """Whether the handshake was accepted."""
        await self.wire.send_input({"type": "websocket.connect"})
        return bool((await self.wire.receive_output(PATIENCE))["type"] == "websocket.accept")

    async def say(self, frame: dict[str, Any] | str) -> None:
        text = frame if isinstance(frame, str) else json.dumps(frame)
        await self.wire.send_input({"type": "websocket.receive", "text": text})

    async def hear(self) -> dict[str, Any]:
        """The next frame, which is one of those that the generated types know."""
        message = await self.wire.receive_output(PATIENCE)
        assert message["type"] == "websocket.send", message
        server_frames.validate_json(message["text"])
        frame: dict[str, Any] = json.loads(message["text"])
        return frame

    async def hear_until_live(self) -> list[dict[str, Any]]:
        """Everything up to the next `live`, which is the last."""
        frames = [await self.hear()]
        while frames[-1]["type"] != "live":
            frames.append(await self.hear())
        return frames

    async def closed_with(self) -> int:
        while (message := await self.wire.receive_output(PATIENCE))["type"] != "websocket.close":
            pass
        return int(message["code"])

    async def closed_or_not(self) -> int | None:
        """The code, when what comes next is the end; None for a frame."""
        message = await self.wire.receive_output(PATIENCE)
        return int(message["code"]) if message["type"] == "websocket.close" else None

    async def is_silent(self, seconds: float = 0.3) -> bool:
        return bool(await self.wire.receive_nothing(seconds))


@asynccontextmanager
async def socket(
    address: str,
    client: Client | None,
    *,
    origin: str = f"http://{HOST}",
    host: str = HOST,
    bearer: str | None = None,
) -> AsyncIterator[Socket]:
    it = Socket(address, client, origin, host, bearer)
    try:
        yield it
    finally:
        await it.wire.send_input({"type": "websocket.disconnect", "code": 1000})
        await it.wire.wait(PATIENCE)

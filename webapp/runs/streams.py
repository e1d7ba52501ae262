"""A run's events as server-sent events: what the websocket sends, for whoever has only HTTP.

Each message's data is a frame of `webapp.live.envelope`; its id is the event's number, so that a client that
was cut off says by Last-Event-ID what it has. Text as it is written has no id.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.http import StreamingHttpResponse
from rest_framework.renderers import BaseRenderer

from agent.events import TextDelta
from webapp.common.bodies import JsonRenderer
from webapp.live import publish
from webapp.live.envelope import DeltaFrame, LiveFrame, ResetFrame
from webapp.live.worker import stopping
from webapp.runs.models import AgentRun
from webapp.runs.selectors import events_after
from webapp.runs.serializers import event_frame

MEDIA_TYPE = "text/event-stream"
#: One message. `data` is JSON: an `EventFrame`, `LiveFrame`, `DeltaFrame` or `ResetFrame`.
MESSAGE_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": r"^\d+$"},
        "event": {"type": "string", "enum": ["event", "live", "delta", "reset"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "retry": {"type": "integer"},
    },
}
POLL_SECONDS = 1.0
#: A comment, so that proxies do not take silence for the end.
BEAT_SECONDS = 15.0
ACCESS_SECONDS = 15.0
#: A client comes back by itself; long connections pin what should be restarted.
LIFETIME_SECONDS = 900.0
RETRY_MILLISECONDS = 1000
BATCH = 200

#: Whether the client may still see the run. Asked in a thread, with the database at hand.
MayStillSee = Callable[[], bool]


class EventStreamRenderer(BaseRenderer):
    """Lets a client ask for the stream by Accept. Problems are JSON all the same."""

    media_type = MEDIA_TYPE
    format = "event-stream"
    charset = "utf-8"

    def render(self, data: Any, accepted_media_type: Any = None, renderer_context: Any = None) -> bytes:
        return JsonRenderer().render(data)


def stream(run: AgentRun, after_seq: int, may_still_see: MayStillSee) -> StreamingHttpResponse:
    """Everything after `after_seq`, then live, until the run has ended."""
    return StreamingHttpResponse(
        _messages(run.pk, run.last_seq, after_seq, may_still_see),
        content_type=f"{MEDIA_TYPE}; charset=utf-8",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


async def _messages(
    run_id: UUID, last_seq: int, after_seq: int, may_still_see: MayStillSee
) -> AsyncIterator[bytes]:
    publish.bind_loop(asyncio.get_running_loop())
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(publish.run_group(run_id), channel)
    # One receive that is never cancelled in between: some layers take that for the end.
    hint = asyncio.ensure_future(layer.receive(channel))
    began = beaten = checked = time.monotonic()
    sent, live = after_seq, False
    try:
        yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
        if sent > last_seq:  # of another run, or of a database that was put back
            sent = 0
            yield _message("reset", ResetFrame().model_dump_json())
        while True:
            while records := await database_sync_to_async(events_after)(run_id, sent, BATCH):
                live = False
                for record in records:
                    sent = record.seq
                    yield _message("event", json.dumps(event_frame(record)), record.seq)
                    if record.type == "run_ended":
                        return
            if not live:
                live = True
                yield _message("live", LiveFrame(seq=sent).model_dump_json())
            await asyncio.wait({hint}, timeout=POLL_SECONDS)
            now = time.monotonic()
            if hint.done():
                message = hint.result()
                hint = asyncio.ensure_future(layer.receive(channel))
                if message["type"] == "run.delta":
                    delta = DeltaFrame(event=TextDelta.model_validate(message["event"]))
                    yield _message("delta", delta.model_dump_json())
                elif message["type"] == "run.deleted":
                    return
            if now - beaten >= BEAT_SECONDS:
                beaten = now
                yield b": still there\n\n"
            if now - checked >= ACCESS_SECONDS:
                checked = now
                if not await database_sync_to_async(may_still_see)():
                    return
            if stopping.is_set() or now - began >= LIFETIME_SECONDS:
                return
    finally:
        hint.cancel()
        await layer.group_discard(publish.run_group(run_id), channel)


def _message(kind: str, data: str, number: int | None = None) -> bytes:
    name = "" if number is None else f"id: {number}\n"
    return f"{name}event: {kind}\ndata: {data}\n\n".encode()

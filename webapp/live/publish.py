"""Hints to whoever listens, through the channel layer: "run R has reached seq N".

A hint may get lost (channel layers drop); consumers read the database, and look there once a second anyway.
So publishing never waits and never fails its caller.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any
from uuid import UUID

from channels.layers import get_channel_layer

from agent.events import TextDelta

logger = logging.getLogger(__name__)

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run_group(run_id: UUID) -> str:
    return f"run.{run_id.hex}"


def runs_group(workspace_id: int) -> str:
    return f"runs.{workspace_id}"


def review_group(request_id: UUID) -> str:
    return f"review.{request_id.hex}"


def bind_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Publish from this loop from now on. Consumers bind the server's, which the in-memory layer lives in."""
    global _loop
    _loop = loop


def run_reached(run_id: UUID, seq: int) -> None:
    _send(run_group(run_id), {"type": "run.reached", "seq": seq})


def run_changed(workspace_id: int, run_id: UUID) -> None:
    """For lists: the run is new, or what a list shows of it is."""
    _send(runs_group(workspace_id), {"type": "run.changed", "run": str(run_id)})


def run_deleted(run_id: UUID) -> None:
    _send(run_group(run_id), {"type": "run.deleted"})


def run_delta(run_id: UUID, event: TextDelta) -> None:
    _send(run_group(run_id), {"type": "run.delta", "event": event.model_dump(mode="json")})


def review_changed(request_id: UUID, version: int) -> None:
    _send(review_group(request_id), {"type": "review.changed", "version": version})


def _send(group: str, message: dict[str, Any]) -> None:
    sending = _group_send(group, message)
    try:
        asyncio.run_coroutine_threadsafe(sending, _running_loop())
    except RuntimeError as error:  # the loop was closed in this very moment
        sending.close()
        logger.warning("a hint to %s was lost: %s", group, error)


async def _group_send(group: str, message: dict[str, Any]) -> None:
    try:
        await get_channel_layer().group_send(group, message)
    except Exception as error:
        logger.warning("a hint to %s was lost: %s", group, error)


def _running_loop() -> asyncio.AbstractEventLoop:
    """The bound loop; in a process that serves nobody (a worker), a loop in a thread of its own.

    One long-lived loop, since connections of the Redis layer belong to the loop that opened them.
    """
    global _loop
    with _lock:
        if _loop is None or not _loop.is_running():
            _loop = asyncio.new_event_loop()
            runs = threading.Event()
            _loop.call_soon(runs.set)
            threading.Thread(target=_loop.run_forever, name="publish", daemon=True).start()
            runs.wait()
        return _loop

"""What others may want to know of: said once here, heard by whoever has signed up (webhooks).

Listeners are called in the transaction of the change, so that what they store is stored with it or not at
all. They must not wait for anything: sending is for later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: Takes the workspace's key, the event's type ("review_request.merged") and its payload: plain JSON data.
Listener = Callable[[int, str, Mapping[str, Any]], None]

_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Call it in an AppConfig's ready(). The same listener is kept once."""
    if listener not in _listeners:
        _listeners.append(listener)


def announce(workspace_id: int, event_type: str, payload: Mapping[str, Any]) -> None:
    """Tells every listener. What a listener raises undoes the change: there is no change without its word."""
    for listener in tuple(_listeners):
        listener(workspace_id, event_type, payload)

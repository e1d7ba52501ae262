"""Cancelling a judgement from another thread: one flag that everything waiting looks at."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sandbox.errors import Cancelled


class Cancellation:
    """Set once, by anyone. `probe` lets a caller plug in an outside flag (a database row); it is asked at
    most every `interval` seconds, by whoever waits on a jailed process."""

    def __init__(self, probe: Callable[[], bool] | None = None, interval: float = 0.25) -> None:
        self._event = threading.Event()
        self._probe = probe
        self._interval = interval
        self._next_probe = 0.0

    def set(self) -> None:
        self._event.set()

    @property
    def is_set(self) -> bool:
        if self._event.is_set():
            return True
        if self._probe is not None and time.monotonic() >= self._next_probe:
            self._next_probe = time.monotonic() + self._interval
            if self._probe():
                self._event.set()
        return self._event.is_set()

    def check(self) -> None:
        """Raises Cancelled when set."""
        if self.is_set:
            raise Cancelled

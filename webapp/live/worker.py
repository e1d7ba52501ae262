"""Which process works on a run, whether it still lives, and whether this one is about to stop."""

from __future__ import annotations

import os
import socket
import threading
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from django.utils import timezone

#: Set once this process should stop: runs in flight end as interrupted.
stopping = threading.Event()


class Busy:
    """How many runs this process works on; somebody may wait until there are none."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def wait_idle(self, seconds: float) -> bool:
        """False when there are still some after this time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count == 0, seconds)


busy = Busy()

HEARTBEAT_SECONDS = 5.0
#: A worker on another machine is given up after this much silence.
SILENCE_MAX = timedelta(seconds=60)


@cache
def worker_name() -> str:
    """This process, unmistakably: host, process id, and when it started (process ids are used again)."""
    return f"{socket.gethostname()}/{os.getpid()}/{_start_time(os.getpid())}"


def worker_is_alive(name: str, heartbeat_at: datetime | None) -> bool:
    """On this host the process is looked at, elsewhere the heartbeat."""
    host, _, rest = name.partition("/")
    pid, _, started = rest.partition("/")
    if host == socket.gethostname() and pid.isdigit():
        return _start_time(int(pid)) == started
    return heartbeat_at is not None and timezone.now() - heartbeat_at < SILENCE_MAX


def _start_time(pid: int) -> str:
    """In clock ticks since boot, as /proc says; empty when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()  # the command's name before it may hold anything
    return "" if fields[0] == "Z" else fields[19]

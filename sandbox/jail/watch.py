"""Watching a running jail: how much memory its processes hold, and how its output is kept."""

from __future__ import annotations

import codecs
import contextlib
import os
import resource
from collections import deque
from collections.abc import Callable

_PAGE = resource.getpagesize()
#: A stream may say this many times its kept size before the jail is ended for it.
_FLOOD = 64


def resident_bytes(init: int) -> int:
    """Resident memory of the process `init` (as seen from here) and of all its descendants.

    Everything in a process-id namespace descends from its first process, orphans included. Pages shared
    between processes count once for each: an upper bound.
    """
    pages, waiting = 0, [init]
    while waiting:
        pid = waiting.pop()
        # A process may end while it is looked at.
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/statm") as statm:
                pages += int(statm.read().split()[1])
            waiting += _children(pid)
    return pages * _PAGE


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as children:
            found += map(int, children.read().split())
    return found


class Kept:
    """One output stream: everything is drained, its head and its tail are kept."""

    def __init__(self, limit: int, on_output: Callable[[str], None] | None) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._dropped = 0
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.total = 0

    @property
    def flooded(self) -> bool:
        return self.total > 2 * self._half * _FLOOD

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        space = self._half - len(self._head)
        self._head += chunk[:space]
        if chunk[space:]:
            self._add_tail(chunk[space:])
        if self._on_output is not None and self.total - len(chunk) < 2 * self._half:
            text = self._decoder.decode(chunk)
            if text:
                self._on_output(text)

    def _add_tail(self, chunk: bytes) -> None:
        self._tail.append(chunk)
        self._tail_bytes += len(chunk)
        while self._tail_bytes - len(self._tail[0]) >= self._half:
            gone = len(self._tail.popleft())
            self._tail_bytes -= gone
            self._dropped += gone

    def content(self) -> bytes:
        tail = b"".join(self._tail)
        dropped = self._dropped + max(len(tail) - self._half, 0)
        if not dropped:
            return bytes(self._head) + tail
        return b"%s\n[... %d bytes left out ...]\n%s" % (self._head, dropped, tail[-self._half :])

"""Compiler processes that are there before they are needed.

Starting Python and loading LLVM takes longer than lowering most kernels. So one jailed compiler process,
with everything loaded, waits for its one request; it is used once, and the next one is started meanwhile.
"""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import threading
from collections.abc import Iterator

from sandbox import jail
from sandbox.cancellation import Cancellation
from sandbox.limits import LOWER


class Lowerer:
    """One compiler process: it takes one request and is over."""

    def __init__(self) -> None:
        self._product = os.memfd_create("lowered", os.MFD_CLOEXEC)
        try:
            self._jail = jail.Started(
                jail.python_argv("sandbox.emulator.lowering.compile", str(self._product)),
                limits=LOWER,
                stdin=None,
                pass_fds=[self._product],
                python=True,
            )
        except BaseException:
            os.close(self._product)
            raise

    def lower(self, request: bytes, cancel: Cancellation) -> tuple[jail.Finished, bytes]:
        """How it ended, and what it made: nothing unless it ended well."""
        self._jail.send(request)
        finished = self._jail.finish(cancel)
        size = os.fstat(self._product).st_size if finished.ok else 0
        return finished, os.pread(self._product, size, 0)

    def close(self) -> None:
        self._jail.close()
        os.close(self._product)


@contextlib.contextmanager
def lowerer() -> Iterator[Lowerer]:
    """The one that waits, or a new one. Raises JailUnavailable."""
    made = _keeper(os.getpid()).take()
    try:
        yield made
    finally:
        made.close()


def warm() -> None:
    """Something will be lowered soon."""
    _keeper(os.getpid()).wish()


@functools.cache
def _keeper(process: int) -> _Keeper:
    """Of this process: a child that was forked has none of its parent's threads."""
    return _Keeper()


class _Keeper:
    """Starts compiler processes, all from one thread: a jail dies with the thread that started it."""

    def __init__(self) -> None:
        self._wishes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._ready: queue.SimpleQueue[Lowerer | BaseException] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0  # processes that are ready or being started, for nobody yet
        threading.Thread(target=self._start, name="lowerers", daemon=True).start()

    def wish(self) -> None:
        """Sees to it that one is waiting."""
        with self._lock:
            if self._waiting < 1:
                self._waiting += 1
                self._wishes.put(None)

    def take(self) -> Lowerer:
        with self._lock:
            if self._waiting < 1:
                self._wishes.put(None)
            else:
                self._waiting -= 1
        made = self._ready.get()
        if isinstance(made, BaseException):
            raise made
        # Who lowers one kernel will lower the next.
        self.wish()
        return made

    def _start(self) -> None:
        while True:
            self._wishes.get()
            try:
                self._ready.put(Lowerer())
            except BaseException as problem:  # raised where somebody waits for it
                self._ready.put(problem)

"""The jailed process that holds one user's module: asked over a pair of pipes, kept while it may be needed.

Importing torch costs a second or more, and tracing leaves the module built, so the process that traced it
also computes the expected outputs. It ends by itself when nobody asks, and is started again when somebody
does.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
import weakref
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from sandbox import jail
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, TaskProblem
from sandbox.home import scratch
from sandbox.jail.results import NotAResult
from sandbox.limits import Limits
from sandbox.tasks.pytorch.messages import (
    ARRAYS,
    DRAWS,
    FILE,
    REPLY,
    REQUEST,
    ExpectedRequest,
    LoadRequest,
    Reply,
)
from sandbox.types import Problem

_REPLY_BYTES = 1 << 24
_POLL_SECONDS = 0.05
_LIFETIME_SECONDS = 3600.0
_INBOX, _OUTBOX = Path("/run/task"), Path("/run/reply")  # inside; only the second can be written to


class ModuleProcess:
    """Answers one request at a time. Each has the limits' wall time to itself."""

    def __init__(self, source: str, limits: Limits, filename: str = FILE) -> None:
        """`filename` is what the user calls the file: problems name it."""
        self._source = source
        self._filename = filename
        self._limits = limits
        self._lock = threading.Lock()
        self._running: list[_Running] = []  # one or none
        weakref.finalize(self, _end_all, self._running)  # also when this interpreter ends

    def ask(
        self, request: LoadRequest | ExpectedRequest, draws: bytes, cancel: Cancellation
    ) -> tuple[Reply, bytes]:
        """The reply and its arrays. Raises TaskProblem (also for what the process died of), Cancelled."""
        with self._lock:
            try:
                try:
                    return self._started().ask(request, draws, cancel)
                except _EndedByItself:  # perhaps in the moment of asking, having been idle for too long
                    return self._started().ask(request, draws, cancel)
            except _EndedByItself:
                _end_all(self._running)
                raise self._named(broken("exit code 0")) from None
            except TaskProblem as error:
                _end_all(self._running)
                raise self._named(error) from None
            except BaseException:
                _end_all(self._running)
                raise

    def _started(self) -> _Running:
        if self._running and not self._running[0].alive:
            _end_all(self._running)
        if not self._running:
            self._running.append(_Running(self._source, self._limits))
        return self._running[0]

    def _named(self, error: TaskProblem) -> TaskProblem:
        named = {"file": self._filename} if error.problem.file == FILE else {}
        return TaskProblem(error.problem.model_copy(update=named))

    def close(self) -> None:
        with self._lock:
            _end_all(self._running)


def _end_all(running: list[_Running]) -> None:
    while running:
        running.pop().end()


class _EndedByItself(Exception):
    """The process ended in order without an answer."""


class _Running:
    """One process in one jail, run by a thread of its own."""

    def __init__(self, source: str, limits: Limits) -> None:
        self._limits = limits
        self._stack = contextlib.ExitStack()
        folder = self._stack.enter_context(scratch("torch"))
        self._inbox, self._outbox = folder / "in", folder / "out"
        self._inbox.mkdir()
        self._inbox.chmod(0o755)
        self._outbox.mkdir()
        self._put(FILE, source.encode())
        self._cancel = Cancellation()
        self._finished: jail.Finished | BaseException | None = None
        request_out, self._request = os.pipe()
        self._reply, reply_in = os.pipe()
        self._thread = threading.Thread(
            target=self._run, args=(request_out, reply_in), name="torch", daemon=True
        )
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self, request_out: int, reply_in: int) -> None:
        try:
            self._finished = jail.run(
                jail.python_argv(
                    "sandbox.tasks.pytorch.worker",
                    str(_INBOX),
                    str(_OUTBOX),
                    str(request_out),
                    str(reply_in),
                ),
                binds=[jail.Bind(self._inbox, _INBOX), jail.Bind(self._outbox, _OUTBOX, writable=True)],
                cwd=_OUTBOX,
                limits=replace(
                    self._limits, wall_seconds=_LIFETIME_SECONDS, cpu_seconds=int(_LIFETIME_SECONDS)
                ),
                cancel=self._cancel,
                pass_fds=(request_out, reply_in),
                python=True,
            )
        except BaseException as error:  # handed to whoever asks
            self._finished = error
        finally:
            os.close(request_out)
            os.close(reply_in)

    def ask(
        self, request: LoadRequest | ExpectedRequest, draws: bytes, cancel: Cancellation
    ) -> tuple[Reply, bytes]:
        self._put(DRAWS, draws)
        self._put(REQUEST, request.model_dump_json().encode())
        try:
            os.write(self._request, b"\n")
        except BrokenPipeError:
            pass  # it is dead; waiting finds out of what
        self._wait(cancel)
        try:
            reply = Reply.model_validate_json(jail.read_result(self._outbox / REPLY, _REPLY_BYTES))
            arrays = b""
            if reply.problem is None:
                arrays = jail.read_result(self._outbox / ARRAYS, self._limits.file_bytes)
        except (OSError, NotAResult, ValidationError) as error:
            raise broken(f"it left no answer ({type(error).__name__})") from None
        if reply.problem is not None:
            raise TaskProblem(reply.problem)
        return reply, arrays

    def _put(self, name: str, content: bytes) -> None:
        """Into the folder that the process can read and not write, for whatever user it runs as."""
        path = self._inbox / name
        path.write_bytes(content)
        path.chmod(0o644)

    def _wait(self, cancel: Cancellation) -> None:
        deadline = time.monotonic() + self._limits.wall_seconds
        reply = select.poll()  # a server may have more open files than `select` can count
        reply.register(self._reply, select.POLLIN)
        while True:
            ready = reply.poll(_POLL_SECONDS * 1000)
            if ready and os.read(self._reply, 1):
                return
            if not self.alive:
                self._explain()
            if cancel.is_set:
                raise Cancelled
            if time.monotonic() > deadline:
                raise TaskProblem(
                    Problem(
                        kind="endless",
                        message=f"the module did not finish within {self._limits.wall_seconds:.0f} s",
                        hint="make the sizes smaller, and look for a loop that never ends",
                        file=FILE,
                    )
                )

    def _explain(self) -> None:
        """Raises what the process died of."""
        finished = self._finished
        if isinstance(finished, BaseException):
            raise finished
        assert finished is not None
        if finished.ok:
            raise _EndedByItself
        said = finished.stderr.decode(errors="replace").strip().splitlines()
        if finished.reason == "memory" or (said and "MemoryError" in said[-1]):
            raise out_of_memory(self._limits)
        if finished.reason == "output":
            raise TaskProblem(
                Problem(kind="too_much_output", message="the file prints or writes without end", file=FILE)
            )
        how = f"signal {finished.signal}" if finished.signal else f"exit code {finished.returncode}"
        raise broken(f"{how}: {said[-1][:300]}" if said else how)

    def end(self) -> None:
        """Kills the process, if it still runs, and removes its folder."""
        self._cancel.set()
        self._thread.join()
        os.close(self._request)
        os.close(self._reply)
        self._stack.close()


def broken(how: str) -> TaskProblem:
    return TaskProblem(
        Problem(kind="crashed", message=f"the process that ran the module broke off: {how}", file=FILE)
    )


def out_of_memory(limits: Limits) -> TaskProblem:
    return TaskProblem(
        Problem(
            kind="out_of_memory",
            message=f"the module needs more than {limits.memory_bytes >> 30} GiB of memory",
            hint="make the sizes smaller",
            file=FILE,
        )
    )

"""The bubblewrap process of one jail: starting it, with limits and filter, killing it, its end."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal as signals
import subprocess
import time
from collections.abc import Mapping, Sequence
from resource import RLIM_INFINITY, RLIMIT_CPU, prlimit
from typing import IO

from sandbox.jail.command import bwrap

SETUP_SECONDS = 10.0
_CHUNK = 1 << 16


class JailProcess:
    """A running bubblewrap, and a handle on the first process of its process-id namespace.

    Closing `stack` ends every process in the jail that is still there, and waits for that.
    """

    def __init__(
        self,
        stack: contextlib.ExitStack,
        options: Sequence[str],
        command: Sequence[str],
        *,
        stdin: int,
        stdout: int,
        stderr: int,
        pass_fds: Sequence[int] = (),
        limits: Mapping[int, int] | None = None,
        seccomp: bytes | None = None,
    ) -> None:
        """`limits`: resource (RLIMIT_...) -> value, inherited by all in the jail."""
        arguments, arguments_in = pipe(stack)
        self._status, status_in = pipe(stack)
        inherited = [arguments.fileno(), status_in.fileno()]
        options = [*options, "--json-status-fd", str(status_in.fileno())]
        if seccomp is not None:
            inherited.append(memory_file(stack, "seccomp", seccomp))
            options += ["--seccomp", str(inherited[-1])]
        self._process = subprocess.Popen(
            [bwrap(), "--args", str(arguments.fileno()), "--", *command],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env={},
            pass_fds=[*inherited, *pass_fds],
            bufsize=0,
            # Ctrl-C at a terminal is for the process that asked: it ends the jail itself, and knows why.
            process_group=0,
        )
        self.stdin = self._process.stdin
        self.stdout, self.stderr = self._process.stdout, self._process.stderr
        self.handle: int | None = None
        stack.callback(self._close)
        arguments.close()
        status_in.close()
        # bubblewrap waits for its arguments, so the limits are there before it starts anything.
        for kind, value in (limits or {}).items():
            _limit(self._process.pid, kind, value)
        with contextlib.suppress(BrokenPipeError), arguments_in:
            arguments_in.write(b"".join(os.fsencode(option) + b"\0" for option in options))
        self._said = b""
        self.init = self._first_pid()
        if self.init is not None:
            with contextlib.suppress(ProcessLookupError):
                self.handle = os.pidfd_open(self.init)

    def _first_pid(self) -> int | None:
        """Its process id as seen from here; None when bubblewrap gave up before."""
        deadline = time.monotonic() + SETUP_SECONDS
        while b"\n" not in self._said:
            ready = readable(self._status.fileno(), deadline - time.monotonic())
            chunk = os.read(self._status.fileno(), _CHUNK) if ready else b""
            if not chunk:
                return None
            self._said += chunk
        pid: int = json.loads(self._said.splitlines()[0])["child-pid"]
        return pid

    def kill(self) -> None:
        """Ends every process in the jail. Returns at once; `handle` becomes readable when they are gone."""
        if self.handle is None:
            self._process.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                signals.pidfd_send_signal(self.handle, signals.SIGKILL)

    def exit_status(self) -> int | None:
        """Of the command, as a shell would see it; None when it never started or was ended from outside."""
        self._process.wait()
        while chunk := os.read(self._status.fileno(), _CHUNK):
            self._said += chunk
        for line in self._said.splitlines()[1:]:
            if "exit-code" in (document := json.loads(line)):
                return int(document["exit-code"])
        return None

    def _close(self) -> None:
        if self._process.poll() is None:
            self.kill()
            self._process.kill()
        self._process.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        if self.handle is not None:
            readable(self.handle, None)
            os.close(self.handle)


def readable(file: int, seconds: float | None) -> bool:
    """Waits, for ever with None. A server may have more open files than `select` can count."""
    waiting = select.poll()
    waiting.register(file, select.POLLIN)
    return bool(waiting.poll(None if seconds is None else max(seconds, 0) * 1000))


def pipe(stack: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reader, writer = os.pipe()
    return (
        stack.enter_context(os.fdopen(reader, "rb", buffering=0)),
        stack.enter_context(os.fdopen(writer, "wb", buffering=0)),
    )


def memory_file(stack: contextlib.ExitStack, name: str, content: bytes) -> int:
    """A sealed file in memory that holds `content`, to be read from its start."""
    file = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, file)
    with os.fdopen(os.dup(file), "wb") as writer:
        writer.write(content)
    os.lseek(file, 0, os.SEEK_SET)
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    return file


def _limit(pid: int, kind: int, value: int) -> None:
    """Sets what children inherit. A hard limit the machine already has is never raised."""
    _, hard = prlimit(pid, kind)
    if hard != RLIM_INFINITY:
        value = min(value, hard)
    # Processor time warns with a signal of its own one second before it kills.
    soft = max(value - 1, 1) if kind == RLIMIT_CPU else value
    prlimit(pid, kind, (soft, value))

"""Running one command in a jail, from its first mount to the death of its last process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import selectors
import signal as signals
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from sandbox.cancellation import Cancellation
from sandbox.errors import JailUnavailable
from sandbox.jail import seccomp
from sandbox.jail.command import Bind, Identity, bwrap, bwrap_options
from sandbox.jail.results import lent, used_bytes
from sandbox.jail.watch import Kept, resident_bytes
from sandbox.limits import Limits

Reason = Literal["exited", "timeout", "memory", "output", "cancelled"]

_TICK = 0.02  # seconds between two looks at cancellation, clock and memory
_DISK_TICK = 0.2  # seconds between two looks at writable folders
_SETUP_SECONDS = 10.0
_OPEN_FILES = 256
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Finished:
    """How a jailed command ended. Every process it started is dead."""

    returncode: int | None  # None when it died of a signal or was ended from outside
    signal: int | None  # the signal it died of by itself, e.g. 11
    stdout: bytes  # head and tail, up to Limits.output_bytes
    stderr: bytes
    seconds: float  # wall time, setting up included
    reason: Reason  # "exited" unless a limit or the caller ended it

    @property
    def ok(self) -> bool:
        return self.reason == "exited" and self.returncode == 0


def run(
    argv: Sequence[str],
    *,
    binds: Sequence[Bind] = (),
    cwd: Path | None = None,
    limits: Limits,
    cancel: Cancellation,
    stdin: bytes = b"",
    pass_fds: Sequence[int] = (),
    on_output: Callable[[str], None] | None = None,
    python: bool = False,
    tmp: bool = True,
    env: Mapping[str, str] | None = None,
) -> Finished:
    """Runs `argv` in a fresh jail and waits for its end.

    The program sees `/usr`, an empty `/tmp` and `binds`; writable binds belong to its user meanwhile.
    `python=True` adds this interpreter, its packages and the `sandbox` package (see `python_argv`);
    `tmp=False` leaves no place to write to but writable binds.
    `on_output` gets stdout and stderr as text while they come. A cancellation ends the jail within a tenth of
    a second and is reported as a reason, not raised. Raises FileNotFoundError for a bind whose source is not
    there, JailUnavailable where no jail can be set up; then nothing has run.
    """
    began = time.monotonic()
    for bind in binds:
        os.lstat(bind.source)
    if cancel.is_set:
        return Finished(None, None, b"", b"", 0.0, "cancelled")
    identity = Identity.fresh()
    options = bwrap_options(
        identity=identity, binds=binds, cwd=cwd, limits=limits, python=python, tmp=tmp, env=env or {}
    )
    command = [*identity.enter(limits), *argv]
    writable = [bind.source for bind in binds if bind.writable]
    with lent(writable, identity.uid), contextlib.ExitStack() as stack:
        jail = _Jail(stack, options, command, limits, stdin, pass_fds)
        out, err = Kept(limits.output_bytes, on_output), Kept(limits.output_bytes, on_output)
        reason = _Watch(jail, limits, cancel, writable, began).until_dead(
            {jail.stdout: out, jail.stderr: err}
        )
        status = jail.exit_status()
    if reason == "exited" and status is None:
        raise JailUnavailable(
            f"the jail could not be set up: {err.content().decode(errors='replace').strip()}"
        )
    if reason == "exited" and status == 128 + signals.SIGXCPU:
        reason = "timeout"
    died = status - 128 if status is not None and 128 < status <= 192 else None
    return Finished(
        returncode=status if reason == "exited" and died is None else None,
        signal=died if reason == "exited" else None,
        stdout=out.content(),
        stderr=err.content(),
        seconds=time.monotonic() - began,
        reason=reason,
    )


class _Jail:
    """The bubblewrap process, and a handle on the first process of its process-id namespace."""

    def __init__(
        self,
        stack: contextlib.ExitStack,
        options: Sequence[str],
        command: Sequence[str],
        limits: Limits,
        stdin: bytes,
        pass_fds: Sequence[int],
    ) -> None:
        arguments, arguments_in = _pipe(stack)
        self._status, status_in = _pipe(stack)
        inherited = [arguments.fileno(), status_in.fileno()]
        options = [*options, "--json-status-fd", str(status_in.fileno())]
        program = seccomp.program()
        if program is not None:
            inherited.append(_memory_file(stack, "seccomp", program))
            options += ["--seccomp", str(inherited[-1])]
        self._process = subprocess.Popen(
            [bwrap(), "--args", str(arguments.fileno()), "--", *command],
            stdin=_memory_file(stack, "stdin", stdin) if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            pass_fds=[*inherited, *pass_fds],
            bufsize=0,
            # Ctrl-C at a terminal is for the process that asked: it ends the jail itself, and knows why.
            process_group=0,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.stdout, self.stderr = self._process.stdout, self._process.stderr
        self.handle: int | None = None
        stack.callback(self._close)
        arguments.close()
        status_in.close()
        # bubblewrap waits for its arguments, so the limits are there before it starts anything.
        _limit(self._process.pid, limits)
        with contextlib.suppress(BrokenPipeError), arguments_in:
            arguments_in.write(b"".join(option.encode() + b"\0" for option in options))
        self._said = b""
        self.init = self._first_pid()
        if self.init is not None:
            with contextlib.suppress(ProcessLookupError):
                self.handle = os.pidfd_open(self.init)

    def _first_pid(self) -> int | None:
        """Its process id as seen from here; None when bubblewrap gave up before."""
        deadline = time.monotonic() + _SETUP_SECONDS
        while b"\n" not in self._said:
            ready = _readable(self._status.fileno(), deadline - time.monotonic())
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
        self.stdout.close()
        self.stderr.close()
        if self.handle is not None:
            _readable(self.handle, None)
            os.close(self.handle)


class _Watch:
    """Drains the jail's output until its last process is dead; ends it when a limit or the caller says so."""

    def __init__(
        self, jail: _Jail, limits: Limits, cancel: Cancellation, writable: Sequence[Path], began: float
    ) -> None:
        self._jail = jail
        self._limits = limits
        self._cancel = cancel
        self._writable = writable
        self._deadline = began + limits.wall_seconds
        self._next_disk = began + _DISK_TICK

    def until_dead(self, kept: Mapping[IO[bytes], Kept]) -> Reason:
        reason: Reason = "exited"
        next_look = 0.0
        with selectors.DefaultSelector() as selector:
            for stream in kept:
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ)
            if self._jail.handle is not None:
                selector.register(self._jail.handle, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select(_TICK)]
                # Without a handle the namespace died before it could be taken: what is left is its output.
                if self._jail.handle in ready or (self._jail.handle is None and not ready):
                    break
                for stream, keeper in kept.items():
                    if stream in ready and not _drain(stream, keeper):
                        selector.unregister(stream)
                if reason == "exited" and time.monotonic() >= next_look:
                    next_look = time.monotonic() + _TICK
                    why = self._broken(kept.values())
                    if why is not None:
                        reason = why
                        self._jail.kill()
        for stream, keeper in kept.items():
            while _drain(stream, keeper):
                pass
        return reason

    def _broken(self, kept: Iterable[Kept]) -> Reason | None:
        """Why the jail must end now, if it must."""
        now = time.monotonic()
        if self._cancel.is_set:
            return "cancelled"
        if now > self._deadline:
            return "timeout"
        if any(stream.flooded for stream in kept):
            return "output"
        if self._jail.init is not None and resident_bytes(self._jail.init) > self._limits.memory_bytes:
            return "memory"
        if now >= self._next_disk:
            self._next_disk = now + _DISK_TICK
            for folder in self._writable:
                used = used_bytes(folder)
                if used is None or used > self._limits.file_bytes:
                    return "output"
        return None


def _readable(file: int, seconds: float | None) -> bool:
    """Waits, for ever with None. A server may have more open files than `select` can count."""
    waiting = select.poll()
    waiting.register(file, select.POLLIN)
    return bool(waiting.poll(None if seconds is None else max(seconds, 0) * 1000))


def _drain(stream: IO[bytes], keeper: Kept) -> bool:
    """Takes one chunk. False at the end of the stream, and where nothing waits."""
    try:
        chunk = os.read(stream.fileno(), _CHUNK)
    except BlockingIOError:
        return False
    if chunk:
        keeper.add(chunk)
    return bool(chunk)


def _pipe(stack: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reader, writer = os.pipe()
    return (
        stack.enter_context(os.fdopen(reader, "rb", buffering=0)),
        stack.enter_context(os.fdopen(writer, "wb", buffering=0)),
    )


def _memory_file(stack: contextlib.ExitStack, name: str, content: bytes) -> int:
    """A sealed file in memory that holds `content`, to be read from its start."""
    file = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, file)
    with os.fdopen(os.dup(file), "wb") as writer:
        writer.write(content)
    os.lseek(file, 0, os.SEEK_SET)
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    return file


def _limit(pid: int, limits: Limits) -> None:
    """Sets what children inherit. A hard limit the machine already has is never raised."""
    wanted = {
        resource.RLIMIT_CPU: limits.cpu_seconds + 1,
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if os.geteuid() == 0:
        wanted[resource.RLIMIT_NPROC] = limits.processes
    for kind, value in wanted.items():
        _, hard = resource.prlimit(pid, kind)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        # Processor time warns with a signal of its own one second before it kills.
        soft = max(value - 1, 1) if kind == resource.RLIMIT_CPU else value
        resource.prlimit(pid, kind, (soft, value))

"""Running one command in a jail, from its first mount to the death of its last process."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal as signals
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Self

from sandbox.cancellation import Cancellation
from sandbox.errors import JailUnavailable
from sandbox.jail import seccomp
from sandbox.jail.command import Bind, Identity, bwrap_options
from sandbox.jail.process import JailProcess, memory_file
from sandbox.jail.results import lent, used_bytes
from sandbox.jail.watch import Kept, resident_bytes
from sandbox.limits import Limits

Reason = Literal["exited", "timeout", "memory", "output", "cancelled"]

_TICK = 0.02  # seconds between two looks at cancellation, clock and memory
_DISK_TICK = 0.2  # seconds between two looks at writable folders
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
    devices: Sequence[Path] = (),
) -> Finished:
    """Runs `argv` in a fresh jail and waits for its end.

    The program sees `/usr`, an empty `/tmp` and `binds`; writable binds belong to its user meanwhile.
    `python=True` adds this interpreter, its packages and the `sandbox` package (see `python_argv`);
    `tmp=False` leaves no place to write to but writable binds. `devices`: device files that it may use.
    `on_output` gets stdout and stderr as text while they come. A cancellation ends the jail within a tenth of
    a second and is reported as a reason, not raised. Raises FileNotFoundError for a bind whose source is not
    there, JailUnavailable where no jail can be set up; then nothing has run.
    """
    for bind in binds:
        os.lstat(bind.source)
    if cancel.is_set:
        return Finished(None, None, b"", b"", 0.0, "cancelled")
    with Started(
        argv,
        binds=binds,
        cwd=cwd,
        limits=limits,
        stdin=stdin,
        pass_fds=pass_fds,
        python=python,
        tmp=tmp,
        env=env,
        devices=devices,
    ) as started:
        return started.finish(cancel, on_output)


class Started:
    """A jail whose command runs, unwatched until `finish`. With `stdin=None` the command waits for `send`,
    so that it can be there, warmed up, before there is anything to do. Arguments as for `run`."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        binds: Sequence[Bind] = (),
        cwd: Path | None = None,
        limits: Limits,
        stdin: bytes | None = b"",
        pass_fds: Sequence[int] = (),
        python: bool = False,
        tmp: bool = True,
        env: Mapping[str, str] | None = None,
        devices: Sequence[Path] = (),
    ) -> None:
        self._began = time.monotonic()
        self._limits = limits
        identity = Identity.fresh()
        options = bwrap_options(
            identity=identity,
            binds=binds,
            cwd=cwd,
            limits=limits,
            python=python,
            tmp=tmp,
            env=env or {},
            devices=devices,
        )
        self._writable = [bind.source for bind in binds if bind.writable]
        self._stack = contextlib.ExitStack()
        try:
            self._stack.enter_context(lent(self._writable, identity.uid))
            self._process = JailProcess(
                self._stack,
                options,
                [*identity.enter(limits), *argv],
                stdin=self._stdin(stdin),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=pass_fds,
                limits=_resources(limits, bool(devices)),
                seccomp=seccomp.program(unowned=bool(devices)),
            )
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Every process in the jail is dead afterwards."""
        self._stack.close()

    def _stdin(self, content: bytes | None) -> int:
        if content is None:
            return subprocess.PIPE
        return memory_file(self._stack, "stdin", content) if content else subprocess.DEVNULL

    def send(self, content: bytes) -> None:
        """All of what the waiting command reads. The clock of its limits starts now."""
        assert self._process.stdin is not None
        self._began = time.monotonic()
        with contextlib.suppress(BrokenPipeError), self._process.stdin as pipe:
            pipe.write(content)

    def finish(self, cancel: Cancellation, on_output: Callable[[str], None] | None = None) -> Finished:
        """Waits for the end, whatever it is."""
        limits, process = self._limits, self._process
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = Kept(limits.output_bytes, on_output), Kept(limits.output_bytes, on_output)
        watch = _Watch(process, limits, cancel, self._writable, self._began)
        reason = watch.until_dead({process.stdout: out, process.stderr: err})
        status = process.exit_status()
        self.close()
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
            seconds=time.monotonic() - self._began,
            reason=reason,
        )


class _Watch:
    """Drains the jail's output until its last process is dead; ends it when a limit or the caller says so."""

    def __init__(
        self, jail: JailProcess, limits: Limits, cancel: Cancellation, writable: Sequence[Path], began: float
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


def _drain(stream: IO[bytes], keeper: Kept) -> bool:
    """Takes one chunk. False at the end of the stream, and where nothing waits."""
    try:
        chunk = os.read(stream.fileno(), _CHUNK)
    except BlockingIOError:
        return False
    if chunk:
        keeper.add(chunk)
    return bool(chunk)


def _resources(limits: Limits, devices: bool) -> dict[int, int]:
    wanted = {
        resource.RLIMIT_CPU: limits.cpu_seconds + 1,
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if devices:  # their drivers reserve far more than they use; what is resident is still watched
        del wanted[resource.RLIMIT_DATA]
    if os.geteuid() == 0:
        wanted[resource.RLIMIT_NPROC] = limits.processes
    return wanted

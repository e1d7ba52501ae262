"""Running a person's own program in a jail, as if it ran in their shell.

It sees the whole machine read-only, for it may need its data from anywhere, and has the caller's stdin,
stdout and stderr, environment and user id. It may write to the folders given and to a `/tmp` of its own.

What this defends against: changing or deleting anything else on the machine; the network, and services
behind sockets in `/run` and `/tmp`; GPUs and other devices; outside processes; anything of it that stays
behind. What it does not: reading the caller's files, as any program the caller runs could; using up the
machine, unless the caller sets limits; what `sandbox.jail` lists as well.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandbox.cancellation import Cancellation
from sandbox.errors import JailUnavailable
from sandbox.jail import seccomp
from sandbox.jail.process import JailProcess, readable
from sandbox.jail.watch import resident_bytes

_TICK = 0.02
#: Empty in the jail: other programs' temporary files, and sockets through which services take orders.
_HIDDEN = (Path("/tmp"), Path("/run"))


@dataclass(frozen=True)
class Ended:
    """How a program ended. Every process it started is dead."""

    status: int | None  # as a shell reports it, 128 + n for signal n; None when it was ended from outside
    reason: Literal["exited", "timeout", "memory", "cancelled"]


def run_live(
    argv: Sequence[str],
    *,
    cwd: Path,
    writable: Sequence[Path] = (),
    visible: Sequence[Path] = (),
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    pass_fds: Sequence[int] = (),
    env: Mapping[str, str],
    seconds: float | None = None,
    memory_bytes: int | None = None,
    cancel: Cancellation,
) -> Ended:
    """Runs `argv` in `cwd` to its end. `stdin`, `stdout`, `stderr`: descriptors, None for the caller's own.

    `visible`: what the program needs of `/tmp` and `/run`, which are otherwise empty; it stays read-only.
    Raises JailUnavailable where no jail can be set up; bubblewrap has said why on `stderr` then.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        jail = JailProcess(
            stack,
            list(_options(cwd, writable, [cwd, *visible], env)),
            argv,
            stdin=0 if stdin is None else stdin,
            stdout=1 if stdout is None else stdout,
            stderr=2 if stderr is None else stderr,
            pass_fds=pass_fds,
            limits=None if memory_bytes is None else {resource.RLIMIT_DATA: memory_bytes},
            seccomp=seccomp.program(unowned=True),
        )
        reason: Literal["exited", "timeout", "memory", "cancelled"] = "exited"
        while jail.handle is not None and not readable(jail.handle, _TICK):
            if reason != "exited":
                continue
            if cancel.is_set:
                reason = "cancelled"
            elif deadline is not None and time.monotonic() > deadline:
                reason = "timeout"
            elif memory_bytes is not None and jail.init is not None:
                reason = "memory" if resident_bytes(jail.init) > memory_bytes else "exited"
            if reason != "exited":
                jail.kill()
        status = jail.exit_status()
    if reason == "exited" and status is None:
        raise JailUnavailable("the program was not started, because no jail could be set up")
    return Ended(status if reason == "exited" else None, reason)


def _options(
    cwd: Path, writable: Sequence[Path], visible: Sequence[Path], env: Mapping[str, str]
) -> Iterator[str]:
    yield from ("--die-with-parent", "--new-session", "--clearenv")
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-cgroup-try")
    yield from _identity([cwd, *writable, *visible])
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    if os.geteuid() == 0:
        yield from ("--remount-ro", "/proc")  # the machine's settings in it are root's to write, by id alone
    for folder in _HIDDEN:
        if folder.is_dir():
            yield from ("--perms", "1777", "--tmpfs", str(folder))
    for path in visible:
        path = path.resolve()
        if path.exists() and _hidden(path):
            yield from ("--ro-bind", str(path), str(path))
    for path in writable:
        path = path.resolve()
        # Nobody means to hand over all of the machine, or what is only there to be empty.
        if path != Path("/") and path not in _HIDDEN:
            yield from ("--bind", str(path), str(path))
    yield from ("--chdir", str(cwd))
    for name, value in env.items():
        yield from ("--setenv", name, value)


def _hidden(path: Path) -> bool:
    return path not in _HIDDEN and any(path.is_relative_to(folder) for folder in _HIDDEN)


def _identity(needed: Sequence[Path]) -> tuple[str, ...]:
    """The caller, without rights beyond those over its own files.

    Root keeps its id, since its files may be closed to others. Where it works on what belongs to somebody
    else, as a container's root does on a folder of the machine, it keeps the right to use everybody's files,
    and no other: it could not write there without, and often not read.
    """
    if os.geteuid() == 0:
        foreign = any(path.exists() and path.stat().st_uid != 0 for path in needed)
        return ("--cap-drop", "ALL", *(("--cap-add", "CAP_DAC_OVERRIDE") if foreign else ()))
    return ("--unshare-user", "--uid", str(os.geteuid()), "--gid", str(os.getegid()))

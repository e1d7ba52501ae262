"""Running a built program: in a jail, on our CUDA runtime, with the service beside it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox import jail, native
from sandbox.cancellation import Cancellation
from sandbox.emulator.client import Mode, lower
from sandbox.program import libraries
from sandbox.program.report import Report
from sandbox.program.service import Connected, Service
from sandbox.targets import Target

#: Names of compute-sanitizer's tools.
CHECKS = ("memcheck", "racecheck", "initcheck", "synccheck")


@dataclass(frozen=True)
class Options:
    target: Target
    checks: tuple[str, ...] = CHECKS  # none: kernels run in plain mode
    profile: bool = False
    sample_blocks: int = 0  # of each launch, to count; 0: all. Without checks the others run in plain mode
    seed: int = 0  # of the order of blocks and warps; 0: in order
    threads: int = 1
    seconds: float | None = None  # wall time of the program
    memory_bytes: int | None = None
    leaks: bool = False  # memory that is never freed is an error
    stop_at_first: bool = False
    writable: tuple[Path, ...] = ()  # folders besides the current one

    @property
    def mode(self) -> Mode:
        return "checked" if self.checks or self.profile else "plain"


@dataclass(frozen=True)
class Run:
    status: int | None  # as a shell reports it; None when a limit ended it
    reason: str  # "exited", "timeout", "memory", "cancelled"
    seconds: float


def run(
    executable: Path,
    arguments: Sequence[str],
    options: Options,
    report: Report,
    *,
    stdout: int | None = None,
    stderr: int | None = None,
    cancel: Cancellation,
) -> Run:
    """Runs the program to its end, on this process's stdin, stdout and stderr unless other ones are given.

    Raises JailUnavailable; TaskProblem when a library that the program is linked to cannot work here.
    """
    runtime = native.path("cudart")
    folders, variables = libraries.environment(executable)
    connected = Connected(
        Service(
            target=options.target,
            options=_told(options),
            report=report,
            cancel=cancel,
            lower=lambda texts, owner, kernel, mode: lower(texts, cancel, [(owner, kernel)], mode=mode),
        )
    )
    began = time.monotonic()
    try:
        ended = jail.run_live(
            [str(executable), *arguments],
            cwd=Path.cwd(),
            writable=[Path.cwd(), *options.writable],
            visible=[
                executable.parent,
                runtime.parent,
                *folders,
                *(Path(value).parent for value in variables.values()),
                *_files(arguments),
            ],
            stdout=stdout,
            stderr=stderr,
            pass_fds=[connected.descriptor],
            env=_environment(connected.descriptor, runtime, folders) | variables,
            seconds=options.seconds,
            memory_bytes=options.memory_bytes,
            cancel=cancel,
        )
    finally:
        connected.end()
    if "memcheck" in options.checks:
        report.add_leaks(errors=options.leaks)
    return Run(ended.status, ended.reason, time.monotonic() - began)


def _told(options: Options) -> dict[str, str]:
    """The runtime's options, by the names that sandbox/cudart/service.h documents."""
    return {
        "mode": options.mode,
        "checks": ",".join(options.checks),
        "seed": str(options.seed),
        "threads": str(options.threads),
        "profile": str(int(options.profile)),
        "sample_blocks": str(options.sample_blocks),
        "stop_at_first": str(int(options.stop_at_first)),
        "target": options.target.arch,
    }


def _environment(service: int, runtime: Path, libraries: Sequence[Path]) -> dict[str, str]:
    """The caller's, with our runtime preloaded, since a program may say where it looks for its own."""
    environment = {name: value for name, value in os.environ.items() if name != "KERNELWRIGHT_SERVICE"}
    preloaded = [str(runtime), *environment.get("LD_PRELOAD", "").split()]
    folders = [str(runtime.parent), *map(str, libraries), environment.get("LD_LIBRARY_PATH", "")]
    return {
        **environment,
        "KERNELWRIGHT_SERVICE": str(service),
        "LD_PRELOAD": " ".join(preloaded),
        "LD_LIBRARY_PATH": ":".join(filter(None, folders)),
    }


def _files(arguments: Sequence[str]) -> list[Path]:
    """What the arguments name, so that a program may read it also where it lies in /tmp."""
    return [Path(argument).absolute() for argument in arguments if argument and os.path.exists(argument)]

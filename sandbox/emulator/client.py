"""The judge's door to the emulator: lower PTX to native code, replay plans on it. Both happen in jails."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sandbox import jail, native
from sandbox.cancellation import Cancellation
from sandbox.emulator.lowerers import lowerer, warm
from sandbox.emulator.trace import ReplayResult
from sandbox.emulator.wire import BadResult, Buffer, Replay, read_results, write_request
from sandbox.errors import Cancelled, Judged
from sandbox.home import cache, store
from sandbox.limits import EMULATE

__all__ = ["Buffer", "Cpu", "Lowered", "Mode", "Replay", "lower", "replay", "warm"]

_UNSUPPORTED = 3  # exit code of the compiler process
_STACK_OVERFLOW = 4  # of the emulator
_GRACE_SECONDS = 5.0  # for setting up and writing results, on top of the replays' own time
_PRODUCT = "module.so"
_SOURCES = Path(__file__).resolve().parent


Mode = Literal["checked", "plain"]
#: What code is written for: this machine's CPU, or any with AVX2, which need not have AVX-512.
Cpu = Literal["native", "x86-64-v3"]


@dataclass(frozen=True)
class Lowered:
    """Native code of all modules of one candidate. Only ever loaded in a jail."""

    path: Path


@functools.cache
def _lowering_version() -> str:
    """Changes with the lowering's own sources, LLVM and the CPU: all decide what the native code is."""
    digest = hashlib.sha256(native.cpu_features().encode())
    folders = [_SOURCES / "lowering", _SOURCES.parent / "ptx"]
    for file in sorted(path for folder in folders for path in folder.glob("*.py")):
        digest.update(file.read_bytes())
    import importlib.metadata

    digest.update(importlib.metadata.version("llvmlite").encode())
    return digest.hexdigest()


def lower(
    modules: Sequence[str],
    cancel: Cancellation,
    kernels: Iterable[tuple[int, str]] | None = None,
    *,
    mode: Mode = "checked",
    cpu: Cpu = "native",
) -> Lowered:
    """Lowers kernels (module index, mangled name) of PTX texts; None: all. Cached on disk.

    Mode "checked" checks and counts every access; "plain" code does neither, and what it does where a program
    is wrong is anybody's guess.

    Raises Judged("unsupported") naming the instruction and its line; Cancelled; JailUnavailable.
    """
    cancel.check()
    digest = hashlib.sha256(f"{_lowering_version()} {mode} {cpu}".encode())
    for text in modules:
        digest.update(f"{len(text)}\n{text}".encode())
    wanted = None if kernels is None else sorted(set(kernels))
    digest.update(f"kernels {wanted}".encode())
    entry = cache("lowered") / digest.hexdigest()[:40]
    if not (entry / _PRODUCT).exists():
        store(entry, lambda folder: _compile(modules, wanted, folder, cancel, mode, cpu))
    return Lowered(entry / _PRODUCT)


def _compile(
    modules: Sequence[str],
    kernels: list[tuple[int, str]] | None,
    folder: Path,
    cancel: Cancellation,
    mode: Mode,
    cpu: Cpu,
) -> None:
    request = json.dumps({"modules": modules, "kernels": kernels, "mode": mode, "cpu": cpu}).encode()
    with lowerer() as compiler:
        finished, product = compiler.lower(request, cancel)
    if finished.reason == "cancelled":
        raise Cancelled
    if finished.reason == "exited" and finished.returncode == _UNSUPPORTED:
        raise Judged("unsupported", "kernelwright", _refusal(finished.stdout))
    if finished.reason != "exited":
        message = f"lowering the candidate's PTX hit a limit: {finished.reason}"
        raise Judged("unsupported", "kernelwright", message)
    if not finished.ok:
        last = finished.stderr.decode(errors="replace").strip().rsplit("\n", 1)[-1]
        raise Judged("internal_error", "kernelwright", f"lowering the candidate's PTX failed: {last}")
    (folder / _PRODUCT).write_bytes(product)
    (folder / _PRODUCT).chmod(0o644)


def _refusal(stdout: bytes) -> str:
    try:
        refusal = json.loads(stdout)
        line = refusal["line"]
        where = f" at line {int(line)}" if line else ""
        return f"{str(refusal['message'])[:500]}{where}"
    except (ValueError, KeyError, TypeError):
        return "unsupported: PTX that the emulator does not understand"


def replay(
    lowered: Lowered,
    replays: Sequence[Replay],
    *,
    seconds: float,
    threads: int,
    cancel: Cancellation,
    on_progress: Callable[[int, int], None] | None = None,
    multiprocessors: int = 0,
) -> list[tuple[ReplayResult, dict[str, bytes]]]:
    """Replays plans one after another in one jailed process, up to the first that does not end well.

    A replay's seed shuffles the order of blocks, warps and diverged lanes: the same each time, on one thread.
    Kernels are told that they run on so many `multiprocessors`; 0 stands for an H200's.

    Returns a result and the read-back buffers for each replay that was begun. Raises Judged("internal_error")
    when the process dies, Cancelled, JailUnavailable.
    """
    cancel.check()
    if not replays:
        return []
    executable = native.path("emulate")
    with memory_file("replay-request") as request, memory_file("replay-result") as result:
        write_request(
            request,
            "/kernels/" + _PRODUCT,
            replays,
            seconds=seconds,
            threads=threads,
            multiprocessors=multiprocessors,
        )
        finished = jail.run(
            [f"/emulate/{executable.name}", str(request), str(result)],
            binds=[
                jail.Bind(executable.parent, Path("/emulate")),
                jail.Bind(lowered.path.parent, Path("/kernels")),
            ],
            limits=replace(
                EMULATE,
                wall_seconds=seconds + _GRACE_SECONDS,
                cpu_seconds=int((seconds + _GRACE_SECONDS) * threads) + 1,
                processes=max(EMULATE.processes, threads + 16),
            ),
            cancel=cancel,
            pass_fds=[request, result],
            on_output=_Progress(on_progress) if on_progress else None,
        )
        if finished.reason == "cancelled":
            raise Cancelled
        if finished.reason == "timeout":
            return [(ReplayResult(status="timeout", message="the replay did not end in time"), {})]
        if finished.reason == "memory":
            raise Judged(
                "runtime_error", "candidate", "the replay needs more memory than a judgement may use"
            )
        if not finished.ok:
            words = _last_words(finished)
            if finished.returncode == _STACK_OVERFLOW:
                raise Judged("unsupported", "kernelwright", words.removeprefix("kw-emulate: "))
            if "undefined symbol: kw_" in words:
                raise Judged("unsupported", "kernelwright", f"unsupported: {words.rsplit(': ', 1)[-1]}")
            raise Judged("internal_error", "kernelwright", f"the emulator failed: {words}")
        try:
            return results(result, replays)
        except BadResult as problem:
            raise Judged("internal_error", "kernelwright", str(problem)) from problem


def results(descriptor: int, replays: Sequence[Replay]) -> list[tuple[ReplayResult, dict[str, bytes]]]:
    if os.fstat(descriptor).st_size == 0:
        raise BadResult("the emulator left no result")
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content, memoryview(content) as view:
        return read_results(view, replays)


def _last_words(finished: jail.Finished) -> str:
    if finished.signal is not None:
        return f"its process died of signal {finished.signal}"
    return finished.stderr.decode(errors="replace").strip().rsplit("\n", 1)[-1] or finished.reason


@contextlib.contextmanager
def memory_file(name: str) -> Iterator[int]:
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class _Progress:
    """Turns the emulator's "progress DONE OF" lines into calls."""

    def __init__(self, report: Callable[[int, int], None]) -> None:
        self._report = report
        self._rest = ""

    def __call__(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            words = line.split()
            if len(words) == 3 and words[0] == "progress" and words[1].isdigit() and words[2].isdigit():
                self._report(int(words[1]), int(words[2]))

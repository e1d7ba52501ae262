"""The door to a card: a session is one process, on one card that nobody else uses meanwhile.

The process is ours and holds no candidate's host code, but its card runs hostile device code, so it lives in
a jail with the card's device files and the driver, and dies with the session. A kernel that never ends dies
with it: the driver takes a dead process's contexts apart. A card that does not come back from that, or that
its driver calls sick, is taken out of service.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sandbox import jail
from sandbox.cancellation import Cancellation
from sandbox.emulator.client import memory_file
from sandbox.emulator.trace import ReplayResult
from sandbox.emulator.wire import Replay
from sandbox.errors import JailUnavailable, Judged
from sandbox.gpu import wire
from sandbox.gpu.devices import Device, NoDevice, devices, require_bindings, sickness
from sandbox.gpu.lease import HOW_TO_HEAL, leased, quarantine, quarantined
from sandbox.gpu.unjailed import Unjailed
from sandbox.jail import Finished
from sandbox.limits import GIB, GPU
from sandbox.plan import DEVICE_BASE, DEVICE_BYTES
from sandbox.timing import BLOCKS, TRIALS, schedule

_START_SECONDS = 60.0  # a context takes a quarter of a second; a card that wakes up, several
_GRACE_SECONDS = 10.0  # beyond what a request may take, for reading and writing
_DEATH_SECONDS = 30.0  # for the driver to take a killed process's contexts apart
_MOST_OUTPUT_BYTES = 2 * GIB  # of the different outputs of one timing
_MESSAGE_BYTES = 1 << 16

#: "off": the replaying process runs without a jail, to find out what the jail lacks on a machine.
JAIL_VARIABLE = "KERNELWRIGHT_GPU_JAIL"


@dataclass(frozen=True)
class Hello:
    """What the process found."""

    base: int  # where the device's range lies
    seconds: float  # for the context and the reservation
    l2_bytes: int
    multiprocessors: int
    host_memory_open: bool  # kernels can read, and write, pageable memory of their process


def usable(target: str | None = None) -> list[Device]:
    """Cards in service that run machine code of `target` ("sm_90"). Raises NoDevice, saying why none does."""
    found = present()
    fitting = [device for device in found if target is None or device.runs(target)]
    if not fitting:
        names = ", ".join(f"{device.name} ({device.arch})" for device in found)
        raise NoDevice(f"no card here runs code for {target}: {names}", f"say --target {found[0].arch}")
    serving = [device for device in fitting if not quarantined(device.uuid)]
    if not serving:
        said = "; ".join(f"{d.name} {d.uuid}: {quarantined(d.uuid)}" for d in fitting)
        raise NoDevice(f"every card is out of service: {said}", HOW_TO_HEAL)
    return serving


def present() -> list[Device]:
    """Every card of this machine, also those out of service. Raises NoDevice with all that is missing, not
    the first thing alone."""
    missing: list[NoDevice] = []
    found: list[Device] = []
    try:
        found = devices()
    except NoDevice as problem:
        missing.append(problem)
    try:
        require_bindings()
    except NoDevice as problem:
        missing.append(problem)
    if missing:
        raise NoDevice("; ".join(map(str, missing)), "; ".join(m.how for m in missing if m.how))
    return found


class Session:
    """One process on one card. Close it, or use it as a context manager."""

    def __init__(self, candidates: Sequence[Device], cancel: Cancellation) -> None:
        """Waits for one of these cards. Raises NoDevice, Cancelled, JailUnavailable; Judged with
        "internal_error" where the process does not start."""
        self._caller = cancel
        self._stop = Cancellation(lambda: cancel.is_set, interval=0.0)
        self._stack = contextlib.ExitStack()
        self.jailed = os.environ.get(JAIL_VARIABLE) != "off"
        try:
            self.device = self._stack.enter_context(leased(candidates, cancel))
            self._process = _Process(self.device, self._stop, jailed=self.jailed)
            self._stack.callback(self._end)
            self.hello = self._hello()
        except BaseException:
            self._stack.close()
            raise
        self._alive = True

    @property
    def base(self) -> int:
        return self.hello.base

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """The process is dead, its context gone and the card free afterwards; or out of service."""
        self._stack.close()

    def replay(
        self,
        cubin: bytes,
        replays: Sequence[Replay],
        *,
        seconds: float,
        on_progress: Callable[[int, int], None] = lambda done, of: None,
    ) -> list[tuple[ReplayResult, dict[str, bytes]]]:
        """As `sandbox.emulator.client.replay`: one after another, each with a fresh module in fresh memory,
        up to the first that does not end well, after which the session is of no use any more.

        Raises Judged("launch_error") where the device refuses a launch, Judged("internal_error") where the
        process or the card fails; Cancelled.
        """
        if not replays:
            return []

        def write(file: int) -> None:
            wire.write_replays(file, cubin, replays, seconds)

        with self._ask(write, seconds, on_progress) as answer:
            if answer is None:
                return [(ReplayResult(status="timeout", message="the replay did not end in time"), {})]
            ended = wire.read_replays(answer, replays)
        return [self._outcome(each) for each in ended]

    def time(
        self,
        sides: Sequence[wire.Side],
        *,
        seconds: float,
        blocks: int = BLOCKS,
        trials: int = TRIALS,
        on_progress: Callable[[int, int], None] = lambda done, of: None,
    ) -> wire.Times:
        """Times the sides, interleaved as `sandbox.timing.schedule` says. Raises Judged as `replay` does,
        also with the verdict of a kernel that fails while it is timed."""
        order = [side for _, side in schedule(len(sides), blocks, trials)]

        def write(file: int) -> None:
            wire.write_timing(file, sides, order, seconds, _MOST_OUTPUT_BYTES)

        with self._ask(write, seconds, on_progress) as answer:
            if answer is None:
                raise Judged("timeout", "candidate", f"timing did not end within {seconds:.0f} s")
            times = wire.read_times(answer, sides, order, blocks)
        if isinstance(times, wire.Times):
            return times
        result, _ = self._outcome(times)
        if result.status == "fault" and result.fault is not None:
            raise Judged("runtime_error", "candidate", f"while it was timed: {result.fault.message}")
        if result.status == "timeout":
            raise Judged("timeout", "candidate", f"while it was timed: {result.message}")
        raise Judged("unsupported", "kernelwright", result.message)

    def _outcome(self, ended: wire.Ended) -> tuple[ReplayResult, dict[str, bytes]]:
        if ended.refused:
            raise Judged("launch_error", "candidate", ended.refused)
        if ended.device:
            self._examine()
            raise Judged("internal_error", "kernelwright", f"{self.device.name} failed: {ended.device}")
        assert ended.result is not None
        if ended.result.status != "ok":
            self._examine()
        return ended.result, ended.arrays

    @contextlib.contextmanager
    def _ask(
        self, write: Callable[[int], None], seconds: float, on_progress: Callable[[int, int], None]
    ) -> Iterator[int | None]:
        """Sends a request; the file with the answer, None where it did not come in time."""
        if not self._alive:
            raise Judged("internal_error", "kernelwright", "this session on the card is over")
        with memory_file("gpu-request") as request, memory_file("gpu-answer") as answer:
            write(request)
            self._process.send([request, answer])
            deadline = time.monotonic() + seconds + _GRACE_SECONDS
            while True:
                words = self._process.receive(deadline)
                if words is None:
                    self._lost()
                    yield None
                    return
                if "progress" in words:
                    on_progress(int(words["progress"]), int(words["of"]))
                elif words.get("done"):
                    self._alive = bool(words.get("alive"))
                    break
            try:
                yield answer
            except wire.BadAnswer as problem:
                raise Judged("internal_error", "kernelwright", f"the GPU's process: {problem}") from problem

    def _hello(self) -> Hello:
        words = self._process.receive(time.monotonic() + _START_SECONDS)
        if words is None or not words.get("hello"):
            self._caller.check()
            said = words.get("error") if words else self._process.last_words()
            if self._process.problem is not None:
                raise self._process.problem
            self._examine()
            said = f"no context on {self.device.name}: {said}{_closed() if self.jailed else ''}"
            raise Judged("internal_error", "kernelwright", said)
        return Hello(
            base=int(words["base"]),
            seconds=float(words["seconds"]),
            l2_bytes=int(words["l2_bytes"]),
            multiprocessors=int(words["multiprocessors"]),
            host_memory_open=bool(words["host_memory_open"]),
        )

    def _lost(self) -> None:
        """The process said nothing any more: too late, dead or cancelled. It is dead afterwards."""
        self._alive = False
        self._end()
        self._caller.check()
        self._examine()
        if self._process.gone:
            raise Judged(
                "internal_error", "kernelwright", f"the GPU's process died: {self._process.last_words()}"
            )

    def _end(self) -> None:
        self._process.hang_up()
        if not self._process.wait(2.0):
            self._stop.set()
            if not self._process.wait(_DEATH_SECONDS):
                quarantine(self.device.uuid, f"a process on it cannot be ended since {time.ctime()}")

    def _examine(self) -> None:
        """Takes a sick card out of service."""
        if reason := sickness(self.device.uuid):
            quarantine(self.device.uuid, reason)
            raise Judged(
                "internal_error", "kernelwright", f"{self.device.name} is out of service now: {reason}"
            )


class _Process:
    """The worker, and the thread that watches its jail."""

    def __init__(self, device: Device, stop: Cancellation, *, jailed: bool) -> None:
        self._ours, theirs = socket.socketpair()
        self._rest = b""
        self.gone = False  # it hung up: it is dead, or about to be
        self._finished: Finished | None = None
        self.problem: JailUnavailable | None = None
        environment = {
            "CUDA_VISIBLE_DEVICES": device.uuid,
            "CUDA_DISABLE_PTX_JIT": "1",  # machine code only: nothing is compiled where it runs
            "CUDA_CACHE_DISABLE": "1",
            "CUDA_MODULE_LOADING": "EAGER",
            "OPENBLAS_NUM_THREADS": "1",
            **_library_path(),
        }
        arguments = [str(theirs.fileno()), str(DEVICE_BYTES), str(DEVICE_BASE)]
        argv = jail.python_argv("sandbox.gpu.worker", *arguments)
        start = _jailed if jailed else Unjailed
        try:
            started = start(argv, [theirs.fileno()], environment)
        finally:
            theirs.close()

        def watch() -> None:
            try:
                with started:
                    self._finished = started.finish(stop)
            except JailUnavailable as problem:
                self.problem = problem

        self._watch = threading.Thread(target=watch, name="gpu", daemon=True)
        self._watch.start()

    @property
    def over(self) -> bool:
        return not self._watch.is_alive()

    def send(self, files: Sequence[int]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._ours, [b"request\n"], list(files))

    def receive(self, deadline: float) -> dict[str, Any] | None:
        """The next line; None after `deadline`, and when the process is gone."""
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._ours.settimeout(left)
            try:
                piece = self._ours.recv(_MESSAGE_BYTES)
            except TimeoutError:
                return None
            except ConnectionResetError:
                piece = b""
            if not piece or len(self._rest) > _MESSAGE_BYTES:
                self.gone = True
                return None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            words = json.loads(line)
        except ValueError:
            return None
        return words if isinstance(words, dict) else None

    def hang_up(self) -> None:
        """Tells the process that nothing more will be asked: it ends."""
        self._ours.close()

    def wait(self, seconds: float) -> bool:
        self._watch.join(seconds)
        return self.over

    def last_words(self) -> str:
        self.wait(2.0)
        if self._finished is None:
            return "it does not answer"
        lines = self._finished.stderr.decode(errors="replace").strip().splitlines()
        return lines[-1][:500] if lines else f"{self._finished.reason}, status {self._finished.returncode}"


def _jailed(argv: Sequence[str], pass_fds: Sequence[int], env: Mapping[str, str]) -> jail.Started:
    return jail.Started(
        argv,
        limits=GPU,
        pass_fds=pass_fds,
        python=True,
        env=env,
        binds=[jail.Bind(Path("/sys"), Path("/sys")), *_library_binds()],
        devices=_device_files(),
    )


def _device_files() -> list[Path]:
    """What the driver opens: its control files and every card. Which card, the environment says; a process
    cannot be given one card's file alone without knowing its minor number."""
    return sorted(path for path in Path("/dev").glob("nvidia*") if path.is_char_device())


def _closed() -> str:
    """A clause, where the jail's user may not open the driver's files."""
    closed = [str(path) for path in _device_files() if path.stat().st_mode & 0o006 != 0o006]
    return f" (closed to the jail's user: {', '.join(closed)})" if closed else ""


def _library_path() -> dict[str, str]:
    path = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": path} if path else {}


def _library_binds() -> list[jail.Bind]:
    """Folders of the caller's own library path that lie outside of what every jail sees."""
    folders = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    outside = [f for f in folders if f.is_dir() and not f.is_relative_to("/usr")]
    return [jail.Bind(folder, folder) for folder in outside]

"""How fast the emulator is: `kernelwright bench emulator`.

Speeds are work done (fused multiply-adds, elements) in a second of CPU time, from the difference between
replays of few and of many launches, so that start and copies do not count. Everything is measured in several
rounds, and of each time the least is taken: neighbours on the same machine only ever slow things down, and
what lies a round apart they do not slow down alike. The kernels are this project's own (kernels.cu): they run
without the jail, whose processes cannot be timed from outside. serial.c is the same work in C;
numba_simulator.py the same kernels for Numba's simulator, where Numba is installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sandbox import native, toolchain
from sandbox.cancellation import Cancellation
from sandbox.emulator import client
from sandbox.emulator.client import Buffer, Lowered, Mode, Replay
from sandbox.emulator.trace import ReplayResult
from sandbox.emulator.wire import write_request
from sandbox.plan import DEVICE_BASE, GUARD_BYTES, Launch, LaunchPlan

HERE = Path(__file__).resolve().parent
SIDE, ITEMS, IMAGE, BINS = 512, 1 << 22, 2048, 256
SECONDS = 0.3  # of CPU time that a measurement takes at least
STEPS = {"150": 5, "1,000": 37, "3,000": 112}  # unrolled steps of lowering.cu for about so many instructions


@dataclass(frozen=True)
class Case:
    """A launch of a kernel and the work it does."""

    name: str
    unit: str
    work: int
    grid: tuple[int, int]
    block: tuple[int, int]
    arguments: tuple[np.ndarray[Any, Any] | int, ...]


def cases() -> list[Case]:
    random = np.random.default_rng(1)
    a, b = (random.random((SIDE, SIDE), dtype="f4") for _ in range(2))
    image = random.random((IMAGE, IMAGE), dtype="f4")
    product = (a, b, np.zeros_like(a), SIDE)
    picture = (image, np.zeros_like(image), IMAGE, IMAGE)
    sums = (random.random(ITEMS, dtype="f4"), np.zeros(64, "f4"), ITEMS)
    counts = (random.integers(0, 1 << 30, ITEMS, dtype="u4"), np.zeros(BINS, "u4"), ITEMS)
    tiles, strips = SIDE // 32, SIDE // 8
    return [
        Case("product_tiled", "FMA", SIDE**3, (tiles, tiles), (32, 32), product),
        Case("product_naive", "FMA", SIDE**3, (tiles, strips), (32, 8), product),
        Case("reduce", "element", ITEMS, (64, 1), (256, 1), sums),
        Case("histogram", "element", ITEMS, (64, 1), (256, 1), counts),
        Case("stencil", "point", (IMAGE - 2) ** 2, (IMAGE // 32, IMAGE // 8), (32, 8), picture),
    ]


def measure(say: Callable[[str], None], rounds: int) -> dict[str, Any]:
    """Everything, in `rounds`; seconds are CPU seconds, speeds are units of work a second."""
    with tempfile.TemporaryDirectory(prefix="kw-bench-") as scratch:
        folder = Path(scratch)
        lowering = _Lowering(folder)
        ptx = _ptx("kernels.cu", folder)
        lowered = {mode: client.lower([ptx], Cancellation(), mode=mode) for mode in _MODES}
        programs = {name: _serial_program(folder, command) for name, command in _SERIAL.items()}
        cells = [
            _Cell(case, column, lowered[mode], count, threads)
            for case in cases()
            for column, (mode, count, threads) in _COLUMNS.items()
        ]
        others = _Least()
        for number in range(1, rounds + 1):
            say(f"round {number} of {rounds}")
            lowering.again()
            for name, program in programs.items():
                others.take(name, _serial(program))
            others.take("numba simulator", _simulator())
            for cell in cells:
                cell.again()
    speeds = {(cell.column, cell.case.name): cell.speed() for cell in cells}
    rows = [_row(case, speeds, others.seconds, lowered["checked"]) for case in cases()]
    numba = rows[0]["numba simulator"] is not None
    return {"rounds": rounds, "kernels": rows, "lowering": lowering.result(), "numba": numba}


class _Least:
    """The shortest time so far, by two names."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], float] = {}

    def take(self, column: str, seconds: dict[str, float]) -> None:
        for name, took in seconds.items():
            self.seconds[column, name] = min(took, self.seconds.get((column, name), took))


# The emulator -------------------------------------------------------------------------------------------

_MODES: tuple[Mode, ...] = ("plain", "checked")
_THREADS = os.cpu_count() or 1
#: Column -> mode of the code, whether it counts, threads.
_COLUMNS: dict[str, tuple[Mode, bool, int]] = {
    "plain": ("plain", False, 1),
    "checked": ("checked", True, 1),
    "plain, all threads": ("plain", False, _THREADS),
}


def _row(
    case: Case,
    speeds: dict[tuple[str, str], float],
    others: dict[tuple[str, str], float],
    checked: Lowered,
) -> dict[str, Any]:
    counted, _, _ = _run(case, checked, launches=1, count=True, threads=1)
    lanes = sum(line.active_lanes for line in counted.launches[0].lines) / case.work
    row: dict[str, Any] = {"kernel": case.name, "unit": case.unit, "lane instructions a unit": lanes}
    row |= {column: speeds[column, case.name] for column in _COLUMNS}
    row["lane instructions a second"] = {mode: row[mode] * lanes for mode in _MODES}
    row["threads"] = _THREADS
    row |= {name: case.work / others[name, case.name] for name in _SERIAL}
    simulated = others.get(("numba simulator", case.name))
    row["numba simulator"] = None if simulated is None else 1 / simulated
    return row


class _Cell:
    """A kernel in one mode: the least seconds of few and of many launches, which the first time finds out."""

    FEW = 1

    def __init__(self, case: Case, column: str, lowered: Lowered, count: bool, threads: int) -> None:
        self.case, self.column = case, column
        self._lowered, self._count, self._threads = lowered, count, threads
        self._many = 0
        self._least = _Least()

    def again(self) -> None:
        if not self._many:
            self._find_many()
        self._least.take(
            "seconds", {"few": self._seconds(self.FEW), "all": self._seconds(self.FEW + self._many)}
        )

    def speed(self) -> float:
        """Work a second: of CPU time with one thread, of the clock with several."""
        took = self._least.seconds["seconds", "all"] - self._least.seconds["seconds", "few"]
        return self.case.work * self._many / max(took, 1e-9)

    def _find_many(self) -> None:
        """Launches whose time is no less than SECONDS."""
        wanted, many = SECONDS / self._threads, 3
        while (took := self._seconds(self.FEW + many) - self._seconds(self.FEW)) < wanted and many <= 1000:
            many = min(4 * many, int(many * wanted / max(took, wanted / 100)) + 1)
        self._many = many

    def _seconds(self, launches: int) -> float:
        _, cpu, wall = _run(
            self.case, self._lowered, launches=launches, count=self._count, threads=self._threads
        )
        return cpu if self._threads == 1 else wall


def _run(
    case: Case, lowered: Lowered, *, launches: int, count: bool, threads: int
) -> tuple[ReplayResult, float, float]:
    """One process: its result, CPU and clock seconds."""
    replayed = _replay(case, launches, count)
    with client.memory_file("bench-request") as request, client.memory_file("bench-result") as result:
        write_request(request, str(lowered.path), [replayed], seconds=300, threads=threads)
        command = [str(native.path("emulate")), str(request), str(result)]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.perf_counter()
        subprocess.run(command, pass_fds=[request, result], check=True, capture_output=True)
        wall = time.perf_counter() - began
        cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        [(outcome, _)] = client.results(result, [replayed])
    if outcome.status != "ok":
        raise RuntimeError(f"{case.name}: {outcome.status} {outcome.message} {outcome.fault}")
    return outcome, cpu, wall


def _replay(case: Case, launches: int, count: bool) -> Replay:
    buffers, parameters, address = [], bytearray(), DEVICE_BASE + GUARD_BYTES
    for index, argument in enumerate(case.arguments):
        if isinstance(argument, int):
            parameters += struct.pack("<i", argument)
            continue
        parameters += bytes(-len(parameters) % 8) + struct.pack("<Q", address)
        data = argument.tobytes()
        buffers.append(Buffer(f"a{index}", address, data, len(data), False, True, 0))
        address += -(-len(data) // GUARD_BYTES) * GUARD_BYTES + GUARD_BYTES
    launch = Launch(
        module=0,
        kernel=case.name,
        grid=(*case.grid, 1),
        block=(*case.block, 1),
        shared_bytes=0,
        parameters=parameters.hex(),
        cooperative=False,
    )
    return Replay(LaunchPlan(operations=[launch] * launches), buffers, count)


# Lowering -----------------------------------------------------------------------------------------------


#: What is lowered -> its mode and the CPU it is for.
_LOWERINGS: dict[str, tuple[client.Mode, client.Cpu]] = {
    "plain": ("plain", "native"),
    "checked": ("checked", "native"),
    "plain, without AVX-512": ("plain", "x86-64-v3"),
    "checked, without AVX-512": ("checked", "x86-64-v3"),
}


class _Lowering:
    """CPU seconds from PTX text to a shared object, the interpreter's start told apart."""

    def __init__(self, folder: Path) -> None:
        self._texts = {
            about: _ptx("lowering.cu", folder, f"-DSTEPS={steps}") for about, steps in STEPS.items()
        }
        self._least = _Least()

    def again(self) -> None:
        nothing: dict[str, Any] = {"modules": [], "kernels": None, "mode": "plain", "cpu": "native"}
        self._least.take("start", {"": _lowering_seconds(nothing)})
        for about, text in self._texts.items():
            for name, (mode, cpu) in _LOWERINGS.items():
                request = {"modules": [text], "kernels": None, "mode": mode, "cpu": cpu}
                self._least.take(about, {name: _lowering_seconds(request)})

    def result(self) -> dict[str, Any]:
        seconds = self._least.seconds
        start = seconds["start", ""]
        rows: list[dict[str, Any]] = [
            {"about": about, "instructions": _instructions(text)}
            | {name: max(0.0, seconds[about, name] - start) for name in _LOWERINGS}
            for about, text in self._texts.items()
        ]
        return {"start": start, "rows": rows}


def _instructions(text: str) -> int:
    lines = [line.strip() for line in text.split("\n")]
    return sum(line.endswith(";") and not line.startswith(".") for line in lines)


def _lowering_seconds(request: dict[str, Any]) -> float:
    """CPU seconds of one compiler process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[2])}
    with client.memory_file("bench-product") as product:
        command = [sys.executable, "-m", "sandbox.emulator.lowering.compile", str(product)]
        subprocess.run(
            command,
            input=json.dumps(request).encode(),
            pass_fds=[product],
            check=True,
            capture_output=True,
            env=environment,
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _ptx(source: str, folder: Path, *options: str) -> str:
    nvcc = str(toolchain.find_toolkit().nvcc)
    product = folder / "bench.ptx"
    command = [nvcc, "-arch=sm_90", "-lineinfo", *options, "-ptx", str(HERE / source), "-o", str(product)]
    subprocess.run(command, check=True, capture_output=True)
    return product.read_text()


# Others -------------------------------------------------------------------------------------------------

_SERIAL = {
    "gcc -O2": ["gcc", "-O2"],
    "g++ -O3 -march=native": ["g++", "-x", "c++", "-fpermissive", "-w", "-O3", "-march=native"],
}


def _serial_program(folder: Path, command: Sequence[str]) -> Path:
    program = folder / f"serial-{command[0]}"
    subprocess.run([*command, str(HERE / "serial.c"), "-o", str(program)], check=True)
    return program


def _serial(program: Path) -> dict[str, float]:
    """Seconds by kernel."""
    sizes = [str(SIDE), str(ITEMS), str(IMAGE)]
    printed = subprocess.run([str(program), *sizes], check=True, capture_output=True, text=True).stdout
    return {name: float(seconds) for name, seconds in (line.split() for line in printed.splitlines())}


def _simulator() -> dict[str, float]:
    """Seconds for a unit of work in Numba's simulator; empty without Numba."""
    if importlib.util.find_spec("numba") is None:
        return {}
    command = [sys.executable, str(HERE / "numba_simulator.py")]
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    rows = [line.split() for line in printed.splitlines()]
    return {name: float(seconds) / float(work) for name, seconds, work in rows}


def table(result: dict[str, Any]) -> str:
    """The result for people."""
    lines = [
        f"The least time of {result['rounds']} rounds for each number.",
        "",
        "G units of work a second a core; checked: with all checks and counters",
        "| kernel | unit | plain | checked | plain/checked | all cores, plain | gcc -O2 | g++ -O3 | Numba |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in result["kernels"]:
        numba = row["numba simulator"]
        speeds = [row["plain"], row["checked"]]
        cells = [row["kernel"], row["unit"], *(f"{speed / 1e9:.3f}" for speed in speeds)]
        cells += [f"{speeds[0] / speeds[1]:.1f}", f"{row['plain, all threads'] / 1e9:.3f}"]
        cells += [f"{row[name] / 1e9:.3f}" for name in _SERIAL]
        cells.append(f"{numba / 1e9:.6f}" if numba else "not installed")
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| kernel | G lane instructions a second, plain | checked |", "| --- | --- | --- |"]
    for row in result["kernels"]:
        rates = row["lane instructions a second"]
        lines.append(f"| {row['kernel']} | {rates['plain'] / 1e9:.2f} | {rates['checked'] / 1e9:.2f} |")
    start = result["lowering"]["start"]
    lines += ["", f"Lowering, CPU seconds without the {start:.2f} s in which Python starts:"]
    lines += [f"| PTX instructions | {' | '.join(_LOWERINGS)} |", "| --- " * (1 + len(_LOWERINGS)) + "|"]
    for row in result["lowering"]["rows"]:
        cells = [f"{row['instructions']:,}", *(f"{row[name]:.2f}" for name in _LOWERINGS)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)

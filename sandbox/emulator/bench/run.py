"""How fast the emulator is: `kernelwright bench emulator`.

Speeds are work done (fused multiply-adds, elements) in a second of CPU time, from the difference between
replays of few and of many launches, so that start and copies do not count. The kernels are this project's own
(kernels.cu): they run without the jail, whose processes cannot be timed from outside. serial.c is the same
work in C; numba_simulator.py the same kernels for Numba's simulator, where Numba is installed.
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


def measure(say: Callable[[str], None]) -> dict[str, Any]:
    """Everything; seconds are CPU seconds, speeds are units of work a second."""
    with tempfile.TemporaryDirectory(prefix="kw-bench-") as scratch:
        folder = Path(scratch)
        say("lowering")
        lowering = _lowering(folder)
        ptx = _ptx("kernels.cu", folder)
        say("serial C")
        serial = {name: _serial(folder, command) for name, command in _SERIAL.items()}
    say("Numba's simulator")
    simulator = _simulator()
    lowered = {mode: client.lower([ptx], Cancellation(), mode=mode) for mode in _MODES}
    rows = []
    for case in cases():
        say(case.name)
        row = _emulated(case, lowered)
        for name, seconds in serial.items():
            row[name] = case.work / seconds[case.name]
        row["numba simulator"] = simulator.get(case.name)
        rows.append(row)
    return {"kernels": rows, "lowering": lowering, "numba": bool(simulator)}


# The emulator -------------------------------------------------------------------------------------------

_MODES: tuple[Mode, ...] = ("plain", "checked")


def _emulated(case: Case, lowered: dict[Mode, Lowered]) -> dict[str, Any]:
    threads = os.cpu_count() or 1
    counted, _, _ = _run(case, lowered["checked"], launches=1, count=True, threads=1)
    lanes = sum(line.active_lanes for line in counted.launches[0].lines)
    plain = _speed(case, lowered["plain"], count=False)
    checked = _speed(case, lowered["checked"], count=True)
    return {
        "kernel": case.name,
        "unit": case.unit,
        "lane instructions a unit": lanes / case.work,
        "plain": plain,
        "checked": checked,
        "lane instructions a second": {
            "plain": plain * lanes / case.work,
            "checked": checked * lanes / case.work,
        },
        "threads": threads,
        "plain, all threads": _speed(case, lowered["plain"], count=False, threads=threads),
    }


def _speed(case: Case, lowered: Lowered, *, count: bool, threads: int = 1) -> float:
    """Work a second: of CPU time with one thread, of the clock with several."""

    def seconds(launches: int) -> float:
        _, cpu, wall = _run(case, lowered, launches=launches, count=count, threads=threads)
        return cpu if threads == 1 else wall

    few, many = 1, 3
    while True:
        took = seconds(few + many) - seconds(few)
        if took >= SECONDS / threads or many > 1000:
            return case.work * many / max(took, 1e-9)
        many = min(4 * many, int(many * SECONDS / max(took, SECONDS / 100)) + 1)


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


def _lowering(folder: Path) -> dict[str, Any]:
    """CPU seconds from PTX text to a shared object, the interpreter's start told apart."""
    empty = json.dumps({"modules": [], "kernels": None, "mode": "plain"}).encode()
    start = min(_lowering_seconds(empty) for _ in range(3))
    rows = []
    for name, steps in STEPS.items():
        text = _ptx("lowering.cu", folder, f"-DSTEPS={steps}")
        row: dict[str, Any] = {"about": name, "instructions": _instructions(text)}
        for mode in _MODES:
            request = json.dumps({"modules": [text], "kernels": None, "mode": mode}).encode()
            row[mode] = max(0.0, min(_lowering_seconds(request) for _ in range(3)) - start)
        rows.append(row)
    return {"start": start, "rows": rows}


def _instructions(text: str) -> int:
    lines = [line.strip() for line in text.split("\n")]
    return sum(line.endswith(";") and not line.startswith(".") for line in lines)


def _lowering_seconds(request: bytes) -> float:
    """CPU seconds of one compiler process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[2])}
    with client.memory_file("bench-product") as product:
        command = [sys.executable, "-m", "sandbox.emulator.lowering.compile", str(product)]
        subprocess.run(
            command, input=request, pass_fds=[product], check=True, capture_output=True, env=environment
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


def _serial(folder: Path, command: Sequence[str]) -> dict[str, float]:
    program = folder / "serial"
    subprocess.run([*command, str(HERE / "serial.c"), "-o", str(program)], check=True)
    sizes = [str(SIDE), str(ITEMS), str(IMAGE)]
    printed = subprocess.run([str(program), *sizes], check=True, capture_output=True, text=True).stdout
    return {name: float(seconds) for name, seconds in (line.split() for line in printed.splitlines())}


def _simulator() -> dict[str, float]:
    """Work a second in Numba's simulator; empty without Numba."""
    if importlib.util.find_spec("numba") is None:
        return {}
    command = [sys.executable, str(HERE / "numba_simulator.py")]
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    rows = [line.split() for line in printed.splitlines()]
    return {name: float(work) / float(seconds) for name, seconds, work in rows}


def table(result: dict[str, Any]) -> str:
    """The result for people."""
    lines = [
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
    lines += ["| PTX instructions | plain | checked |", "| --- | --- | --- |"]
    for row in result["lowering"]["rows"]:
        lines.append(f"| {row['instructions']:,} | {row['plain']:.2f} | {row['checked']:.2f} |")
    return "\n".join(lines)

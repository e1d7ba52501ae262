"""Running kernels of the tests' own: PTX text or CUDA compiled by the real nvcc, arrays in, arrays out."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sandbox import toolchain
from sandbox.cancellation import Cancellation
from sandbox.emulator.client import Buffer, Cpu, Lowered, Mode, Replay, lower, replay
from sandbox.emulator.trace import DeviceFault, LaunchTrace, LineCounts, ReplayResult
from sandbox.plan import DEVICE_BASE, GUARD_BYTES, Launch, LaunchPlan, Operation
from sandbox.ptx import parameter_layout

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Out:
    """An array that starts uninitialised."""

    count: int
    dtype: str = "float32"


@dataclass(frozen=True)
class Run:
    result: ReplayResult
    arrays: dict[str, Array]

    @property
    def fault(self) -> DeviceFault:
        assert self.result.status == "fault", self.result
        assert self.result.fault is not None
        return self.result.fault

    @property
    def trace(self) -> LaunchTrace:
        assert self.result.status == "ok", self.result
        return self.result.launches[-1]

    def total(self, field: str) -> int:
        return sum(int(getattr(line, field)) for line in self.trace.lines)

    def line(self, number: int) -> LineCounts:
        return next(line for line in self.trace.lines if line.line == number)


@dataclass(frozen=True)
class Prepared:
    replay: Replay
    kinds: dict[str, str]  # buffer -> numpy type


class Machine:
    """A PTX module, lowered: some of its kernels or all, with more modules to link to."""

    def __init__(
        self,
        ptx: str,
        *others: str,
        kernels: Sequence[str] | None = None,
        mode: Mode = "checked",
        cpu: Cpu = "native",
    ) -> None:
        self.layout = parameter_layout(ptx)
        chosen = None if kernels is None else [(0, name) for name in kernels]
        self.lowered: Lowered = lower([ptx, *others], Cancellation(), chosen, mode=mode, cpu=cpu)

    def prepare(
        self,
        kernel: str,
        grid: int | tuple[int, int],
        block: int | tuple[int, int],
        *arguments: Array | Out | np.generic | int | float,
        shared: int = 0,
        before: Sequence[Operation] = (),
        count: bool = True,
        cooperative: bool = False,
        keep_going: bool = False,
    ) -> Prepared:
        """Arrays are called a0, a1, ... by their place among the arguments; all are read back."""
        buffers: list[Buffer] = []
        parameters = bytearray()
        address = DEVICE_BASE + GUARD_BYTES
        kinds: dict[str, str] = {}
        for index, (argument, (offset, size)) in enumerate(zip(arguments, self.layout[kernel], strict=True)):
            parameters += bytes(offset - len(parameters))
            if isinstance(argument, np.ndarray | Out):
                name = f"a{index}"
                given = isinstance(argument, np.ndarray)
                kinds[name] = str(argument.dtype)
                data = np.ascontiguousarray(argument).tobytes() if given else None
                length = len(data) if data is not None else argument.count * np.dtype(argument.dtype).itemsize
                buffers.append(Buffer(name, address, data, length, True, given, 0xFF))
                parameters += struct.pack("<Q", address)
                address += -(-length // GUARD_BYTES) * GUARD_BYTES + GUARD_BYTES
            elif isinstance(argument, np.generic):
                parameters += argument.tobytes()
            else:
                code = {4: "<i", 8: "<q"}[size] if isinstance(argument, int) else "<f"
                parameters += struct.pack(code, argument)
        launch = Launch(
            module=0,
            kernel=kernel,
            grid=(grid, 1, 1) if isinstance(grid, int) else (*grid, 1),
            block=(block, 1, 1) if isinstance(block, int) else (*block, 1),
            shared_bytes=shared,
            parameters=parameters.hex(),
            cooperative=cooperative,
        )
        return Prepared(Replay(LaunchPlan(operations=[*before, launch]), buffers, count, keep_going), kinds)

    def run_all(
        self, prepared: Sequence[Prepared], *, seconds: float = 10, threads: int = 2, seed: int = 0
    ) -> list[Run]:
        """In one process, up to the first that does not end well."""
        results = replay(
            self.lowered,
            [replace(item.replay, seed=seed) for item in prepared],
            seconds=seconds,
            threads=threads,
            cancel=Cancellation(),
        )
        return [
            Run(result, {name: np.frombuffer(data, item.kinds[name]) for name, data in read.items()})
            for (result, read), item in zip(results, prepared, strict=False)
        ]

    def run(
        self,
        kernel: str,
        grid: int | tuple[int, int],
        block: int | tuple[int, int],
        *arguments: Array | Out | np.generic | int | float,
        seconds: float = 10,
        threads: int = 2,
        seed: int = 0,
        **launch: Any,
    ) -> Run:
        [run] = self.run_all(
            [self.prepare(kernel, grid, block, *arguments, **launch)],
            seconds=seconds,
            threads=threads,
            seed=seed,
        )
        return run


def compile_cuda(source: str, folder: Path, arch: str = "sm_90", options: Sequence[str] = ()) -> str:
    """PTX of the tests' own CUDA."""
    (folder / "kernels.cu").write_text(source)
    subprocess.run(
        [
            str(toolchain.find_toolkit().nvcc),
            f"-arch={arch}",
            *(options or ["-lineinfo"]),
            "-ptx",
            "kernels.cu",
            "-o",
            "kernels.ptx",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return (folder / "kernels.ptx").read_text()


def line_of(source: str, text: str) -> int:
    """1-based line of the only line that contains `text`."""
    found = [number for number, line in enumerate(source.split("\n"), 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]

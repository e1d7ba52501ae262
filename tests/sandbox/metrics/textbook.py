"""Textbook kernels, compiled by nvcc and counted by the emulator.

python tests/sandbox/metrics/textbook.py        prints the table of docs/metrics.md
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from sandbox import toolchain
from sandbox.cancellation import Cancellation
from sandbox.emulator import client as emulator
from sandbox.metrics import WEIGHTS, measure
from sandbox.plan import DEVICE_BASE, GUARD_BYTES, Launch, LaunchPlan
from sandbox.targets import TARGETS
from sandbox.types import KernelMetrics, Metrics

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "textbook"
TARGET = TARGETS["sm_90"]
Argument = int | float | str  # str: the array of that name


@dataclass(frozen=True)
class Variant:
    """One launch of one kernel of `tests/fixtures/textbook/<file>.cu`."""

    file: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    arrays: tuple[tuple[str, str, int], ...]  # name, dtype, elements; inputs first
    outputs: int = 1  # how many of the arrays, from the end, start as zeros


def _saxpy(kernel: str, n: int = 32 * 512, per_thread: int = 1) -> Variant:
    arrays = (("x", "float32", n), ("y", "float32", n))
    return Variant(
        "saxpy", kernel, (n // 256 // per_thread, 1, 1), (256, 1, 1), (n, 2.0, "x", "y"), arrays, 0
    )


def _square(file: str, kernel: str, n: int, grid: tuple[int, int], block: tuple[int, int]) -> Variant:
    names = ("a", "b", "c") if file == "matmul" else ("a", "c")
    arrays = tuple((name, "float32", n * n) for name in names)
    return Variant(file, kernel, (*grid, 1), (*block, 1), (n, *names), arrays)


def _softmax(kernel: str, grid: int, rows: int = 256, cols: int = 512) -> Variant:
    arrays = (("x", "float32", rows * cols), ("y", "float32", rows * cols))
    return Variant("softmax", kernel, (grid, 1, 1), (128, 1, 1), (rows, cols, "x", "y"), arrays)


def _histogram(kernel: str, grid: int, n: int = 65536) -> Variant:
    arrays = (("x", "uint8", n), ("bins", "int32", 256))
    arguments: tuple[Argument, ...] = (n, 8, "x", "bins") if "one" in kernel else (n, "x", "bins")
    return Variant("histogram", kernel, (grid, 1, 1), (256, 1, 1), arguments, arrays)


def _map(file: str, kernel: str, n: int = 16384) -> Variant:
    arrays = (("x", "float32", n), ("y", "float32", n))
    arguments: tuple[Argument, ...] = ("x", "y") if file == "barriers" else (n, "x", "y")
    return Variant(file, kernel, (n // 256, 1, 1), (256, 1, 1), arguments, arrays)


VARIANTS = {
    variant.kernel: variant
    for variant in (
        _saxpy("saxpy_strided"),
        _saxpy("saxpy_coalesced"),
        _saxpy("saxpy_float4", per_thread=4),
        _square("transpose", "transpose_naive", 256, (8, 8), (32, 8)),
        _square("transpose", "transpose_tile", 256, (8, 8), (32, 8)),
        _square("transpose", "transpose_padded", 256, (8, 8), (32, 8)),
        _square("matmul", "matmul_row_per_thread", 128, (1, 128), (128, 1)),
        _square("matmul", "matmul_naive", 128, (8, 8), (16, 16)),
        _square("matmul", "matmul_tiled_conflicts", 128, (8, 8), (16, 16)),
        _square("matmul", "matmul_tiled", 128, (8, 8), (16, 16)),
        _square("matmul", "matmul_registers", 128, (2, 2), (256, 1)),
        _softmax("softmax_thread_per_row", 2),
        _softmax("softmax_warp_per_row", 64),
        _histogram("histogram_one_address", 256),
        _histogram("histogram_global", 256),
        _histogram("histogram_private", 16),
        _map("branches", "branches_by_thread"),
        _map("branches", "branches_by_warp"),
        _map("barriers", "barriers_useless"),
        _map("barriers", "barriers_needed"),
    )
}


@cache
def compiled(file: str) -> toolchain.Compiled:
    """A candidate must define `launch`; here the plan is written by hand, so an empty one does."""
    source = (FIXTURES / f"{file}.cu").read_text() + '\nextern "C" void launch() {}\n'
    result = toolchain.compile_candidate(source, target=TARGET.arch, cancel=Cancellation())
    assert result.ok, result.compilation.log
    return result


@cache
def replayed(kernel: str) -> Metrics:
    variant = VARIANTS[kernel]
    built = compiled(variant.file)
    buffers = _buffers(variant)
    addresses = {buffer.name: buffer.address for buffer in buffers}
    launch = Launch(
        module=0,
        kernel=variant.kernel,
        grid=variant.grid,
        block=variant.block,
        shared_bytes=0,
        parameters=_parameter_block(variant.arguments, addresses).hex(),
    )
    cancel = Cancellation()
    replay = emulator.Replay(plan=LaunchPlan(operations=[launch]), buffers=buffers, count=True)
    lowered = emulator.lower(built.ptx, cancel)
    [(result, _)] = emulator.replay(lowered, [replay], seconds=60.0, threads=1, cancel=cancel)
    assert result.status == "ok", result
    return measure(result.launches, built.compilation.kernels, TARGET, {})


def metrics_of_kernel(kernel: str) -> KernelMetrics:
    [only] = replayed(kernel).kernels
    return only


def line_of(kernel: str, text: str) -> int:
    """The first line after the kernel's head that contains `text`."""
    lines = (FIXTURES / f"{VARIANTS[kernel].file}.cu").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if f" {kernel}(" in line)
    return next(number for number, line in enumerate(lines, 1) if number > start and text in line)


def _buffers(variant: Variant) -> list[emulator.Buffer]:
    random = np.random.default_rng(7)
    cursor = DEVICE_BASE + GUARD_BYTES
    buffers = []
    for position, (name, dtype, elements) in enumerate(variant.arrays):
        data = _values(random, dtype, elements, zeros=position >= len(variant.arrays) - variant.outputs)
        buffers.append(
            emulator.Buffer(
                name=name,
                address=cursor,
                data=data,
                bytes=len(data),
                read_back=False,
                initialised=True,
                poison_byte=0,
            )
        )
        cursor += -(-len(data) // GUARD_BYTES) * GUARD_BYTES + 2 * GUARD_BYTES
    return buffers


def _values(random: np.random.Generator, dtype: str, elements: int, *, zeros: bool) -> bytes:
    if zeros:
        return bytes(elements * np.dtype(dtype).itemsize)
    if dtype == "uint8":
        return random.integers(0, 256, elements).astype(dtype).tobytes()
    return random.standard_normal(elements).astype(dtype).tobytes()


def _parameter_block(arguments: Sequence[Argument], addresses: dict[str, int]) -> bytes:
    """Laid out as PTX lays out `.param`: each at a multiple of its size."""
    block = b""
    for argument in arguments:
        if isinstance(argument, str):
            block += bytes(-len(block) % 8) + struct.pack("<Q", addresses[argument])
        else:
            block += struct.pack("<i" if isinstance(argument, int) else "<f", argument)
    return block


def table() -> str:
    """One row per kernel: the score and the families, as in docs/metrics.md."""
    heads = ["kernel", "score", *(name.replace("_", " ") for name in WEIGHTS)]
    rows = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(WEIGHTS) + 1)]
    for kernel in VARIANTS:
        metrics = replayed(kernel)
        cells = [f"{metrics.families[name]:.2f}" if name in metrics.families else "" for name in WEIGHTS]
        rows.append(f"| `{kernel}` | {metrics.structural_score:.1f} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())

"""Code for a CPU without AVX-512 does what this machine's code does: results, counts and findings."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from emulated import Machine, Out, Prepared, compile_cuda
from test_kernels import SOURCE as KERNELS

from sandbox.emulator.client import Cpu, Mode
from sandbox.emulator.lowering.compile import cpu_and_features, vector_bits

HAS_WIDE = vector_bits(cpu_and_features("native")[1]) == 512
NAMES = ("saxpy", "saxpy_vector", "matmul", "softmax", "total", "histogram", "transpose", "stencil")
FAULTY = """
extern "C" __global__ void shifted(const int *x, int *y) { y[threadIdx.x] = x[threadIdx.x + 1]; }
extern "C" __global__ void unset(int *x, int *y) { y[threadIdx.x] = x[threadIdx.x] + 1; }
"""

pytestmark = [
    pytest.mark.usefixtures("jail"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="it is about x86-64 CPUs"),
]


@pytest.fixture(scope="module")
def ptx(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compile_cuda(KERNELS, tmp_path_factory.mktemp("kernels"))


def launches(machine: Machine) -> list[Prepared]:
    """One of each kernel in `NAMES`, on the same numbers each time."""
    rng = np.random.default_rng(11)
    x, y = rng.standard_normal((2, 1200), dtype="f4")
    a, b = rng.standard_normal((2, 45, 45), dtype="f4")
    wide, bytes_ = rng.standard_normal(2500), rng.integers(0, 256, 4000).astype("u1")
    # One block sums: the order in which blocks add is nobody's to choose.
    return [
        machine.prepare("saxpy", 5, 256, 1200, np.float32(2.5), x, y),
        machine.prepare("saxpy_vector", 2, 64, 300, np.float32(-1.5), x, y),
        machine.prepare("matmul", (3, 3), (16, 16), 45, a, b, Out(45 * 45)),
        machine.prepare("softmax", 3, 128, 333, x[:999], Out(999)),
        machine.prepare("total", 1, 128, 2500, wide, np.zeros(1), shared=128 * 8),
        machine.prepare("histogram", 3, 96, 4000, bytes_, np.zeros(256, "u4")),
        machine.prepare("transpose", (4, 4), (16, 16), 50, wide, Out(2500, "float64")),
        machine.prepare("stencil", (4, 6), (16, 8), 45, a, Out(45 * 45)),
    ]


def wide_registers(code: Path) -> bool:
    """AVX-512's: its vectors, or its masks."""
    text = subprocess.run(["objdump", "-d", code], capture_output=True, text=True, check=True).stdout
    assert "%ymm" in text
    return re.search(r"%zmm|%k[0-7]\b", text) is not None


@pytest.mark.parametrize("mode", ["checked", "plain"])
def test_kernels_do_the_same(ptx: str, mode: Mode) -> None:
    cpus: tuple[Cpu, ...] = ("native", "x86-64-v3")
    machines = [Machine(ptx, kernels=NAMES, mode=mode, cpu=cpu) for cpu in cpus]
    assert [wide_registers(machine.lowered.path) for machine in machines] == [HAS_WIDE, False]
    one, other = (machine.run_all(launches(machine), threads=1, seconds=60) for machine in machines)
    assert [run.result.status for run in one + other] == ["ok"] * 2 * len(NAMES)
    for name, here, there in zip(NAMES, one, other, strict=True):
        for array in here.arrays:
            assert here.arrays[array].tobytes() == there.arrays[array].tobytes(), (name, array)
        assert here.result.launches == there.result.launches, name


def test_faults_are_the_same(tmp_path: Path) -> None:
    text = compile_cuda(FAULTY, tmp_path)
    for kernel, given, kind in (
        ("shifted", np.arange(64, dtype="i4"), "out of bounds"),
        ("unset", Out(64, "int32"), "uninitialised"),
    ):
        here, there = (
            Machine(text, cpu=cpu).run(kernel, 1, 64, given, Out(64, "int32")).fault
            for cpu in ("native", "x86-64-v3")
        )
        assert here == there
        assert here.kind == kind

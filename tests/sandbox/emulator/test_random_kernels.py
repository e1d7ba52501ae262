"""Random kernels on both sides: compiled by nvcc and emulated, and compiled by g++ and run in a jail."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from emulated import Machine, Out
from on_the_host import run_on_the_host
from random_kernels import DEVICE, HOST, MAIN, THREADS, Writer

from sandbox import toolchain

BLOCKS = 2
CORNERS = [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]


def inputs(seed: int) -> np.ndarray:
    dice = np.random.default_rng(seed)
    values = dice.integers(0, 1 << 64, BLOCKS * THREADS * 4, dtype=np.uint64)
    small = dice.integers(0, 300, len(values), dtype=np.uint64)
    corners = dice.choice(np.array(CORNERS, np.uint64), len(values))
    return np.choose(dice.integers(0, 3, len(values)), [values, small, corners])


@pytest.mark.parametrize(("seed", "flag", "count"), [(1, "-lineinfo", 12), (2, "-G", 3)])
def test_random_kernels_agree(jail: None, seed: int, flag: str, count: int, tmp_path: Path) -> None:
    names = [f"kernel{number}" for number in range(count)]
    bodies = "\n".join(Writer(seed * 1000 + number).kernel(name) for number, name in enumerate(names))
    given = inputs(seed)
    main = MAIN.format(blocks=BLOCKS, names=", ".join(names))
    output = run_on_the_host(HOST + bodies + main, given.tobytes())
    wanted = np.frombuffer(output, np.uint64).reshape(count, -1, 8)

    (tmp_path / "device.cu").write_text(DEVICE + bodies)
    nvcc = str(toolchain.find_toolkit().nvcc)
    command = [nvcc, "-arch=sm_90", "-fmad=false", flag, "-ptx", "device.cu", "-o", "device.ptx", "-w"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    machine = Machine((tmp_path / "device.ptx").read_text())
    size = BLOCKS * THREADS * 8
    prepared = [
        machine.prepare(name, BLOCKS, THREADS, given, Out(size, "uint64"), count=False) for name in names
    ]
    runs = machine.run_all(prepared, seconds=60)
    assert [run.result.status for run in runs] == ["ok"] * count, runs[-1].result
    for number, run in enumerate(runs):
        wrong = np.argwhere(run.arrays["a1"].reshape(-1, 8) != wanted[number])
        assert not len(wrong), (names[number], seed, wrong[:5].tolist())

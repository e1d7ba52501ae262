"""Races between blocks with a load that is checked by the batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of

SOURCE = r"""
extern "C" __global__ void neighbours(float *x, float *y) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    y[t] = x[t] + x[t + 32];
  } else {
    x[t + 32] = t;   // another block reads it
  }
}
"""


@pytest.mark.usefixtures("jail")
def test_a_block_writes_what_another_one_reads(tmp_path: Path) -> None:
    machine = Machine(compile_cuda(SOURCE, tmp_path))
    fault = machine.run("neighbours", 2, 32, np.zeros(64, "f4"), Out(32), threads=1).fault
    assert (fault.kind, fault.line) == ("race", line_of(SOURCE, "// another block reads it"))

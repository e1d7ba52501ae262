"""The user's own C, timed."""

from __future__ import annotations

import os

import numpy as np
import pytest

from sandbox.cancellation import Cancellation
from sandbox.tasks.base import Baseline, Inputs
from sandbox.tasks.c.task import load_c
from sandbox.timing import BLOCKS

pytestmark = pytest.mark.usefixtures("jail")


def timed(source: str, **sizes: int) -> list[Baseline]:
    task = load_c(source, filename="f.c", entry=None, inputs=Inputs(sizes=sizes), cancel=Cancellation())
    draws = [draw for draw in task.draws(b"seed") if draw.representative]
    return task.baselines(draws, Cancellation())


def test_more_work_takes_longer() -> None:
    source = """
void f(int n, const float *x, float *y) {
  for (int i = 0; i < n; i++) {
    float v = x[i];
    for (int k = 0; k < REPEAT; k++) v = v * 0.5f + 1.0f;
    y[i] = v;
  }
}
"""
    [short] = timed(source.replace("REPEAT", "10"), n=20000)
    [long] = timed(source.replace("REPEAT", "1000"), n=20000)
    assert short.name == "c"
    assert short.microseconds.shape == (BLOCKS, 1)
    assert np.median(long.microseconds) > 10 * np.median(short.microseconds) > 0


def test_what_is_written_over_is_new_in_every_trial() -> None:
    """It would be slower and slower, or overflow, on its own results."""
    source = "void f(int n, float *x) { for (int i = 0; i < n; i++) for (; x[i] < 50.0f; ) x[i] += 0.01f; }\n"
    [found] = timed(source, n=200)
    assert np.median(found.microseconds) > 100


def test_openmp_as_written_is_a_baseline_too() -> None:
    source = """
void f(int n, const float *x, float *y) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = 2 * x[i];
}
"""
    assert [b.name for b in timed(source, n=1000)] == ["c", f"c, OpenMP on {os.cpu_count()} cores"]

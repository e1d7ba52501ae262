"""The representative size: work enough, never too much, and results that mean something."""

from __future__ import annotations

import numpy as np
import pytest
from c_cases import SEED, load

from sandbox.cancellation import Cancellation
from sandbox.tasks.base import Inputs
from sandbox.tasks.c.task import CTask

CONV = """
    void conv(int batch, int cin, int h, int w, int cout, int k, const float *x, const float *wt, float *y) {
        int oh = h - k + 1, ow = w - k + 1;
        for (int b = 0; b < batch; b++)
            for (int co = 0; co < cout; co++)
                for (int i = 0; i < oh; i++)
                    for (int j = 0; j < ow; j++) {
                        float acc = 0;
                        for (int ci = 0; ci < cin; ci++)
                            for (int u = 0; u < k; u++)
                                for (int v = 0; v < k; v++)
                                    acc += x[((b * cin + ci) * h + i + u) * w + j + v]
                                        * wt[((co * cin + ci) * k + u) * k + v];
                        y[((b * cout + co) * oh + i) * ow + j] = acc;
                    }
    }
"""
SIX = """
    void six(int a, int b, int c, int d, int e, int f, const float *x, float *y) {
        for (int i = 0; i < a * b * c * d * e * f; i++) y[i] = 2 * x[i];
    }
"""
TRAPEZOID = """
    #include <math.h>
    double trapezoid(double a, double b, int n) {
        double s = 0;
        for (int i = 0; i < n; i++) s += exp(-(a + i * (b - a) / n));
        return s;
    }
"""
NESTED = """
    double table(int n, int m) {
        double s = 0;
        for (int i = 1; i <= n; i++) for (int j = 1; j <= m; j++) s += 1.0 / (i + j);
        return s;
    }
"""
BUBBLE = """
    void bubble(int n, float *a) {
        int swapped = 1;
        while (swapped) {
            swapped = 0;
            for (int i = 0; i + 1 < n; i++)
                if (a[i] > a[i + 1]) { float t = a[i]; a[i] = a[i + 1]; a[i + 1] = t; swapped = 1; }
        }
    }
"""
CUBIC = """
    int hidden(int n, const int *x) {
        int i = 0, s = 0;
        while (i < n) {
            int j = 0;
            while (j < n) { int k = j; while (k > 0) { s += x[i] ^ k; k--; } j++; }
            i++;
        }
        return s;
    }
"""
MANDEL = """
    void mandel(int w, int h, int limit, int *out) {
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++) {
                float cr = 3.0f * x / w - 2, ci = 2.0f * y / h - 1, r = 0, i = 0;
                int k = 0;
                while (k < limit && r * r + i * i < 4) {
                    float t = r * r - i * i + cr;
                    i = 2 * r * i + ci;
                    r = t;
                    k++;
                }
                out[y * w + x] = k;
            }
    }
"""
GROWS = """
    void grow(int n, int steps, float *u) {
        for (int s = 0; s < steps; s++) for (int i = 0; i < n; i++) u[i] = u[i] * u[i] * u[i] * 8 + 3;
    }
"""
CHAOS = """
    #include <math.h>
    void chaos(int n, int steps, const float *x, float *y) {
        for (int i = 0; i < n; i++) {
            float v = 0.5f + 0.3f * sinf(x[i]);
            for (int k = 0; k < steps; k++) v = 3.9f * v * (1 - v);
            y[i] = v;
        }
    }
"""
SMOOTH = """
    void smooth(int n, int steps, float *u) {
        for (int s = 0; s < steps; s++) for (int i = 1; i < n; i++) u[i] = 0.5f * (u[i] + u[i - 1]);
    }
"""


def outputs(task: CTask) -> int:
    """Elements written on the representative draw."""
    draw = task.draws(SEED)[0]
    return sum(draw.extents[p.name] for p in task.spec.parameters if p.kind == "array" and p.access != "read")


@pytest.mark.parametrize("source", [CONV, SIX], ids=["conv", "six"])
def test_outputs_are_never_few_where_many_sizes_multiply(source: str) -> None:
    task = load(source)
    assert outputs(task) >= 1000
    assert min(task.draws(SEED)[0].extents.values()) > 0


@pytest.mark.parametrize(("source", "least"), [(TRAPEZOID, 4096), (NESTED, 4096)])
def test_without_arrays_the_loops_are_the_work(source: str, least: int) -> None:
    task = load(source)
    sizes = [dict(draw.sizes) for draw in task.draws(SEED)]
    assert np.prod(list(sizes[0].values())) >= least
    assert (
        sum(np.prod(list(other.values())) > 100 for other in sizes) >= 3
    )  # the hidden ones are no toys either


@pytest.mark.parametrize("source", [BUBBLE, CUBIC], ids=["bubble", "cubic"])
def test_what_the_source_hides_is_measured(source: str) -> None:
    task = load(source)
    assert 64 <= task.spec.sizes["n"] <= 8192
    task.expected(task.draws(SEED), Cancellation())


def test_repetitions_are_many_where_results_bear_it() -> None:
    for source, name in ((MANDEL, "limit"), (SMOOTH, "steps")):
        sizes = load(source).spec.sizes
        assert 32 <= sizes[name] <= 100
        assert np.prod(list(sizes.values())) >= 10_000 * sizes[name]


@pytest.mark.parametrize("source", [GROWS, CHAOS], ids=["grows", "chaos"])
def test_repetitions_are_few_where_they_leave_no_digit(source: str) -> None:
    task = load(source)
    assert 3 <= task.spec.sizes["steps"] <= 12
    first = task.expected(task.draws(SEED), Cancellation())[0]
    for name, native in first.native.items():
        assert np.isfinite(native).mean() > 0.5, name


def test_given_sizes_are_kept() -> None:
    assert load(BUBBLE, inputs=Inputs(sizes={"n": 10_000})).spec.sizes == {"n": 10_000}
    assert load(MANDEL, inputs=Inputs(sizes={"limit": 200})).spec.sizes["limit"] == 200
    assert load(CONV, inputs=Inputs(sizes={"k": 5, "batch": 1})).spec.sizes["k"] == 5


def test_integers_are_small_where_large_ones_make_all_outputs_the_same() -> None:
    task = load(
        """
        void life(int n, const unsigned char *now, unsigned char *next) {
            for (int i = 0; i < n; i++) {
                int alive = now[(i + 1) % n] + now[(i + n - 1) % n];
                next[i] = alive == 1 && now[i] < 2;
            }
        }
        """
    )
    now = task.draws(SEED)[0].arrays["now"]
    assert set(now.tolist()) == {0, 1}
    plain = load("void f(int n, const int *x, int *y) { for (int i = 0; i < n; i++) y[i] = x[i] * 3; }")
    assert plain.draws(SEED)[0].arrays["x"].max() > 50

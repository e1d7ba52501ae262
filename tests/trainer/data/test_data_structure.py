"""The skeleton of loops: the same for what is written differently, different for what loops differently."""

from __future__ import annotations

import pytest

from sandbox.cancellation import Cancellation
from trainer.data.structure import structure


def of(source: str) -> str:
    return structure(source, None, Cancellation())


@pytest.mark.usefixtures("jail")
def test_taste_counts_for_nothing() -> None:
    one = "void f(int n, float *x) { for (int i = 0; i < n; i++) { float t = x[i]; x[i] = t * 2; } }"
    other = """
    #define STEP 1
    void scale(double *values, long count)
    {
        long k;
        k = 0;
        while (k < count) {
            double v = values[k];
            values[k] = 3.5 * v;
            k = k + STEP;
        }
    }"""
    assert of(one) == "for[load store]"
    assert of(other).removeprefix("set ") == of(one)


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (int i = 0; i < n; i++) y[i] = x[i];", "for[store]"),
        ("for (int i = n - 1; i >= 0; i--) y[i] = x[i];", "for#-[store]"),
        ("for (int i = 0; i < n; i += 2) y[i] = x[i];", "fors[store]"),
        ("for (int i = 0; i < 8; i++) y[i] = x[i];", "for#[store]"),
        ("for (int i = 0; i < n; i++) for (int j = i; j < n; j++) y[i] += x[j];", "for[for~[update]]"),
        (
            "for (int i = 0; i < n; i++) for (int j = k[i]; j < k[i + 1]; j++) y[i] += x[j];",
            "for[for?[update]]",
        ),
        ("for (int i = 0; i < n; i++) y[k[i]] += x[i];", "for[update@]"),
        ("for (int i = 0; i < n; i++) if (x[i] > 0) { y[i] = 1; } else break;", "for[if(store|break)]"),
        ("float s = 0; for (int i = 0; i < n; i++) s += x[i]; y[0] = s;", "set for[add] store"),
        ("int i = 0; while (x[i] > 0 && i < n) { y[i] = 1; i++; }", "set while[store count]"),
        ("int i = 0; do { y[i] = 1; i++; } while (i < n);", "set do[store count]"),
    ],
)
def test_loops_are_told_apart(body: str, expected: str) -> None:
    assert of(f"void f(int n, const float *x, const int *k, float *y) {{ {body} }}") == expected


@pytest.mark.usefixtures("jail")
def test_functions_that_are_called_count_where_they_are_called() -> None:
    found = of(
        "static float g(float v) { while (v > 1) v *= 0.5f; return v; }"
        "void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] = g(x[i]); }"
    )
    assert found == "for[call(for#*[] return) update]"

"""Which loops are proven parallel, and which are not."""

from __future__ import annotations

import pytest
from pycparser import c_parser

from agent.translator.c.accesses import collect
from agent.translator.c.dependence import conflicts
from agent.translator.c.frontend import read_function
from agent.translator.c.normalise import normalise
from agent.translator.c.scope import Unit


def parallel_loops(source: str) -> list[str]:
    """Variables of loops whose iterations touch different memory, given equal outer loops."""
    function = read_function(Unit.of(c_parser.CParser().parse(source, "t.c")), "f")
    body = normalise(function.body, frozenset(), function.taken)
    dims = {a.name: a.dims for a in function.arrays.values()}
    accesses = collect(body, dims)
    found: list[str] = []
    outer: list[str] = []
    for key, loop in accesses.loops.items():
        if not conflicts(accesses, key, frozenset(outer), dims):
            found.append(loop.var.name)
        outer.append(key)
    return found


PARALLEL = {
    "elements": "for (int i = 0; i < n; i++) y[i] = x[i];",
    "rows": "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i * m + j] = x[j * n + i];",
    "columns first": "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[j * n + i] = x[i * m + j];",
    "counting down": "for (int i = n - 1; i >= 0; i--) y[i] = y[i] * 2;",
    "reversal in place": "for (int i = 0; i < n / 2; i++) {"
    " float t = y[i]; y[i] = y[n - 1 - i]; y[n - 1 - i] = t; }",
    "strides that walk": "int k = 0; for (int i = 0; i < n; i++) { y[k] += 1; k += m; }",
    "one index over two loops": "int k = 0;"
    " for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[k++] = x[i * m + j];",
    "quotient and remainder": "for (int e = 0; e < n * m; e++) {"
    " int r = e / m, c = e % m; y[c * n + r] = x[e]; }",
    "tiles": "for (int t = 0; t < n; t += 16)"
    " for (int i = t; i < (t + 16 < n ? t + 16 : n); i++) y[i] = x[i];",
    "lower to upper": "for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) y[j * n + i] = y[i * n + j];",
    "both triangles": "for (int i = 0; i < n; i++) for (int j = i; j < n; j++) {"
    " y[i * n + j] = x[j]; y[j * n + i] = x[j]; }",
    "pairs": "for (int i = 0; i < n; i += 2) y[i + 1] = y[i];",
    "half as fast": "int j = 0; for (int i = 0; i + 1 < n; i += 2) { y[j] = x[i] + x[i + 1]; j++; }",
    "pointers that walk": "float *p = y; for (int i = 0; i < n; i++) *p++ = x[i];",
}


@pytest.mark.parametrize("name", PARALLEL)
def test_all_loops_are_parallel(name: str) -> None:
    source = f"void f(int n, int m, const float *x, float *y) {{ {PARALLEL[name]} }}"
    function = read_function(Unit.of(c_parser.CParser().parse(source, "t.c")), "f")
    body = normalise(function.body, frozenset(), function.taken)
    accesses = collect(body, {a.name: a.dims for a in function.arrays.values()})
    assert parallel_loops(source) == [loop.var.name for loop in accesses.loops.values()]


SEQUENTIAL = {
    "recurrence": ("for (int i = 1; i < n; i++) y[i] = y[i - 1] * 2;", []),
    "shift in place": ("for (int i = 0; i < n - 1; i++) y[i] = y[i + 1];", []),
    "scatter": ("for (int i = 0; i < n; i++) y[(int)x[i]] = 1;", []),
    "overlapping windows": (
        "for (int i = 0; i < n; i++) for (int j = 0; j < 9; j++) y[i + j] = x[j];",
        ["j"],
    ),
    "column sums": ("for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[j] += x[i * m + j];", ["j"]),
    "unknown row length": (
        "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i * k + j] = 1;",
        ["j"],
    ),
    "neighbours": (
        "for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) y[i * n + j] = y[i * n + j - 1];",
        ["i"],
    ),
}


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_only_these_loops_are_parallel(name: str) -> None:
    body, expected = SEQUENTIAL[name]
    assert parallel_loops(f"void f(int n, int m, int k, const float *x, float *y) {{ {body} }}") == expected

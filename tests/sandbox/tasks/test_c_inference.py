"""What is inferred from real C: extents, shapes, who is read and written, which integers are sizes."""

from __future__ import annotations

import pytest
from c_cases import SEED, load

from sandbox.cancellation import Cancellation
from sandbox.tasks import expressions
from sandbox.tasks.base import ArrayInput, Inputs

STENCIL = """
    void stencil(int n, int m, const float *x, float *y) {
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j + 1 < m; ++j)
                y[i * m + j] = x[(i - 1) * m + j] + x[(i + 1) * m + j] + x[i * m + j - 1] + x[i * m + j + 1];
    }
"""
MATMUL = """
    void matmul(int n, int m, int k, double a[n][k], double b[k][m], double c[n][m]) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < m; j++) {
                double s = 0;
                for (int p = 0; p < k; p++) s += a[i][p] * b[p][j];
                c[i][j] = s;
            }
    }
"""
SPMV = """
    void spmv(int n, const int *row, const int *column, const float *value, const float *x, float *y) {
        for (int i = 0; i < n; i++) {
            float s = 0;
            for (int k = row[i]; k < row[i + 1]; k++) s += value[k] * x[column[k]];
            y[i] = s;
        }
    }
"""
CONV = """
    void conv(int h, int w, int kh, int kw, const float *in, const float *ker, float *out) {
        int oh = h - kh + 1, ow = w - kw + 1;
        for (int i = 0; i < oh; i++)
            for (int j = 0; j < ow; j++) {
                float s = 0;
                for (int a = 0; a < kh; a++)
                    for (int b = 0; b < kw; b++) s += in[(i + a) * w + j + b] * ker[a * kw + b];
                out[i * ow + j] = s;
            }
    }
"""
HELPER = """
    #include <string.h>
    static void axpy(int n, float a, const float *x, float *y) {
        for (int i = 0; i < n; i++) y[i] += a * x[i];
    }
    void gemv(int n, int m, const float *A, const float *x, float *y) {
        memset(y, 0, n * sizeof(float));
        for (int j = 0; j < m; j++) axpy(n, x[j], A + j * n, y);
    }
"""
CLAMPED = """
    void blur(int n, int m, const float *x, float *y) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < m; j++) {
                int left = j > 0 ? j - 1 : 0, right = j < m - 1 ? j + 1 : m - 1, up = (i + n - 1) % n;
                y[i * m + j] = x[up * m + left] + x[i * m + right];
            }
    }
"""
SORT = """
void sort(int n, int *a) {
    for (int i = 0; i < n; i++)
        for (int j = i % 2; j < n - 1; j += 2)
            if (a[j] > a[j + 1]) { int t = a[j]; a[j] = a[j + 1]; a[j + 1] = t; }
}
"""
TILED = """
    void tiled(int n, float *a, const float *b) {
        for (int t = 0; t < n; t += 16)
            for (int i = t; i < (t + 16 < n ? t + 16 : n); i++) a[i * n + i] = b[i];
    }
"""
BACKWARDS = """
    #include <stddef.h>
    void backwards(size_t n, const float *x, float *y) { for (size_t i = n; i-- > 0;) y[n - 1 - i] = x[i]; }
"""
WALKED = """
    void twice(int n, const float *x, float *y) {
        const float *end = x + n;
        while (x < end) *y++ = 2 * *x++;
    }
"""
PAIRS = """
    void pairs(int n, const float *x, float *y) {
        for (int i = 0; i < n / 2; i++) y[i] = x[2 * i] + x[2 * i + 1];
    }
"""
PACKED_WALK = """
    void packed(int n, const float *ap, const float *x, float *y) {
        int k = 0;
        for (int i = 0; i < n; i++) {
            float s = 0;
            for (int j = 0; j <= i; j++) s += ap[k++] * x[j];
            y[i] = s;
        }
    }
"""
SEARCH = """
    void search(int n, int m, const float *sorted, const float *q, int *at) {
        for (int i = 0; i < m; i++) {
            int low = 0, high = n;
            while (low < high) {
                int mid = (low + high) / 2;
                if (sorted[mid] < q[i]) low = mid + 1;
                else high = mid;
            }
            at[i] = low;
        }
    }
"""
MERGE = """
    void merge(int n, int m, const float *a, const float *b, float *c) {
        int i = 0, j = 0, k = 0;
        while (i < n && j < m) c[k++] = a[i] <= b[j] ? a[i++] : b[j++];
        while (i < n) c[k++] = a[i++];
        while (j < m) c[k++] = b[j++];
    }
"""
TRIANGLE = """
    void packed(int n, const double *ap, const double *x, double *y) {
        for (int i = 0; i < n; i++) {
            double s = 0;
            for (int j = 0; j <= i; j++) s += ap[i * (i + 1) / 2 + j] * x[j];
            y[i] = s;
        }
    }
"""


@pytest.mark.parametrize(
    ("source", "extents"),
    [
        (STENCIL, {"x": "n * m", "y": "n * m"}),
        (MATMUL, {"a": "n * k", "b": "k * m", "c": "n * m"}),
        (SPMV, {"row": "n + 1", "column": "8 * n", "value": "8 * n", "x": "n", "y": "n"}),
        (CONV, {"in": "h * w", "ker": "kh * kw", "out": "(h - kh + 1) * (w - kw + 1)"}),
        (HELPER, {"A": "n * m", "x": "m", "y": "n"}),
        (CLAMPED, {"x": "n * m", "y": "n * m"}),
        (TILED, {"a": "n * n", "b": "n"}),
        (BACKWARDS, {"x": "n", "y": "n"}),
        (WALKED, {"x": "n", "y": "n"}),
        (PAIRS, {"x": "n / 2 * 2", "y": "n / 2"}),
        (TRIANGLE, {"ap": "n * (n + 1) / 2", "x": "n", "y": "n"}),
        # These the source does not tell; running at small sizes does.
        (PACKED_WALK, {"ap": "n * (n + 1) / 2", "x": "n", "y": "n"}),
        (SEARCH, {"sorted": "n", "q": "m", "at": "m"}),
        (MERGE, {"a": "n", "b": "m", "c": "n + m"}),
    ],
)
def test_extents(source: str, extents: dict[str, str]) -> None:
    task = load(source)
    found = {p.name: p.extent for p in task.spec.parameters if p.kind == "array"}
    assert found.keys() == extents.keys()
    for n in (5, 8, 21):
        sizes = {"n": n, "m": n + 3, "k": n + 7, "h": n, "w": n + 2, "kh": 3, "kw": 2}
        for name, text in extents.items():
            assert expressions.evaluate(found[name] or "", sizes) == expressions.evaluate(text, sizes), name


def test_shapes_come_from_strides() -> None:
    shapes = {p.name: p.shape for p in load(MATMUL).spec.parameters if p.kind == "array"}
    assert shapes == {"a": ["n", "k"], "b": ["k", "m"], "c": ["n", "m"]}


def test_access_is_what_running_shows() -> None:
    def access(source: str) -> dict[str, str]:
        return {p.name: p.access for p in load(source).spec.parameters if p.kind == "array"}

    assert access(STENCIL) == {"x": "read", "y": "read_write"}  # the rim keeps what it had
    assert access(HELPER) == {"A": "read", "x": "read", "y": "write"}  # set to zero before it is added to
    assert access(TILED) == {"a": "read_write", "b": "read"}
    # What only asks which values there are: moving them about changes nothing.
    assert access(SORT) == {"a": "read_write"}
    assert access(SORT.replace("int *a", "unsigned char *a")) == {"a": "read_write"}


def test_indices_stay_inside_and_row_starts_ascend() -> None:
    draw = load(SPMV).draws(SEED)[0]
    n = draw.sizes["n"]
    assert draw.arrays["column"].min() >= 0
    assert draw.arrays["column"].max() < n
    rows = draw.arrays["row"]
    assert rows[0] == 0
    assert rows[-1] == len(draw.arrays["column"])
    assert (rows[1:] >= rows[:-1]).all()


def test_ragged_rows_fit_the_extents_that_the_user_gives() -> None:
    arrays = {
        "row": ArrayInput(low=0, high=4000),
        "column": ArrayInput(extent="nnz", low=0, high=399),
        "value": ArrayInput(extent="nnz"),
        "x": ArrayInput(extent="m"),
    }
    source = SPMV.replace("int n,", "int n, int m, int nnz,")
    task = load(source, inputs=Inputs(sizes={"n": 500, "m": 400, "nnz": 4000}, arrays=arrays))
    draws = task.draws(SEED)
    assert draws[0].sizes == {"n": 500, "m": 400, "nnz": 4000}
    assert draws[0].arrays["row"][-1] == 4000
    for draw in draws:
        assert draw.arrays["row"].max() <= draw.sizes["nnz"]
        assert draw.arrays["column"].max(initial=0) < max(draw.sizes["m"], 1)


def test_a_scatter_names_each_place_once() -> None:
    task = load(
        "void f(int n, const int *to, const int *x, int *y) { for (int i = 0; i < n; i++) y[to[i]] = x[i]; }"
    )
    for draw in task.draws(SEED):
        assert len(set(draw.arrays["to"].tolist())) == len(draw.arrays["to"])


def test_indices_that_the_program_checks_sometimes_lie_outside() -> None:
    task = load(
        """
        void count(int n, int bins, const int *x, int *h) {
            for (int b = 0; b < bins; b++) h[b] = 0;
            for (int i = 0; i < n; i++) if (x[i] >= 0 && x[i] < bins) h[x[i]]++;
        }
        """
    )
    draw = task.draws(SEED)[0]
    assert draw.arrays["x"].min() < 0
    assert draw.arrays["x"].max() >= draw.sizes["bins"]


def test_inputs_fit_the_integers_that_they_become() -> None:
    """What does not fit is undefined in C, and differs between CPU and GPU."""
    quantise = (
        "void q(int n, const float *x, unsigned char *y) { for (int i = 0; i < n; i++) y[i] = 255 * x[i]; }"
    )
    task = load(quantise)
    assert any("between 0 and 1" in note for note in task.spec.notes)
    for draw in task.draws(SEED):
        assert draw.distribution == "uniform"
        assert ((draw.arrays["x"] >= 0) & (draw.arrays["x"] <= 1)).all()


def test_special_values_only_where_they_mean_the_same_everywhere() -> None:
    def kinds(body: str) -> set[str]:
        source = f"#include <math.h>\nvoid f(int n, const float *x, float *y) {{ {body} }}"
        return {draw.distribution for draw in load(source).draws(SEED)}

    assert "special" in kinds("for (int i = 0; i < n; i++) y[i] = expf(x[i]);")
    assert "special" not in kinds("for (int i = 0; i < n; i++) y[i] = lrintf(x[i]);")
    assert "special" not in kinds("y[0] = x[0]; for (int i = 1; i < n; i++) if (x[i] > y[0]) y[0] = x[i];")


@pytest.mark.parametrize(
    ("body", "carried"),
    [
        ("float s = 0, t; for (int i = 0; i < n; i++) { t = s + x[i]; s = t; } y[0] = s;", True),
        (
            "float s = 0, c = 0; for (int i = 0; i < n; i++)"
            " { float a = x[i] - c, b = s + a; c = (b - s) - a; s = b; } y[0] = s;",
            True,
        ),
        ("float p = 1; for (int i = 0; i < n; i++) { y[i] = x[i] - p; p = x[i]; }", True),
        ("float s[4] = {0}; for (int i = 0; i < n; i++) s[i % 4] = x[i] - s[i / 2 % 4]; y[0] = s[0];", True),
        ("float t; for (int i = 0; i < n; i++) { t = 2 * x[i]; y[i] = t + 1; }", False),
        ("int k = 0; for (int i = 0; i < n; i++) { y[k] = x[k]; k = k + 1; }", False),
    ],
)
def test_no_special_values_where_one_trip_hands_on_to_the_next(body: str, carried: bool) -> None:
    """An infinity that meets another gives NaN in one order and none in another."""
    task = load(f"void f(int n, const float *x, float *y) {{ {body} }}")
    assert carried == ("special" not in {draw.distribution for draw in task.draws(SEED)})


def test_roles_of_integers() -> None:
    task = load(
        """
        void step(int n, int steps, int shift, float *u) {
            for (int t = 0; t < steps; t++)
                for (int i = 0; i < n; i++) u[i] = u[i] * 0.5f + (float)shift;
        }
        """
    )
    assert {p.name: p.role for p in task.spec.parameters} == {
        "n": "size", "steps": "size", "shift": "value", "u": "data"
    }  # fmt: skip
    assert task.spec.sizes["n"] > 10_000
    assert task.spec.sizes["steps"] == 32


def test_windows_are_small_and_never_larger_than_what_they_slide_over() -> None:
    task = load(CONV)
    assert task.spec.sizes["kh"] < 10 < task.spec.sizes["h"]
    for draw in task.draws(SEED):
        assert draw.extents["out"] == max(
            (draw.sizes["h"] - draw.sizes["kh"] + 1) * (draw.sizes["w"] - draw.sizes["kw"] + 1), 0
        )


def test_prototype_speaks_cuda() -> None:
    task = load(
        """
        #include <stdint.h>
        #include <stddef.h>
        typedef float real;
        int64_t total(size_t n, const uint8_t *restrict x, real scale, real *y) {
            int64_t t = 0;
            for (size_t i = 0; i < n; i++) { t += x[i]; y[i] = scale * x[i]; }
            return t;
        }
        """
    )
    assert task.spec.prototype == (
        'extern "C" void launch(size_t n, const unsigned char *x, float scale, float *y, long *result)'
    )
    assert task.spec.parameters[-1].role == "result"


def test_the_inputs_block_corrects() -> None:
    inputs = Inputs(
        sizes={"n": 1000}, scalars={"a": 3.0}, arrays={"x": ArrayInput(extent="n + 5", low=2.0, high=3.0)}
    )
    task = load(
        "void f(int n, float a, float *x) { for (int i = 0; i < n; i++) x[i] = a / x[i]; }", inputs=inputs
    )
    first = task.draws(SEED)[0]
    assert first.sizes == {"n": 1000}
    assert first.extents == {"x": 1005}
    assert first.scalars["a"] == 3.0
    assert 2.0 <= first.arrays["x"].min() <= first.arrays["x"].max() <= 3.0


def test_draws_hang_on_the_seed_and_cover_the_ground() -> None:
    task = load(STENCIL)
    draws, again, others = task.draws(SEED), task.draws(SEED), task.draws(SEED[::-1])
    assert [d.arrays["x"].tobytes() for d in draws] == [d.arrays["x"].tobytes() for d in again]
    assert [d.arrays["x"].tobytes() for d in draws] != [d.arrays["x"].tobytes() for d in others]
    assert [d.representative for d in draws].count(True) == 1
    assert draws[0].representative
    assert len({d.distribution for d in draws}) >= 5
    assert len({tuple(d.sizes.values()) for d in draws}) >= 5
    assert any(0 in d.sizes.values() for d in draws)
    assert len(task.expected(draws, Cancellation())) == len(draws) >= 5


SWEEP = """for (int i = 1; i < n - 1; i++) to[i] = (from[i - 1] + from[i] + from[i + 1]) * 0.3f;"""
SWAPPED = [
    pytest.param(
        """
        void f(int n, int steps, float *a, float *b) {
            float *from = a, *to = b;
            for (int s = 0; s < steps; s++) { SWEEP float *t = from; from = to; to = t; }
        }
        """,
        {"a": "read_write", "b": "read_write"},
        id="swapped in a loop",
    ),
    pytest.param(
        """
        void f(int n, int steps, float *a, float *b) {
            float *from = a, *to = b, *t;
            while (steps-- > 0) { SWEEP t = to; to = from; from = t; }
        }
        """,
        {"a": "read_write", "b": "read_write"},
        id="swapped in a while loop, the other way round",
    ),
    pytest.param(
        """
        #include <stdlib.h>
        #include <string.h>
        void f(int n, int steps, float *a) {
            float *own = (float *)malloc(n * sizeof(float)), *from = a, *to = own;
            memcpy(own, a, n * sizeof(float));
            for (int s = 0; s < 2 * steps; s++) { SWEEP float *t = from; from = to; to = t; }
            free(own);
        }
        """,
        {"a": "read_write"},
        id="swapped with the function's own memory",
    ),
    pytest.param(
        """
        static void swap(float **p, float **q) { float *t = *p; *p = *q; *q = t; }
        void f(int n, int steps, float *a, float *b) {
            float *from = a, *to = b;
            for (int s = 0; s < steps; s++) { SWEEP swap(&from, &to); }
        }
        """,
        {"a": "read_write", "b": "read_write"},
        id="swapped by a helper",
    ),
    pytest.param(
        """
        void f(int n, int steps, float *a, float *b, float *c) {
            float *from = a, *to = b, *next = c;
            for (int s = 0; s < steps; s++) { SWEEP float *t = from; from = to; to = next; next = t; }
        }
        """,
        {"a": "read_write", "b": "read_write", "c": "read_write"},
        id="three in a ring",
    ),
    pytest.param(
        """
        void f(int n, int steps, float *a, float *b) {
            for (int s = 0; s < steps; s++) {
                float *from = s % 2 ? b : a, *to = s % 2 ? a : b;
                SWEEP
            }
        }
        """,
        {"a": "read_write", "b": "read_write"},
        id="chosen by the parity",
    ),
    pytest.param(
        """
        void f(int n, int flip, const float *x, float *a, float *b) {
            float *to;
            if (flip > 2) to = a; else to = b;
            for (int i = 0; i < n; i++) to[i] = x[i];
        }
        """,
        {"x": "read", "a": "read_write", "b": "read_write"},
        id="chosen by a branch",
    ),
    pytest.param(
        """
        struct pair { float *from, *to; };
        void f(int n, const float *x, float *y) {
            struct pair p;
            p.to = y;
            for (int i = 0; i < n; i++) p.to[i] = 2 * x[i];
        }
        """,
        {"x": "read", "y": "write"},
        id="in a struct, seen only by running",
    ),
]


@pytest.mark.parametrize(("source", "access"), SWAPPED)
def test_pointers_that_change_hands(source: str, access: dict[str, str]) -> None:
    inputs = Inputs(arrays={"y": ArrayInput(extent="n")}) if "struct" in source else None
    task = load(source.replace("SWEEP", SWEEP), inputs=inputs)
    arrays = [p for p in task.spec.parameters if p.kind == "array"]
    assert {p.name: p.access for p in arrays} == access
    assert {p.extent for p in arrays} == {"n"}
    assert task.spec.sizes["n"] >= 1000

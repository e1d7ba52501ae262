"""The rule that tells right from wrong, on real references: what must pass passes, what must fail fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sandbox import verify
from sandbox.cancellation import Cancellation
from sandbox.errors import Judged
from sandbox.tasks.base import Array, Draw, Expected, Inputs, Task
from sandbox.tasks.load import load_task
from sandbox.types import Verification
from sandbox.verify.norms import rounded, yardstick

EXAMPLES = Path(__file__).parents[2] / "examples" / "c"
SEED = bytes(range(16))
Candidate = Callable[[Draw, Expected], Mapping[str, Array]]


@cache
def example(name: str) -> tuple[Task, Sequence[Draw], Sequence[Expected]]:
    return prepared((EXAMPLES / f"{name}.c").read_text())


def prepared(source: str, inputs: Inputs | None = None) -> tuple[Task, Sequence[Draw], Sequence[Expected]]:
    task = load_task(source, filename="task.c", entry=None, inputs=inputs, cancel=Cancellation())
    draws = task.draws(SEED)
    return task, draws, task.expected(draws, Cancellation())


def judged(
    case: tuple[Task, Sequence[Draw], Sequence[Expected]], candidate: Candidate, *, poisons: bool = False
) -> Verification:
    """What the judge says when a candidate's outputs are these."""
    task, draws, expected = case
    replays = []
    for draw, truth in zip(draws, expected, strict=True):
        made = candidate(draw, truth)
        replays.append([_read_back(task, draw, made, poison) for poison in (0xFF, 0x5A)])
    return verify.verify(task.spec, draws, expected, replays, seed=SEED)


def _read_back(task: Task, draw: Draw, made: Mapping[str, Array], poison: int) -> dict[str, bytes]:
    """Every array after a replay: elements that are masked keep the poison."""
    after = {name: array.tobytes() for name, array in draw.arrays.items()}
    for parameter in task.spec.parameters:
        if parameter.kind == "array" and parameter.access != "read":
            values = made[parameter.name]
            dtype = np.dtype(parameter.dtype)
            filled = np.full(values.size * dtype.itemsize, poison, dtype=np.uint8).view(dtype)
            keep = np.ma.getmaskarray(values).ravel()
            filled[~keep] = np.ma.getdata(values).ravel()[~keep].astype(dtype)
            after[parameter.name] = filled.tobytes()
    return after


def outcome(verification: Verification) -> str:
    try:
        verify.judge(verification)
    except Judged as ending:
        return ending.verdict
    return "passed"


def native(draw: Draw, truth: Expected) -> Mapping[str, Array]:
    return truth.native


NAMES = ["saxpy", "dot", "row_softmax", "matmul", "stencil5", "histogram", "nbody", "transpose"]


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_itself_passes(name: str) -> None:
    result = judged(example(name), native)
    assert outcome(result) == "passed", [c for c in result.checks if not c.passed]
    assert result.draws >= 6
    assert result.first_mismatch is None


@pytest.mark.parametrize("name", NAMES)
def test_the_truth_rounded_once_passes(name: str) -> None:
    result = judged(example(name), lambda draw, truth: truth.truth)
    assert outcome(result) == "passed"


@pytest.mark.parametrize("name", [n for n in NAMES if n != "histogram"])
def test_half_precision_results_fail(name: str) -> None:
    def half(draw: Draw, truth: Expected) -> Mapping[str, Array]:
        return {n: rounded(a, 11) for n, a in truth.truth.items()}

    assert outcome(judged(example(name), half)) == "wrong_result"


def test_tf32_products_fail_and_another_order_of_additions_passes() -> None:
    def product(bits: int) -> Candidate:
        def candidate(draw: Draw, truth: Expected) -> Mapping[str, Array]:
            n, m, k = (draw.sizes[s] for s in "nmk")
            a = rounded(draw.arrays["a"].astype(np.float64), bits).astype(np.float32).reshape(n, k)
            b = rounded(draw.arrays["b"].astype(np.float64), bits).astype(np.float32).reshape(k, m)
            return {"c": a @ b}

        return candidate

    assert outcome(judged(example("matmul"), product(24))) == "passed"
    assert outcome(judged(example("matmul"), product(11))) == "wrong_result"


@pytest.mark.parametrize("pieces", [1, 32, 256])
def test_a_sum_by_pieces_passes_where_terms_cancel(pieces: int) -> None:
    def tree(draw: Draw, truth: Expected) -> Mapping[str, Array]:
        terms = draw.arrays["x"] * draw.arrays["y"]
        padded = np.zeros(-(-max(terms.size, 1) // pieces) * pieces, dtype=np.float32)
        padded[: terms.size] = terms
        partial = np.add.reduce(padded.reshape(-1, pieces), axis=0, dtype=np.float32)
        return {"result": np.array([partial.sum(dtype=np.float32)])}

    assert outcome(judged(example("dot"), tree)) == "passed"


def test_a_sum_that_forgets_its_last_term_fails() -> None:
    def short(draw: Draw, truth: Expected) -> Mapping[str, Array]:
        n = draw.sizes["n"] - draw.sizes["n"] % 32
        return {"result": np.array([np.dot(draw.arrays["x"][:n], draw.arrays["y"][:n])])}

    assert outcome(judged(example("dot"), short)) == "wrong_result"


def test_an_element_that_nobody_wrote_is_found() -> None:
    def guard_off_by_one(draw: Draw, truth: Expected) -> Mapping[str, Array]:
        made = np.ma.masked_array(truth.native["y"].copy(), mask=False)
        made[-1:] = np.ma.masked
        return {"y": made}

    result = judged(example("row_softmax"), guard_off_by_one)
    assert outcome(result) == "wrong_result"
    assert result.first_mismatch is not None
    assert result.first_mismatch.got == "never written"
    n, m = result.first_mismatch.sizes["n"], result.first_mismatch.sizes["m"]
    assert result.first_mismatch.index == [n - 1, m - 1]
    assert not next(c for c in result.checks if c.name == "every_element_written").passed


def test_the_first_mismatch_has_both_values_and_the_inputs() -> None:
    def wrong(draw: Draw, truth: Expected) -> Mapping[str, Array]:
        made = truth.native["y"].copy()
        made[5:6] += 1.0
        return {"y": made}

    _, draws, expected = example("saxpy")
    found = judged(example("saxpy"), wrong).first_mismatch
    assert found is not None
    assert (found.array, found.index, found.draw) == ("y", [5], 0)
    assert found.expected == pytest.approx(float(expected[0].truth["y"][5]))
    assert found.got == pytest.approx(float(expected[0].truth["y"][5]) + 1.0)
    assert found.inputs["x"] == float(draws[0].arrays["x"][5])
    assert found.inputs["a"] == draws[0].scalars["a"]


def test_nan_never_passes_and_infinities_must_stand_where_they_should() -> None:
    def all_nan(draw: Draw, truth: Expected) -> Mapping[str, Array]:
        return {n: np.full_like(a, np.nan) for n, a in truth.native.items()}

    def clamped(draw: Draw, truth: Expected) -> Mapping[str, Array]:
        limits = np.finfo(np.float32)
        return {n: np.clip(np.nan_to_num(a), limits.min, limits.max) for n, a in truth.native.items()}

    assert any(d.distribution == "special" for d in example("saxpy")[1])
    assert outcome(judged(example("saxpy"), all_nan)) == "wrong_result"
    assert outcome(judged(example("saxpy"), clamped)) == "wrong_result"


def test_one_count_too_few_fails() -> None:
    def lost(draw: Draw, truth: Expected) -> Mapping[str, Array]:
        made = truth.native["counts"].copy()
        if made.size and made.max() > 0:
            made[int(made.argmax())] -= 1
        return {"counts": made}

    assert outcome(judged(example("histogram"), lost)) == "wrong_result"


def test_writing_to_an_input_fails() -> None:
    task, draws, expected = example("dot")
    replays = []
    for draw, truth in zip(draws, expected, strict=True):
        after = _read_back(task, draw, truth.native, 0xFF)
        after["x"] = b"\x01" * len(after["x"])
        replays.append([after])
    result = verify.verify(task.spec, draws, expected, replays, seed=SEED)
    assert outcome(result) == "wrong_result"
    assert not next(c for c in result.checks if c.name == "inputs_unchanged").passed


BROADCAST = "{ float s = 0; for (int i = 0; i < n; i++) s += x[i]; for (int i = 0; i < n; i++) y[i] = s; }"


@pytest.mark.parametrize(
    "source",
    [
        "void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] = 0.0f; }",
        "void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] = 7.0f; }",
        "void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] = x[i]; }",
        "void f(int n, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = x[i] + 1e-12f; }",
        "int f(int n, const int *x) { for (int i = 0; i < n; i++) if (x[i] == 12345) return i; return -1; }",
        "void f(int n, float *x, float *y) { for (int i = 0; i < n; i++) y[i] = (x[i] != 7) / (n + 1.f); }",
    ],
)
def test_degenerate_tasks_are_refused(source: str) -> None:
    assert outcome(judged(prepared(f"#include <math.h>\n{source}"), native)) == "degenerate_task"


@pytest.mark.parametrize(
    "source",
    [
        "#include <string.h>\nvoid f(int n, const float *x, float *y) { memcpy(y, x, n * sizeof(float)); }",
        "void f(int n, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = x[i] > 0.0f; }",
        "void f(int n, float a, float *x) { for (int i = 0; i < n; i++) x[i] = a; }",
        "void f(int n, int *x, int *y) { for (int i = 0, t; i < n; i++) t = x[i], x[i] = y[i], y[i] = t; }",
        "float f(int n, const char *x) { float s = 0; for (int i = 0; i < n; i++) s += x[i] > 9; return s; }",
        "double f(int n, const double *x) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }",
        f"void f(int n, const float *x, float *y) {BROADCAST}",
        f"void f(int n, const int *x, float *y) {BROADCAST}",
    ],
)
def test_tasks_that_only_look_degenerate_are_not(source: str) -> None:
    case = prepared(source)
    assert outcome(judged(case, native)) == "passed"
    if "memcpy" not in source:
        zeros: Candidate = lambda draw, truth: {n: np.zeros_like(a) for n, a in truth.native.items()}  # noqa: E731
        assert outcome(judged(case, zeros)) == "wrong_result"


def test_a_tolerance_from_the_user_replaces_the_rule() -> None:
    def coarse(draw: Draw, truth: Expected) -> Mapping[str, Array]:
        return {n: rounded(a, 8) for n, a in truth.truth.items()}

    source = (EXAMPLES / "row_softmax.c").read_text()
    assert outcome(judged(prepared(source, Inputs(tolerance=1e-2)), coarse)) == "passed"
    assert outcome(judged(prepared(source, Inputs(tolerance=1e-4)), coarse)) == "wrong_result"


def test_the_floor_never_lets_the_next_lower_precision_through() -> None:
    truth = np.linspace(1.0, 2.0, 1000)
    rule = yardstick(
        truth, truth.astype(np.float32), response=None, reduction_length=10**9, row=0, tolerance=None
    )
    assert not rule.errors(rounded(truth, 11)).within(rule.allowed)


def test_a_jump_in_the_reference_does_not_widen_the_tolerance() -> None:
    """floor() jumps where its argument crosses an integer; that is no rounding."""
    source = (
        "void f(int n, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = floorf(8 * x[i]); }"
    )
    _, _, expected = prepared(f"#include <math.h>\n{source}")
    for truth in expected:
        response = truth.response["y"]
        assert (response == 0).all()


def test_either_side_of_a_jump_is_right_and_nothing_between() -> None:
    """Float and double round a few elements to different integers; a candidate may side with either."""
    source = (
        "void f(int n, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = floorf(x[i] * 1e3f); }"
    )
    case = prepared(f"#include <math.h>\n{source}")
    first = case[2][0]
    apart = np.abs(first.native["y"] - first.truth["y"]) > 0.5
    assert 0 < apart.sum() < 100
    middle: Candidate = lambda draw, truth: {"y": (truth.native["y"] + truth.truth["y"]) / 2}  # noqa: E731
    assert outcome(judged(case, native)) == "passed"
    assert outcome(judged(case, lambda draw, truth: truth.truth)) == "passed"
    assert outcome(judged(case, middle)) == "wrong_result"


def test_chaos_is_degenerate() -> None:
    """Sixty logistic steps leave no digit: float and double disagree, and no output could be wrong."""
    body = "float v = 0.5f + 0.3f * sinf(x[i]); for (int k = 0; k < 60; k++) v = 3.9f * v * (1 - v);"
    source = (
        f"void f(int n, const float *x, float *y) {{ for (int i = 0; i < n; i++) {{ {body} y[i] = v; }} }}"
    )
    assert outcome(judged(prepared(f"#include <math.h>\n{source}"), native)) == "degenerate_task"


@pytest.mark.parametrize("factor", [1e-290, 1.0, 1e290, 4e307])
def test_errors_are_relative_at_any_magnitude(factor: float) -> None:
    """Neither squares nor sums of huge or tiny numbers decide, and numpy has nothing to warn of."""
    rng = np.random.default_rng(3)
    truth = rng.uniform(0.5, 1.0, 64 * 32) * factor
    response = np.abs(truth) * 2.0**-50
    with np.errstate(all="raise", under="ignore"):
        rule = yardstick(truth, truth, response=response, reduction_length=1, row=32, tolerance=None)
    near, far = truth * (1 + 2.0**-52), truth * (1 - 1e-6)
    one_row = truth.copy()
    one_row[:32] = far[:32]
    assert rule.errors(near).within(rule.allowed)
    assert not rule.errors(far).within(rule.allowed)
    assert not rule.errors(one_row).within(rule.allowed)
    assert not rule.errors(-truth).within(rule.allowed)
    assert rule.errors(far).l2 == pytest.approx(1e-6 / 4, rel=0.01)  # the response allows for four times


def test_rows_of_very_different_size_have_errors_of_their_own() -> None:
    truth = np.concatenate([np.full(32, 1e300), np.full(32, 1e-290)])
    rule = yardstick(truth, truth, response=None, reduction_length=1, row=32, tolerance=None)
    wrong = truth.copy()
    wrong[32:] *= 1.5
    assert rule.errors(wrong).row == pytest.approx(0.5)


def test_huge_outputs_are_judged() -> None:
    """High powers leave the range of a double on some elements; the others still tell right from wrong."""
    source = """
    void f(int n, int degree, const double *c, const double *x, double *y) {
        for (int i = 0; i < n; i++) {
            double r = c[degree];
            for (int k = degree - 1; k >= 0; k--) r = r * x[i] + c[k];
            y[i] = r;
        }
    }
    """
    case = prepared(source, Inputs(sizes={"n": 512, "degree": 600}))
    with np.errstate(all="raise", under="ignore"):
        assert outcome(judged(case, native)) == "passed"


def test_draws_that_pass_are_counted() -> None:
    case = prepared(
        "void f(int n, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }"
    )
    first = case[1][1]
    result = judged(case, native)
    assert result.draws_passed == result.draws == len(case[1])
    wrong: Candidate = lambda draw, truth: {  # noqa: E731
        "y": truth.native["y"] + (1 if draw is first else 0)
    }
    assert judged(case, wrong).draws_passed == len(case[1]) - 1
    zeros: Candidate = lambda draw, truth: {"y": np.zeros_like(truth.native["y"])}  # noqa: E731
    empty = sum(truth.native["y"].size == 0 for truth in case[2])
    assert judged(case, zeros).draws_passed == empty


SOLVE = """
    void solve(int n, const float *a, const float *b, float *x) {
        for (int i = 0; i < n; i++) {
            float p = a[4 * i], q = a[4 * i + 1], r = a[4 * i + 2], s = a[4 * i + 3], det = p * s - q * r;
            x[2 * i] = (b[2 * i] * s - b[2 * i + 1] * q) / det;
            x[2 * i + 1] = (b[2 * i + 1] * p - b[2 * i] * r) / det;
        }
    }
"""


def test_other_roundings_pass_where_some_matrices_are_nearly_singular() -> None:
    """Every product rounded differently, as a compiler does that fuses multiplications and additions."""

    def fused(draw: Draw, truth: Expected) -> Mapping[str, Array]:
        a = draw.arrays["a"].astype(np.float64).reshape(-1, 4)
        b = draw.arrays["b"].astype(np.float64).reshape(-1, 2)
        with np.errstate(all="ignore"):

            def difference(p: Array, s: Array, q: Array, r: Array) -> Array:
                return np.float32(p * s - np.float32(q * r)).astype(np.float64)

            det = difference(a[:, 0], a[:, 3], a[:, 1], a[:, 2])
            first = difference(b[:, 0], a[:, 3], b[:, 1], a[:, 1]) / det
            second = difference(b[:, 1], a[:, 0], b[:, 0], a[:, 2]) / det
            return {"x": np.stack([first, second], axis=1).astype(np.float32).ravel()}

    for number in range(12):
        task = load_task(SOLVE, filename="task.c", entry=None, inputs=None, cancel=Cancellation())
        draws = task.draws(bytes([number]) * 16)
        case = task, draws, task.expected(draws, Cancellation())
        assert outcome(judged(case, fused)) == "passed", number
        halved: Candidate = lambda draw, truth: {"x": truth.native["x"].astype(np.float16).astype("f4")}  # noqa: E731
        with np.errstate(all="ignore"):
            assert outcome(judged(case, halved)) == "wrong_result"

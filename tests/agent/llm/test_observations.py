"""What a model is told of a judgement: the first thing first, no noise, within its budget."""

from __future__ import annotations

import pytest
from given_environment import evaluation
from playing import KERNEL, measured, refused_by_nvcc

from agent.llm.observe import observation, profile, within, worst_lines
from agent.llm.wire import estimated_tokens
from sandbox.types import Check, Evaluation, Mismatch, Verification

PROTOTYPE = 'extern "C" void launch(int n, float *x)'


def told(judged: Evaluation, tokens: int = 600) -> str:
    return observation(judged, KERNEL, prototype=PROTOTYPE, tokens=tokens)


def test_the_first_error_comes_first_with_its_line() -> None:
    said = told(refused_by_nvcc((5, 'identifier "y" is undefined'), (4, "expected a )"))).split("\n")
    assert said[:3] == ["compile error", 'line 5: identifier "y" is undefined', "    5 | x[i] *= 2.0f;"]


def test_errors_of_one_kind_are_told_once() -> None:
    said = told(refused_by_nvcc(*[(n, f'identifier "v{n}" is undefined') for n in range(1, 30)]))
    assert said.count("is undefined") == 1
    assert "and 28 more like these" in said


def test_template_arguments_and_traces_are_folded() -> None:
    inside = "thrust::iterator_adaptor<float*, thrust::tuple<int, int, std::pair<double, char>>, thrust::use>"
    trace = f" detected during:\n  instantiation of x [with T={inside}]"
    message = f'no instance of function "f<{inside}, {inside}>" matches, a < b\n{trace}'
    said = told(refused_by_nvcc((5, message)))
    assert 'line 5: no instance of function "f<…>" matches, a < b\n' in said
    assert "detected during" not in said
    assert len(said) < 200


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ('identifier "blockDim" is undefined in host code', "exist in kernels only"),
        ("undefined reference to `launch'", f"write {PROTOTYPE}"),
        ('identifier "uint32_t" is undefined', "include <stdint.h>"),
        (
            'calling a __host__ function("f") from a __global__ function("g") is not allowed',
            "must be __device__",
        ),
    ],
)
def test_usual_mistakes_get_a_hint(message: str, hint: str) -> None:
    assert hint in told(refused_by_nvcc((10, message)))


def test_without_a_diagnostic_the_logs_last_words_are_told() -> None:
    log = "\n".join(f"noise {n}" for n in range(500)) + "\nnvcc: Segmentation fault"
    said = told(refused_by_nvcc(log=log))
    assert "Segmentation fault" in said
    assert "noise 3\n" not in said


def test_a_wrong_result_is_told_by_its_first_mismatch() -> None:
    judged = evaluation(None).model_copy(
        update={
            "message": "x[7] is 1, expected 2 (n = 31)",
            "verification": Verification(
                draws=7,
                draws_passed=2,
                sizes=[],
                distributions=[],
                seed="",
                max_error=1.0,
                allowed_error=0.1,
                first_mismatch=Mismatch(
                    array="x", index=[7], got=1.0, expected=2.0, draw=2, sizes={"n": 31}, inputs={"x[7]": 1.0}
                ),
                checks=[
                    Check(name="outputs", passed=False, detail="31 of 31 wrong"),
                    Check(name="guard_bytes", passed=True, detail="fine"),
                ],
            ),
        }
    )
    said = told(judged)
    assert "first mismatch: x[7] is 1.0, expected 2.0 (sizes: n = 31; inputs: x[7] = 1.0)" in said
    assert "2 of 7 draws are right" in said
    assert "outputs: 31 of 31 wrong" in said
    assert "guard" not in said


def test_a_fault_shows_the_line_it_names() -> None:
    judged = evaluation(None).model_copy(
        update={"verdict": "runtime_error", "message": "out of bounds at line 5: x + 4096 (n = 33)"}
    )
    assert "    5 | x[i] *= 2.0f;" in told(judged)


def test_a_pass_names_what_is_weak_and_the_lines_that_cost() -> None:
    said = told(measured(50.0))
    assert "coalescing 0.22: Line 5 loads 32 sectors per request" in said
    assert "line 5 (1,024 sectors moved, 128 needed): x[i] *= 2.0f;" in said
    assert "nothing to gain in occupancy" in said


def test_lines_that_say_nothing_of_a_family_are_not_named() -> None:
    metrics = measured(50.0).metrics
    assert metrics is not None
    assert worst_lines(metrics, "shared_memory") == []
    assert worst_lines(metrics, "occupancy") == []
    assert "line 5" in profile(metrics, KERNEL, tokens=500, family="balance")


@pytest.mark.parametrize("tokens", [30, 60, 120, 400])
def test_the_budget_holds(tokens: int) -> None:
    many = refused_by_nvcc(*[(n, f"message {chr(64 + n) * 40} is wrong") for n in range(1, 9)])
    for judged in (many, measured(50.0)):
        assert estimated_tokens(told(judged, tokens)) <= tokens + 12


def test_what_is_cut_says_so() -> None:
    assert within(["a" * 3000], 100).endswith("… (cut)")
    assert within(["first", "b" * 3000], 10) == "first\n… (more was cut)"

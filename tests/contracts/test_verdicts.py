"""Kernels with an expected verdict, judged for real: what must pass, and what must not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox import client
from sandbox.cancellation import Cancellation
from sandbox.tasks.load import load_task
from sandbox.types import Evaluation

ROOT = Path(__file__).resolve().parents[2]
KERNELS = sorted(
    path for folder in ("right", "wrong") for path in (ROOT / "tests/fixtures/kernels" / folder).glob("*.cu")
)


def header(source: str) -> dict[str, str]:
    return dict(re.findall(r"^// (task|verdict|says): (.*)$", source, re.MULTILINE))


def judged(path: Path, backend: str = "emulator") -> tuple[dict[str, str], Evaluation]:
    source = path.read_text()
    expected = header(source)
    task_file = ROOT / expected["task"]
    cancel = Cancellation()
    task = load_task(task_file.read_bytes(), filename=task_file.name, entry=None, inputs=None, cancel=cancel)
    target = client.default_target(backend)
    return expected, client.evaluate(task, source, backend=backend, target=target, cancel=cancel)


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_verdict(path: Path, backend: str) -> None:
    expected, evaluation = judged(path, backend)
    assert evaluation.backend == backend
    assert evaluation.verdict == expected["verdict"], evaluation.message
    assert evaluation.fault == (None if evaluation.verdict == "passed" else "candidate")
    mismatch = evaluation.verification.first_mismatch if evaluation.verification else None
    assert expected.get("says", "") in f"{evaluation.message} {mismatch}"
    if path.parent.name == "right":
        assert evaluation.metrics is not None
        assert evaluation.verification is not None
        assert evaluation.verification.draws >= 5
        assert all(check.passed for check in evaluation.verification.checks)
        assert (evaluation.timing is not None) == (backend == "gpu")
    else:
        assert evaluation.score is None


@pytest.mark.usefixtures("jail")
def test_an_idle_kernel_earns_nothing(tmp_path: Path) -> None:
    path = ROOT / "tests/fixtures/kernels/right/saxpy_with_idle_kernel.cu"
    _, with_it = judged(path)
    alone = tmp_path / "alone.cu"
    alone.write_text(path.read_text().replace("  show<<<256, 256>>>();\n", ""))
    _, without_it = judged(alone)
    assert with_it.score is not None
    assert without_it.score is not None
    assert with_it.score < without_it.score
    assert with_it.metrics is not None
    assert any("those of show change no output" in note for note in with_it.metrics.notes)


@pytest.mark.usefixtures("jail")
def test_a_wrong_result_shows_the_first_mismatch() -> None:
    _, evaluation = judged(ROOT / "tests/fixtures/kernels/wrong/saxpy_last_element_missing.cu")
    assert evaluation.verification is not None
    mismatch = evaluation.verification.first_mismatch
    assert mismatch is not None
    assert mismatch.array == "y"
    assert mismatch.index == [mismatch.sizes["n"] - 1]
    assert mismatch.got != mismatch.expected


@pytest.mark.usefixtures("jail")
def test_an_out_of_bounds_access_names_its_line() -> None:
    path = ROOT / "tests/fixtures/kernels/wrong/saxpy_guard_off_by_one.cu"
    _, evaluation = judged(path)
    line = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if "y[i] =" in text)
    assert f"line {line}" in evaluation.message

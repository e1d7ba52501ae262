"""The command line as people and programs meet it: exit codes, JSON, events, clear lines for bad input."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import Cancelled
from webapp.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted([*(ROOT / "examples/c").glob("*.c"), *(ROOT / "examples/pytorch").glob("*.py")])


def kernelwright(*arguments: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "webapp.cli.main", *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)


def document(finished: subprocess.CompletedProcess[str]) -> Any:
    """What it printed, which must be JSON as everybody reads it: without Python's NaN and Infinity."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(finished.stdout, parse_constant=refuse)


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_becomes_verified_cuda(path: Path) -> None:
    finished = kernelwright("translate", path, "--json")
    assert finished.returncode == 0, finished.stderr
    result = document(finished)
    assert result["verdict"] == "passed"
    assert len(result["turns"]) >= 2
    scores = [
        turn["evaluation"]["metrics"]["structural_score"]
        for turn in result["turns"]
        if turn["evaluation"]["metrics"]
    ]
    best = result["turns"][result["best_turn"] - 1]
    assert best["source"] == result["source"]
    assert best["evaluation"]["metrics"]["structural_score"] == max(scores)
    assert all(turn["reflection"] for turn in result["turns"])
    assert all(turn["evaluation"]["reward"] for turn in result["turns"])


@pytest.mark.usefixtures("jail")
def test_events_are_json_lines_with_one_start_and_one_end() -> None:
    finished = kernelwright("translate", "examples/c/saxpy.c", "--events", "--turns", 2)
    events = [json.loads(line) for line in finished.stdout.splitlines()]
    types = [event["type"] for event in events]
    assert finished.returncode == 0
    assert types[0] == "run_started"
    assert types[-1] == "run_ended"
    assert types.count("run_started") == types.count("run_ended") == 1
    assert types.count("turn_ended") == 2
    assert {"edited", "action", "log", "stage", "compiled", "verified", "measured", "reflected"} <= set(types)


@pytest.mark.usefixtures("jail")
def test_a_given_candidate_becomes_turn_one(tmp_path: Path) -> None:
    given = ROOT / "tests/fixtures/kernels/right/saxpy_plain.cu"
    out = tmp_path / "best.cu"
    finished = kernelwright(
        "translate", "examples/c/saxpy.c", "--from", given, "--turns", 2, "--json", "-o", out
    )
    result = document(finished)
    assert result["turns"][0]["source"] == given.read_text()
    assert out.read_text() == result["source"]


BAD_INPUT = {
    "does not parse": ("f.c", b"void f(int n, float *x) {\n  x[0] = ;\n}\n", "f.c:2:"),
    "no function": ("f.c", b"int n;\n", "no function"),
    "several functions": (
        "f.c",
        b"void f(int n, float *x) { x[0] = n; }\nvoid g(int n, float *x) { x[0] = n; }\n",
        "f (line 1), g (line 2). Say which",
    ),
    "unknown extent": ("f.c", b"void f(float *x) { while (*x > 0.0f) *x++ = 1.0f; }\n", "extent"),
    "not UTF-8": ("f.c", b"/* caf\xe9 */ void f(int n, float *x) { x[0] = n; }\n", "UTF-8"),
    "too large": ("f.c", b"/*" + b"x" * (1 << 20) + b"*/ void f(int n, float *x) { x[0] = n; }\n", "bytes"),
    "empty": ("f.c", b"", "f.c"),
    "endless": (
        "f.c",
        b"void f(int n, float *x) { for (int i = 0; i < n; i++) { x[i] = 1; while (n) ; } }\n",
        "did not",
    ),
    "python that raises": ("f.py", b"raise RuntimeError('not today')\n", "not today"),
    "python without a model": ("f.py", b"x = 1\n", "Model"),
    "another language": ("f.rs", b"fn main() {}\n", ".c"),
}


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_clear_line_and_exit_code_two(case: str, tmp_path: Path) -> None:
    name, data, says = BAD_INPUT[case]
    path = tmp_path / name
    path.write_bytes(data)
    finished = kernelwright("translate", path, "--json")
    assert finished.returncode == 2, finished.stderr
    last = finished.stderr.splitlines()[-1]
    assert last.startswith("kernelwright: ")
    assert says in last
    assert "Traceback" not in finished.stderr
    assert document(finished)["problem"]["message"]


def test_a_missing_file_and_a_wrong_option_say_what_to_do() -> None:
    finished = kernelwright("translate", "nowhere.c")
    assert finished.returncode == 2
    assert "nowhere.c" in finished.stderr
    finished = kernelwright("translate", "examples/c/saxpy.c", "--turns", "0")
    assert finished.returncode == 2
    assert "1 to 200" in finished.stderr
    finished = kernelwright("evaluate", "examples/c/saxpy.c", "examples/c/saxpy.c", "--target", "sm_1")
    assert finished.returncode == 2
    assert "sm_90" in finished.stderr
    if shutil.which("nvidia-smi") is None:
        for command in ("evaluate", "profile"):
            finished = kernelwright(command, "examples/c/saxpy.c", "examples/c/saxpy.c", "--backend", "gpu")
            assert finished.returncode == 2
            assert "no NVIDIA driver" in finished.stderr
        finished = kernelwright("translate", "examples/c/saxpy.c", "--backend", "gpu")
        assert finished.returncode == 2
        assert "--backend emulator" in finished.stderr
    finished = kernelwright("serve", "--port", "99999")
    assert finished.returncode == 2
    assert "65535" in finished.stderr


@pytest.mark.parametrize(("name", "why"), [(".", "directory"), ("nowhere/out.cu", "no directory")])
def test_a_result_that_cannot_be_written_is_said_before_the_work(name: str, why: str, tmp_path: Path) -> None:
    finished = kernelwright("translate", "examples/c/saxpy.c", "-o", tmp_path / name)
    assert finished.returncode == 2
    assert why in finished.stderr
    assert "turn 1" not in finished.stderr


@pytest.mark.usefixtures("jail")
def test_a_reader_that_goes_away_is_no_fault() -> None:
    argv = [sys.executable, "-m", "webapp.cli.main", "translate", "examples/c/dot.c", "--events"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read().decode()
    assert process.returncode == 1
    assert "Broken" not in said


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize(
    ("kernel", "code", "verdict"),
    [
        ("right/saxpy_plain.cu", 0, "passed"),
        ("wrong/saxpy_last_element_missing.cu", 1, "wrong_result"),
        ("wrong/saxpy_guard_off_by_one.cu", 1, "runtime_error"),
        ("wrong/saxpy_unset_local.cu", 1, "wrong_result"),
    ],
)
def test_evaluate_judges_a_given_candidate(kernel: str, code: int, verdict: str) -> None:
    finished = kernelwright(
        "evaluate", "examples/c/saxpy.c", ROOT / "tests/fixtures/kernels" / kernel, "--json"
    )
    assert finished.returncode == code, finished.stderr
    evaluation = document(finished)
    assert evaluation["verdict"] == verdict
    names = "verdict fault message backend target compile plan verification metrics timing reward"
    assert set(evaluation) >= set(names.split())


@pytest.mark.parametrize(
    "command", ["translate", "evaluate", "profile", "replay", "doctor", "serve", "bench"]
)
def test_help_has_an_example(command: str) -> None:
    finished = kernelwright(command, "--help")
    assert finished.returncode == 0
    assert f"kernelwright {command}" in finished.stdout
    assert "Example:" in finished.stdout


def test_the_comparison_with_a_card_says_that_there_is_none() -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("there may be a card here; tests/sandbox/agreement covers the rest")
    finished = kernelwright("bench", "emulator-vs-card")
    assert finished.returncode == 2
    assert finished.stderr.startswith("kernelwright: no NVIDIA driver")
    assert not finished.stdout


def test_a_cancelled_judgement_is_no_fault(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def stopped(options: object) -> None:
        raise Cancelled

    monkeypatch.setattr("webapp.cli.evaluate.judged", stopped)
    assert main(["evaluate", "examples/c/saxpy.c", "saxpy.cu"]) == 130
    assert capsys.readouterr().err == "kernelwright: stopped\n"

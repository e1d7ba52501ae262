"""The trial on whole programs: small projects with a Makefile, whose own check holds, or does not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sandbox.errors import TaskProblem
from tests.conftest import all_end
from webapp.cli.bench_programs import (
    Program,
    Trial,
    _judge,
    read_list,
    read_results,
    run_trials,
    write_result,
)

MAKEFILE = """
ARCH = sm_60
main: main.cu
\tnvcc -arch=$(ARCH) main.cu -o $@
run: main
\t./main 4
clean:
\trm -f main
"""
SOURCE = """
#include <cstdio>
#include <cstdlib>
__global__ void add(int *x, int n) { if (threadIdx.x < n) x[threadIdx.x] += ADDED; }
int main(int count, char **arguments) {
  int n = atoi(arguments[1]), *x, sum = 0;
  cudaMallocManaged(&x, n * sizeof *x);
  for (int i = 0; i < n; i++) x[i] = i;
  add<<<1, 32>>>(x, n);
  cudaDeviceSynchronize();
  for (int i = 0; i < n; i++) sum += x[i];
  puts(sum == n * (n - 1) / 2 + n ? "PASS" : "FAIL");
  cudaFree(x);
}
"""


@pytest.mark.usefixtures("jail")
def test_programs_are_built_run_and_judged_by_their_own_check(tmp_path: Path) -> None:
    for name, added in (("good", "1"), ("bad", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Makefile").write_text(MAKEFILE)
        (tmp_path / name / "main.cu").write_text(SOURCE.replace("ADDED", added))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "Makefile").write_text("main:\n\tfalse\n")
    programs = [Program(name, "8", "PASS", "") for name in ("good", "bad", "broken")]
    trials = run_trials(programs, tmp_path, build=True, seconds=60, jobs=2, options=["--threads", "1"])
    found = {trial.program: trial for trial in trials}
    assert {name: trial.outcome for name, trial in found.items()} == {
        "good": "passed",
        "bad": "wrong",
        "broken": "not built",
    }
    assert (found["good"].findings, found["bad"].detail) == (0, "FAIL")


ERROR = "kernelwright: error: out of bounds: write of 4 bytes"
DIED = "kernelwright: the program died of signal 11 (SIGSEGV)"
REFUSED = "kernelwright: f(int*) cannot be run: unsupported: wgmma"


@pytest.mark.parametrize(
    ("code", "output", "outcome"),
    [
        (0, "PASS", "passed"),
        (0, "all 3 tests PASS, 1 FAILED", "wrong"),
        (0, "the kernel failed as expected: PASS", "passed"),
        (0, "kernelwright: error: assert: assertion `i < n` failed in f(int) (main.cu:2)\nPASS", "passed"),
        (0, "kernelwright: unsupported: no such thing", "unsupported"),
        # Whatever a program printed, it has not passed when it then came to a bad end.
        (1, f"{ERROR}\nPASS", "passed"),  # the checks' own exit code
        (1, "PASS", "wrong"),
        (3, f"{ERROR}\nPASS", "wrong"),
        (3, "PASS", "wrong"),
        (255, "PASS", "wrong"),  # it returned -1
        (139, f"PASS\n{DIED}", "crashed"),
        (137, "PASS\nkernelwright: ended: more than 4G of memory", "crashed"),
        (-9, "PASS", "crashed"),
        (None, "PASS", "too slow"),
        (1, f"{REFUSED}\nPASS", "unsupported"),
        (0, "PASS\nkernelwright: unsupported: cudaLaunchKernelExC", "unsupported"),
    ],
)
def test_what_a_program_says_of_itself(code: int | None, output: str, outcome: str) -> None:
    assert _judge(Program("any", "", "PASS", ""), code, output)[0] == outcome


@pytest.mark.parametrize(
    ("code", "output", "outcome"),
    [
        (0, "12 ms", "passed"),
        (1, ERROR, "passed"),
        (1, "12 ms", "wrong"),
        (134, "kernelwright: the program died of signal 6 (SIGABRT)", "crashed"),
    ],
)
def test_a_program_without_a_check_passes_by_its_end(code: int, output: str, outcome: str) -> None:
    assert _judge(Program("any", "", "-", ""), code, output)[0] == outcome


def test_a_line_of_a_list_that_has_too_few_fields(tmp_path: Path) -> None:
    listed = tmp_path / "list.tsv"
    listed.write_text("# a comment\ngood\t8\tPASS\t./main 4\nbad\t8\n")
    with pytest.raises(TaskProblem) as caught:
        read_list(listed)
    assert caught.value.problem.line == 3


def test_a_list_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskProblem) as caught:
        read_list(tmp_path / "programs.tsv")
    assert str(tmp_path / "programs.tsv") in caught.value.problem.message
    assert "--list" in caught.value.problem.message


def test_leaving_early_ends_what_runs(tmp_path: Path) -> None:
    for name in ("quick", "slow"):
        (tmp_path / name).mkdir()
    (tmp_path / "quick" / "Makefile").write_text("main:\n\tfalse\n")
    (tmp_path / "slow" / "Makefile").write_text(
        "main:\n\ttrap '' TERM; echo $$$$ > running; while :; do sleep 1; done\n"
    )
    programs = [Program(name, "", "PASS", "") for name in ("slow", "quick")]
    trials = run_trials(programs, tmp_path, build=True, seconds=600, jobs=2, options=[])
    assert next(trials).program == "quick"
    running = tmp_path / "slow" / "running"
    deadline = time.monotonic() + 30
    while not running.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    trials.close()
    assert all_end([int(running.read_text())])


def test_results_are_kept_and_a_line_that_is_none_is_named(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    assert read_results(results) == []
    trials = [
        Trial("good", "8", "passed", seconds=1.5, output="PASS"),
        Trial("bad", "", "too slow", checked=False),
    ]
    for trial in trials:
        write_result(trial, results)
    assert read_results(results) == trials
    results.write_text(results.read_text() + '{"program": "half"')
    with pytest.raises(TaskProblem) as caught:
        read_results(results)
    assert caught.value.problem.line == 3

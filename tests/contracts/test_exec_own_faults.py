"""When Kernelwright itself fails, `kernelwright exec` never ends as if the program were good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Looks at no error at all, like many programs; its kernel writes out of bounds.
CARELESS = """
#include <cstdio>
#include <unistd.h>
__global__ void fill(int *x) { x[threadIdx.x + 1000] = 1; }
int main(int count, char **) {
  int *x;
  cudaMalloc(&x, 16);
  if (count > 1) for (int file = 3; file < 1024; file++) close(file);
  fill<<<1, 32>>>(x);
  cudaError_t launched = cudaGetLastError();
  fill<<<1, 32>>>(x);
  printf("%d\\n", launched);
}
"""
# Lowering that fails in the middle of a run, as on a disk that is full by then.
BROKEN = """
import errno, sys
import sandbox.program.run
from webapp.cli.main import main
def broken(*_, **__):
    raise {fault}
sys.modules["sandbox.program.run"].lower = broken  # the package has a function of this name
sys.exit(main())
"""

pytestmark = pytest.mark.usefixtures("jail")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("careless")
    (folder / "careless.cu").write_text(CARELESS)
    done = command("nvcc", "careless.cu", "-o", "careless", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "careless"


def command(
    *words: object, cwd: Path, code: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    how = ["-c", code] if code else ["-m", "webapp.cli.main"]
    return subprocess.run(
        [sys.executable, *how, *map(str, words)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    "fault",
    ["OSError(errno.ENOSPC, 'No space left on device')", "RuntimeError('the lowerer is broken')"],
    ids=["disk", "lowerer"],
)
def test_lowering_that_fails_is_told_and_ends_the_command_with_3(program: Path, fault: str) -> None:
    done = command("exec", "--json", program, cwd=program.parent, code=BROKEN.format(fault=fault))
    assert done.returncode == 3
    report = json.loads(done.stdout)
    assert report["exit_code"] == 3
    assert report["program"] == {"status": 0, "ended": "exited"}
    assert len(report["own_faults"]) == 1
    assert done.stderr.count("kernelwright: own fault: ") == 1
    assert "801\n" in done.stderr  # cudaErrorNotSupported: the program could have known
    assert "Traceback" not in done.stderr


def test_a_program_that_closes_the_connection_cannot_end_well(program: Path) -> None:
    done = command("exec", program, "--", "close", cwd=program.parent)
    assert done.returncode == 3
    assert done.stdout == ""
    assert "own fault: its connection is gone" in done.stderr


def test_a_data_folder_that_cannot_be_written_is_told_before_the_run(program: Path) -> None:
    file = program.parent / "file"
    file.write_text("")
    done = command("exec", program, cwd=program.parent, KERNELWRIGHT_HOME=str(file))
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert f"the data folder {file} cannot be written" in line
    assert "let KERNELWRIGHT_HOME name" in line

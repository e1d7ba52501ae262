"""`kernelwright exec` and `kernelwright nvcc` as people and Makefiles meet them: output, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "webapp.cli.main"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

GOOD = """
#include <cstdio>
#include <cstdlib>
#include "size.h"
__global__ void twice(int *x) { x[threadIdx.x] *= 2; }
int main(int count, char **words) {
  int host[SIZE], *device;
  for (int i = 0; i < SIZE; i++) host[i] = i;
  if (cudaMalloc(&device, sizeof host)) return 99;
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  twice<<<1, SIZE>>>(device);
  cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  cudaFree(device);
  for (int i = 0; i < SIZE; i++) if (host[i] != 2 * i) return 98;
  int read = 0;
  while (getchar() != EOF) read++;
  printf("%d words, %d characters\\n", count - 1, read);
  if (FILE *file = fopen("result", "w")) fclose(file);
  return count > 1 ? atoi(words[1]) : 0;
}
"""
FAULTY = """
#include <cstdio>
__global__ void fill(float *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 0.5f;
}
int main() {
  float *x;
  cudaMalloc(&x, 100 * sizeof(float));
  fill<<<1, 128>>>(x);
  cudaDeviceSynchronize();
  cudaFree(x);
  puts("done");
}
"""
FAULTY_LINE = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With sources, and the executables that `kernelwright nvcc` makes of them."""
    place = tmp_path_factory.mktemp("programs")
    (place / "include").mkdir()
    (place / "include/size.h").write_text("#define SIZE 64\n")
    (place / "good.cu").write_text(GOOD)
    (place / "faulty.cu").write_text(FAULTY)
    # As old Makefiles have it: an architecture nvcc no longer knows, a static runtime, a useless library.
    old = ["-gencode", "arch=compute_35,code=sm_35", "-cudart", "static", "-lcublas"]
    for words in (
        ["-c", "good.cu", "-Iinclude", "-o", "good.o", *old],
        ["good.o", "-o", "good", *old],
        ["faulty.cu", "-o", "faulty", *old],
    ):
        done = command("nvcc", *words, cwd=place)
        assert done.returncode == 0, done.stderr
    return place


def command(*words: object, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        env=ENVIRONMENT,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


pytestmark = pytest.mark.usefixtures("jail")


def test_a_source_is_built_and_run_as_if_in_a_shell(folder: Path) -> None:
    done = command(
        "exec", "good.cu", "--nvcc-args", "-Iinclude -O2", "--", "5", "--check", cwd=folder, stdin="abc"
    )
    assert (done.stdout, done.stderr) == ("2 words, 3 characters\n", "")
    assert done.returncode == 5
    assert (folder / "result").exists()


def test_what_kernelwright_nvcc_made_runs(folder: Path) -> None:
    done = command("exec", "./good", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 words, 0 characters\n", "")


def test_an_error_is_told_with_its_line_and_changes_the_exit_code(folder: Path) -> None:
    done = command("exec", "./faulty", cwd=folder)
    assert done.returncode == 1
    assert done.stdout == "done\n"
    assert "error: out of bounds: write of 4 bytes" in done.stderr
    assert f"{FAULTY_LINE}, in fill(float*), block (0,0,0), thread (100,0,0)" in done.stderr
    assert "kernelwright: 1 error" in done.stderr
    assert "28 times" in done.stderr
    assert command("exec", "--error-exitcode", "77", "./faulty", cwd=folder).returncode == 77
    assert "times" not in command("exec", "--stop-at-first", "./faulty", cwd=folder).stderr


def test_a_source_with_an_error_is_told_with_its_line(folder: Path) -> None:
    """Built and run in one go, as most people will."""
    done = command("exec", "faulty.cu", cwd=folder)
    assert (done.returncode, done.stdout) == (1, "done\n")
    assert "error: out of bounds: write of 4 bytes" in done.stderr
    assert f"at faulty.cu:{FAULTY_LINE}, in fill(float*), block (0,0,0), thread (100,0,0)" in done.stderr
    assert "kernelwright: 1 error" in done.stderr


def test_several_sources_make_one_program(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(
        "__global__ void fill(int *x) { x[threadIdx.x] = 3 * threadIdx.x; }\n"
        "void start(int *x) { fill<<<1, 32>>>(x); }\n"
    )
    (tmp_path / "sum.cpp").write_text(
        "int sum(const int *x, int n) { return n ? x[0] + sum(x + 1, n - 1) : 0; }\n"
    )
    (tmp_path / "main.cu").write_text(
        "#include <cstdio>\nvoid start(int *);\nint sum(const int *, int);\n"
        "int main() {\n  int host[32], *x;\n  cudaMalloc(&x, sizeof host);\n  start(x);\n"
        "  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);\n  cudaFree(x);\n"
        '  printf("%d\\n", sum(host, 32));\n}\n'
    )
    done = command("exec", "main.cu", "kernel.cu", "sum.cpp", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1488\n", "")


def test_the_report_is_one_json_document_and_the_programs_output_goes_to_stderr(folder: Path) -> None:
    done = command("exec", "--json", "./faulty", cwd=folder)
    report = json.loads(done.stdout)
    assert "done\n" in done.stderr
    assert report["exit_code"] == done.returncode == 1
    assert report["program"] == {"status": 0, "ended": "exited"}
    [finding] = report["findings"]
    assert (finding["kind"], finding["line"], finding["kernel"]) == (
        "out of bounds",
        FAULTY_LINE,
        "fill(float*)",
    )
    assert finding["thread"] == [100, 0, 0]


def test_a_profile_adds_up_equal_launches_and_shows_their_lines(tmp_path: Path) -> None:
    (tmp_path / "loop.cu").write_text(
        "__global__ void scale(float *x, float a) {\n"
        "  x[2 * threadIdx.x] *= a;\n}\n"
        "int main() {\n"
        "  float *x;\n  cudaMalloc(&x, 2048);\n  cudaMemset(x, 0, 2048);\n"
        "  for (int i = 0; i < 10; i++) scale<<<1, 256>>>(x, 2);\n"
        "  scale<<<1, 32>>>(x, 2);\n  cudaFree(x);\n}\n"
    )
    done = command("exec", "--profile", "--json", "loop.cu", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kernels = json.loads(done.stdout)["kernels"]
    assert [(kernel["name"], kernel["launches"]) for kernel in kernels] == [
        ("scale(float*, float)", n) for n in (10, 1)
    ]
    # 8 warps, ten times, two sectors for every eight lanes: half of what is moved is used.
    assert kernels[0]["global_load_sectors"] == kernels[0]["global_store_sectors"] == 10 * 8 * 8
    assert kernels[0]["global_load_efficiency"] == 0.5
    assert "10 launches" in done.stderr
    assert "x[2 * threadIdx.x] *= a;" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["exec", "missing.cu"], "no file missing.cu"),
        (["exec", "good.cu"], "size.h"),
        (["exec", "include"], "include is no file"),
        (["exec", "--check=leakcheck", "good.cu"], "no check 'leakcheck'"),
        (["exec", "--memory", "much", "good.cu"], "no size"),
        (["exec", "--memory", "1", "good.cu"], "'1' is too little for any program to start; 64M or more"),
        (["exec", "good.cu", "--check", "memchek"], "no check 'memchek'; known: memcheck"),
        (
            ["exec", "--error-exitcode", "256", "./good"],
            "'256' is no exit code that tells an error; 1 to 255",
        ),
        (["exec", "--error-exitcode", "0", "./good"], "1 to 255"),
        (["exec", "--threads", "0", "./good"], "'0' is no number of threads; 1 to 4096"),
        (["exec", "--threads=-1", "./good"], "'-1' is no number of threads"),
        (["exec", "--seconds", "nan", "./good"], "'nan' is no time; a number of seconds above 0"),
        (["exec", "--seconds=-1", "./good"], "'-1' is no time"),
        (["exec", "--seed=-5", "./good"], "'-5' is no seed; 0 or more"),
        (["exec", "good.cu", "--nvcc-args", '"unclosed'], "cannot be split as a shell does"),
        (["exec", "--writable", "gone", "./good"], "gone is not there: make it first"),
        (["exec", "--writable", "good.cu", "./good"], "good.cu is no folder"),
        (["exec", "faulty.cu", "extra", "args"], "for the program: faulty.cu -- extra"),
        (["exec", "include/size.h"], "include/size.h is no source, object file or library"),
    ],
)
def test_what_cannot_be_built_is_bad_input(folder: Path, words: list[str], said: str) -> None:
    done = command(*words, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_checks_may_be_a_word_of_their_own(folder: Path) -> None:
    for words in (["./faulty", "--check", "racecheck"], ["--check", "racecheck,synccheck", "./faulty"]):
        done = command("exec", *words, cwd=folder)
        assert done.returncode == 0
        assert "--check=memcheck tells more" in done.stderr
    assert command("exec", "--check", "./faulty", cwd=folder).returncode == 1


def test_a_header_that_the_jail_hides_is_told(tmp_path: Path) -> None:
    for name in ("app", "common"):
        (tmp_path / name).mkdir()
    (tmp_path / "common/x.h").write_text("#define X 0\n")
    (tmp_path / "app/main.cu").write_text('#include "../common/x.h"\nint main() { return X; }\n')
    done = command("exec", "main.cu", cwd=tmp_path / "app")
    assert done.returncode == 2
    assert f"{tmp_path}/common/x.h is there" in done.stderr
    assert f"run the command in {tmp_path}," in done.stderr
    assert command("exec", "app/main.cu", cwd=tmp_path).returncode == 0
    (tmp_path / "app/main.cu").write_text('#include "x.h"\nint main() { return X; }\n')
    done = command("exec", "main.cu", "--nvcc-args", "-I../common", cwd=tmp_path / "app")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("named", ["whole", "from there"])
def test_a_source_that_lies_in_tmp_itself(named: str, tmp_path: Path) -> None:
    """Where many try something out first; the jail has a /tmp of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".cu", dir="/tmp") as file:
        file.write("int main() { return 7; }\n")
        file.flush()
        whole = named == "whole"
        done = command(
            "exec", file.name if whole else Path(file.name).name, cwd=tmp_path if whole else Path("/tmp")
        )
    assert (done.returncode, done.stderr) == (7, "")


def test_a_program_of_an_unknown_library_says_which(tmp_path: Path) -> None:
    (tmp_path / "sparse.cu").write_text(
        'extern "C" int cusparseCreate(void **);\nint main() { void *h; return cusparseCreate(&h); }\n'
    )
    done = command("exec", "sparse.cu", "--nvcc-args=-lcusparse", cwd=tmp_path)
    assert done.returncode == 2
    assert "calls cusparseCreate of cuSPARSE (-lcusparse), which Kernelwright does not offer" in done.stderr


def test_a_program_of_cublas(tmp_path: Path) -> None:
    """Built by a Makefile's steps; and a function that is not there is named when a program is linked."""
    (tmp_path / "blas.cu").write_text(
        "#include <cublas_v2.h>\n#include <cstdio>\n"
        "int main() {\n  cublasHandle_t h;\n  cublasStatus_t s = cublasCreate(&h);\n"
        "  puts(cublasGetStatusName(s));\n  return cublasDestroy(h);\n}\n"
    )
    assert command("nvcc", "-c", "blas.cu", "-o", "blas.o", cwd=tmp_path).returncode == 0
    assert command("nvcc", "blas.o", "-o", "blas", "-lcublas", cwd=tmp_path).returncode == 0
    done = command("exec", "./blas", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "CUBLAS_STATUS_SUCCESS\n")
    (tmp_path / "packed.cu").write_text(
        'extern "C" int cublasSspmv_v2();\nint main() { return cublasSspmv_v2(); }\n'
    )
    done = command("exec", "packed.cu", "--nvcc-args=-lcublas", cwd=tmp_path)
    assert done.returncode == 2
    assert "unsupported: the program calls cublasSspmv_v2 of cuBLAS, which Kernelwright offers" in done.stderr


def test_a_program_that_dies_of_a_signal(tmp_path: Path) -> None:
    (tmp_path / "dies.cu").write_text("#include <csignal>\nint main() { raise(SIGSEGV); }\n")
    done = command("exec", "dies.cu", cwd=tmp_path)
    assert done.returncode == 128 + signal.SIGSEGV
    assert "SIGSEGV" in done.stderr


def test_the_static_runtime_is_recognised(tmp_path: Path) -> None:
    static = tmp_path / "static"
    static.write_bytes(b"\x7fELF" + bytes(12) + b"\x03\x00" + b"cudaLaunchKernel")
    static.chmod(0o755)
    done = command("exec", static, cwd=tmp_path)
    assert done.returncode == 2
    assert "kernelwright nvcc" in done.stderr


def test_ctrl_c_ends_everything(tmp_path: Path) -> None:
    (tmp_path / "waits.cu").write_text(
        '#include <unistd.h>\nint main() { write(1, "up", 2); for (;;) pause(); }\n'
    )
    process = subprocess.Popen(
        [*COMMAND, "exec", "waits.cu"], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.read(2) == "up"
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert time.monotonic() - began < 10
    process.stdout.close()


def test_time_limits_end_the_program(tmp_path: Path) -> None:
    (tmp_path / "waits.cu").write_text("#include <unistd.h>\nint main() { for (;;) pause(); }\n")
    done = command("exec", "--seconds", "0.5", "waits.cu", cwd=tmp_path)
    assert done.returncode == 137
    assert "more than 0.5 s" in done.stderr


def test_counts_of_a_sample_say_that_they_are_estimates(folder: Path) -> None:
    (folder / "wide.cu").write_text(FAULTY.replace("100", "25600").replace("<<<1, 128>>>", "<<<200, 128>>>"))
    done = command("exec", "wide.cu", "--profile", "--sample-blocks", 8, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "counted in 8 of 200 blocks: every count is an estimate" in done.stderr
    assert "balance: instructions vary by 0% over warps" in done.stderr
    whole = command("exec", "wide.cu", "--profile", cwd=folder)
    assert "estimate" not in whole.stderr
    alone = command("exec", "wide.cu", "--sample-blocks", 8, cwd=folder)
    assert alone.returncode == 2
    assert "--profile" in alone.stderr

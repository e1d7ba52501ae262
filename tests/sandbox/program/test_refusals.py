"""What a kernel cannot do here: it is said by name, with kernel and line, and nothing dies of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_program import build, run

PROGRAMS = Path(__file__).parent / "programs"
REFUSED = """
#include <cstdio>
__device__ __noinline__ void stop() {
  asm volatile("brkpt;" ::: "memory");
}
__global__ void inspected(int *out) { *out = 1; stop(); }
__global__ void fine(int *out) { *out = 2; }
int main() {
  int *out, host = 0;
  cudaMalloc(&out, 4);
  inspected<<<1, 128>>>(out);
  printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
  fine<<<1, 1>>>(out);
  cudaMemcpy(&host, out, 4, cudaMemcpyDeviceToHost);
  printf("%d\\n", host);
  cudaFree(out);
}
"""
PARENT = """
#include <cstdio>
__global__ void child(int *x) { *x = 1; }
__global__ void parent(int *x) { child<<<1, 1>>>(x); }
__global__ void asks(int *x) { *x = cudaGetLastError(); }
int main() {
  int *x;
  cudaMalloc(&x, 4);
  parent<<<1, 1>>>(x);
  printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
  asks<<<1, 1>>>(x);
  printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
  cudaFree(x);
}
"""

pytestmark = pytest.mark.usefixtures("jail")


@pytest.fixture(scope="module")
def wild(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(PROGRAMS / "wild.cu", tmp_path_factory.mktemp("wild"))


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(PROGRAMS / "clusters.cu", tmp_path_factory.mktemp("clusters"))


def test_an_instruction_is_refused_with_kernel_function_and_line(tmp_path: Path) -> None:
    source = tmp_path / "refused.cu"
    source.write_text(REFUSED)
    result = run(build(source, tmp_path))
    assert result.stdout == "cudaErrorNotSupported\n2\n"
    [(kernel, why)] = result.unsupported.items()
    assert kernel == "_Z9inspectedPi"
    assert why == "unsupported: brkpt in _Z4stopv at line 4"


def test_a_kernel_that_launches_kernels_is_refused_in_words_of_the_source(tmp_path: Path) -> None:
    source = tmp_path / "parent.cu"
    source.write_text(PARENT)
    result = run(build(source, tmp_path, "-rdc=true"))
    assert (result.returncode, result.stdout) == (0, "cudaErrorNotSupported\n" * 2)
    launches, asks = result.unsupported["_Z6parentPi"], result.unsupported["_Z4asksPi"]
    assert "a kernel that launches kernels (<<<...>>> in device code)" in launches
    assert launches.endswith("in _Z6parentPi at line 4")
    assert "cudaGetLastError in a kernel: the CUDA runtime is there for the host alone" in asks


@pytest.mark.parametrize(
    ("how", "kernel", "why"),
    [
        ("attribute", "_Z5plainPi", "a cluster of 4 blocks, by cudaLaunchKernelEx"),
        ("kernel", "_Z5fixedPi", "unsupported: a cluster of 2 blocks in _Z5fixedPi"),
    ],
)
def test_clusters_of_several_blocks_are_refused(clusters: Path, how: str, kernel: str, why: str) -> None:
    result = run(clusters, how)
    assert result.stdout == "cudaSuccess, cudaErrorNotSupported\n"
    assert result.unsupported == {kernel: why}


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("null", "write(int*, long) failed, as it would on a device: null in block (0, 0, 0)"),
        ("far", "scattered(int*, long) failed, as it would on a device: out of bounds in block (2, 0, 0)"),
        ("beyond", "write(int*, long) failed, as it would on a device: out of bounds in block (0, 0, 0)"),
        ("atomic", "update(int*, long) failed, as it would on a device: out of bounds in block (0, 0, 0)"),
    ],
)
def test_memory_that_is_not_there_without_checks(wild: Path, which: str, said: str) -> None:
    """As on a device the launch fails, and every call after it until the device is reset."""
    result = run(wild, which, checks=())
    broken = "cudaErrorIllegalAddress\n"
    assert (result.returncode, result.stdout, result.stderr) == (0, broken + broken + "cudaSuccess\n", "")
    assert result.faults == []
    assert result.notes == [f"{said}; --check=memcheck tells more"]


def test_memory_that_is_not_there_outside_the_sample_of_a_profile(wild: Path) -> None:
    """Blocks that are not counted run without checks as well."""
    result = run(wild, "far", checks=(), profile=True, sample_blocks=1)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("cudaErrorIllegalAddress\n")

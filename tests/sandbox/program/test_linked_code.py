"""Device code of several files, linked together (-rdc=true) and not."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_program import run

from sandbox import program
from sandbox.cancellation import Cancellation

pytestmark = pytest.mark.usefixtures("jail")

MAIN = """
#include <cstdio>
#include "shared.h"
static __device__ int mine = 100;
__global__ void work(int *x) {
  x[threadIdx.x] = scaled(threadIdx.x) + mine + common<int>(threadIdx.x);
  atomicAdd(&total, 1);
}
int main() {
  int *x, host[32];
  cudaMalloc(&x, sizeof host);
  work<<<1, 32>>>(x);
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
  cudaFree(x);
  int sum = 0;
  for (int i = 0; i < 32; i++) sum += host[i];
  printf("%d %d\\n", sum, fetch());
}
"""
SHARED = """
extern __device__ int scaled(int);
extern __device__ int total;
int fetch();
template <class T> __device__ T kept = T(7);
template <class T> __device__ T common(T x) { return kept<T>; }
"""
OTHER = """
#include "shared.h"
static __device__ int mine = 1000;
__device__ int total = 5;
__device__ int scaled(int x) { return 3 * x + mine + common<int>(x); }
int fetch() {
  int value = -1;
  cudaMemcpyFromSymbol(&value, total, sizeof value);
  return value;
}
"""
#: sum of 3 i, the two files' own variables, the template's in both, and what the kernel added up
EXPECTED = f"{3 * 496 + 32 * (1000 + 100 + 7 + 7)} {5 + 32}\n"


@pytest.mark.parametrize("kernel_first", [True, False])
def test_functions_and_variables_of_other_files(tmp_path: Path, kernel_first: bool) -> None:
    (tmp_path / "shared.h").write_text(SHARED)
    files = [tmp_path / "main.cu", tmp_path / "other.cu"]
    files[0].write_text(MAIN)
    files[1].write_text(OTHER)
    with program.build(
        files if kernel_first else files[::-1],
        nvcc_args=["-rdc=true", "-std=c++17"],
        target="sm_90",
        cancel=Cancellation(),
    ) as built:
        ran = run(built.executable)
    assert ran.ok, ran
    assert ran.stdout == EXPECTED


POINTERS = """
typedef int (*Operation)(int);
struct Shape { int side; __device__ virtual int area() const { return -1; } };
extern __device__ Operation chosen[2];
extern __device__ int twice(int);
void choose(Shape **shapes);
"""
CALLS = """
#include <cstdio>
#include "pointers.h"
__device__ int unused(int x) { return x; }
__device__ int seven(int x) { return x + 7; }
struct Square : Shape { __device__ int area() const override { return side * side; } };
__device__ Operation table[2] = {seven, twice};
__global__ void make_square(Shape **shapes) { shapes[1] = new Square; shapes[1]->side = 3; }
__global__ void call(int *out, Shape **shapes) {
  int i = threadIdx.x;
  out[i] = chosen[i & 1](i) + 1000 * table[i & 1](i) + 1000000 * (shapes[0]->area() + shapes[1]->area());
}
int main() {
  int *out, host[32], wrong = 0;
  Shape **shapes;
  cudaMalloc(&out, sizeof host);
  cudaMalloc(&shapes, 2 * sizeof *shapes);
  choose(shapes);
  make_square<<<1, 1>>>(shapes);
  call<<<1, 32>>>(out, shapes);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; i++)
    wrong += host[i] != (i & 1 ? 2 * i : i - 1) + 1000 * (i & 1 ? 2 * i : i + 7) + 19 * 1000000;
  printf("%d wrong\\n", wrong);
}
"""
CHOOSES = """
#include "pointers.h"
__device__ Operation chosen[2];
__device__ int twice(int x) { return 2 * x; }
static __device__ int before(int x) { return x - 1; }
struct Strip : Shape { __device__ int area() const override { return side; } };
__global__ void choose_them(Shape **shapes) {
  chosen[0] = before;
  chosen[1] = twice;
  shapes[0] = new Strip;
  shapes[0]->side = 10;
}
void choose(Shape **shapes) { choose_them<<<1, 1>>>(shapes); }
"""


@pytest.mark.parametrize("options", [[], ["-G"]])
def test_function_pointers_from_a_kernel_of_one_file_to_that_of_another(
    tmp_path: Path, options: list[str]
) -> None:
    """Of device functions and virtual ones, through memory and as what a table starts with."""
    (tmp_path / "pointers.h").write_text(POINTERS)
    for name, text in (("calls", CALLS), ("chooses", CHOOSES)):
        (tmp_path / f"{name}.cu").write_text(text)
    with program.build(
        [tmp_path / "calls.cu", tmp_path / "chooses.cu"],
        nvcc_args=["-rdc=true", "-std=c++17", *options],
        target="sm_90",
        cancel=Cancellation(),
    ) as built:
        for checks in (program.CHECKS, ()):
            ran = run(built.executable, checks=checks)
            assert (ran.stdout, ran.unsupported) == ("0 wrong\n", {}), ran
            assert [fault for fault in ran.faults if fault["kind"] != "leak"] == []


def test_files_that_are_not_linked_have_device_code_of_their_own(tmp_path: Path) -> None:
    one = "#include <cstdio>\n__device__ int kept = {value};\n__global__ void {name}() {{ kept += 1; }}\n"
    last = "void {name}_run() {{\n  {name}<<<1, 1>>>();\n  int v;\n  cudaMemcpyFromSymbol(&v, kept, 4);\n"
    last += '  printf("%d\\n", v);\n}}\n'
    for name, value in (("first", 10), ("second", 20)):
        text = one.replace("__device__ int", "static __device__ int") if name == "second" else one
        (tmp_path / f"{name}.cu").write_text((text + last).format(name=name, value=value))
    (tmp_path / "main.cpp").write_text(
        "void first_run(); void second_run();\nint main() { first_run(); second_run(); second_run(); }\n"
    )
    with program.build(sorted(tmp_path.iterdir()), target="sm_90", cancel=Cancellation()) as built:
        ran = run(built.executable)
    assert ran.ok, ran
    assert ran.stdout == "11\n21\n22\n"

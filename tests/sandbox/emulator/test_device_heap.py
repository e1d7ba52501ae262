"""malloc and free, new and delete in kernels."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of

CUDA = r"""
struct Node { int value; Node* next; };
extern "C" __global__ void lists(int* out, int n) {
  Node* head = nullptr;
  for (int i = 0; i < n; ++i) head = new Node{i * static_cast<int>(threadIdx.x + 32 * blockIdx.x), head};
  int sum = 0;
  while (head) {
    sum += head->value;
    Node* next = head->next;
    delete head;
    head = next;
  }
  out[threadIdx.x + 32 * blockIdx.x] = sum;
}
extern "C" __global__ void exhaust(int* out, unsigned long long size) {
  int got = 0;
  while (malloc(size)) ++got;
  out[0] = got;
}
extern "C" __global__ void reuse(int* out, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    int* piece = static_cast<int*>(malloc(1 << 20));
    if (!piece) { sum = -1; break; }
    piece[i] = i;
    sum += piece[i];
    free(piece);
  }
  out[0] = sum;
}
extern "C" __global__ void hand_over(int** box) {
  int* a = static_cast<int*>(malloc(40));
  a[9] = 17;
  box[0] = a;
}
extern "C" __global__ void take(int** box, int* out, int index) {
  out[0] = box[0][index]; /* takes */
  free(box[0]);
}
extern "C" __global__ void beyond(int n) {
  int* a = static_cast<int*>(malloc(10 * sizeof(int)));
  a[n] = 1;  // beyond
}
extern "C" __global__ void late(int* out) {
  int* a = static_cast<int*>(malloc(10 * sizeof(int)));
  a[1] = 5;
  int sum = a[1];
  free(a);
  out[0] = sum + reinterpret_cast<volatile int*>(a)[1];  // late
}
extern "C" __global__ void unwritten(int* out) {
  int* a = static_cast<int*>(malloc(10 * sizeof(int)));
  out[0] = reinterpret_cast<volatile int*>(a)[3];  // unwritten
}
extern "C" __global__ void frees(int* p, int again) {
  if (again) { p = static_cast<int*>(malloc(4)); p[0] = 1; free(p); }
  free(p); /* frees */
}
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, jail: None) -> Machine:
    return Machine(compile_cuda(CUDA, tmp_path_factory.mktemp("heap")))


def test_every_thread_builds_a_list_of_its_own(machine: Machine) -> None:
    run = machine.run("lists", 8, 32, Out(256, "int32"), 10)
    assert run.arrays["a0"].tolist() == [45 * thread for thread in range(256)]


def test_the_heap_has_eight_megabytes(machine: Machine) -> None:
    got = machine.run("exhaust", 1, 1, Out(1, "int32"), 1 << 20).arrays["a0"][0]
    assert got == 7  # each takes a little more than it asks for
    assert machine.run("exhaust", 1, 1, Out(1, "int32"), 1 << 40).arrays["a0"][0] == 0


def test_freed_memory_comes_back(machine: Machine) -> None:
    assert machine.run("reuse", 1, 1, Out(1, "int32"), 500).arrays["a0"][0] == sum(range(500))


def test_memory_outlives_the_kernel_that_made_it(machine: Machine) -> None:
    first = machine.prepare("hand_over", 1, 1, np.zeros(1, "uint64"))
    [launch] = first.replay.plan.operations
    run = machine.run("take", 1, 1, np.zeros(1, "uint64"), Out(1, "int32"), 9, before=[launch])
    assert run.arrays["a1"].tolist() == [17]
    past = machine.run("take", 1, 1, np.zeros(1, "uint64"), Out(1, "int32"), 10, before=[launch]).fault
    assert (past.kind, past.line) == ("out of bounds", line_of(CUDA, "/* takes */"))


@pytest.mark.parametrize(
    ("kernel", "arguments", "kind", "words", "mark"),
    [
        (
            "beyond",
            [10],
            "out of bounds",
            "behind the end of malloc in a kernel (40 bytes)",
            "// beyond",
        ),
        ("beyond", [-1], "out of bounds", "before the start of malloc in a kernel", "// beyond"),
        ("late", [Out(1, "int32")], "use after free", "which was freed", "// late"),
        ("unwritten", [Out(1, "int32")], "uninitialised", "nothing was written", "// unwritten"),
        ("frees", [0, 1], "bad free", "a second free", "/* frees */"),
        ("frees", [0x1234, 0], "bad free", "which malloc did not give", "/* frees */"),
    ],
)
def test_misuse_is_a_fault(
    machine: Machine, kernel: str, arguments: list[int | Out], kind: str, words: str, mark: str
) -> None:
    fault = machine.run(kernel, 1, 1, *arguments).fault
    assert fault.kind == kind
    assert words in fault.message
    assert fault.line == line_of(CUDA, mark)


def test_a_free_of_nothing_is_fine(machine: Machine) -> None:
    assert machine.run("frees", 1, 32, 0, 0).result.status == "ok"

"""printf and assert in kernels, against this machine's own printf."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of

CUDA = r"""
#include <cassert>
#include <cstdio>
__device__ const char* names[2] = {"zero", "one"};
extern "C" __global__ void each(int* out) {
  int i = threadIdx.x;
  if (i % 3 == 0) out[i] = printf("thread %d says %s\n", i, names[i & 1]);
}
extern "C" __global__ void forms() {
  printf("%d|%5d|%-5d|%05d|%+d|%i|%u|%o|%x|%#X|%hd|%hhd\n",
         -7, 42, 42, 42, 42, -1, 4000000000u, 8, 255, 255, 70000, 300);
  printf("%lld|%llu|%ld|%zu|%llx|%jd|%td\n",
         -5000000000ll, 18446744073709551615ull, 123456789012l, sizeof(int), 1ull << 40, 7ll, 9ll);
  printf("%f|%.3f|%10.2f|%e|%g|%G|%a|%-8.1f|\n", 1.5, 3.14159265, 2.5f, 12345.678, 1e-10, 1e20, 1.0, 9.96);
  printf("%c%c%c|%s|%10s|%-6s|%.2s|%p|%%|%*d|%.*f|%-*d|\n",
         'a', 66, 'z', "text", "right", "left", "cut", (void*)0x1234, 6, 12, 2, 1.23456, 4, 5);
  printf("no arguments, \xc3\xa4\n");
  printf("%s\n", (const char*)nullptr);
}
extern "C" __global__ void local_text() {
  char text[8];
  for (int i = 0; i < 7; ++i) text[i] = 'a' + (threadIdx.x + i) % 26;
  text[7] = 0;
  printf("[%s]", text);
}
extern "C" __global__ void noise(int n) { for (int i = 0; i < n; ++i) printf("%0100d\n", i); }
extern "C" __global__ void nowhere(const char* s) { printf("%s", s); /* reads */ }
extern "C" __global__ void wide() { printf("%1000000000d", 1); }
extern "C" __global__ void asserts(int* out, int n) {
  assert(out[threadIdx.x] < n && "small enough");
}
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, jail: None) -> Machine:
    return Machine(compile_cuda(CUDA, tmp_path_factory.mktemp("output")))


def host_printf(form: str, *values: object) -> str:
    buffer = ctypes.create_string_buffer(4096)
    ctypes.CDLL(None).snprintf(buffer, 4096, form.encode(), *values)
    return buffer.value.decode()


def test_lanes_print_in_order_and_learn_how_many_arguments(machine: Machine) -> None:
    run = machine.run("each", 1, 32, np.full(32, -5, "int32"))
    assert run.result.output == "".join(
        f"thread {i} says {['zero', 'one'][i & 1]}\n" for i in range(0, 32, 3)
    )
    assert run.arrays["a0"].tolist() == [2 if i % 3 == 0 else -5 for i in range(32)]


def test_every_conversion_is_what_printf_makes_of_it(machine: Machine) -> None:
    long, double, word = ctypes.c_longlong, ctypes.c_double, ctypes.c_int
    lines = [
        host_printf(
            "%d|%5d|%-5d|%05d|%+d|%i|%u|%o|%x|%#X|%hd|%hhd",
            *map(word, (-7, 42, 42, 42, 42, -1, 4000000000, 8, 255, 255, 70000, 300)),
        ),
        host_printf(
            "%lld|%llu|%ld|%zu|%llx|%jd|%td",
            *map(long, (-5000000000, (1 << 64) - 1, 123456789012, 4, 1 << 40, 7, 9)),
        ),
        host_printf(
            "%f|%.3f|%10.2f|%e|%g|%G|%a|%-8.1f|",
            *map(double, (1.5, 3.14159265, 2.5, 12345.678, 1e-10, 1e20, 1.0, 9.96)),
        ),
        "aBz|text|     right|left  |cu|0x1234|%|    12|1.23|5   |",
        "no arguments, ä",
        "(null)",
    ]
    assert machine.run("forms", 1, 1).result.output.splitlines() == lines


def test_text_in_local_memory(machine: Machine) -> None:
    expected = "".join(
        "[" + "".join(chr(ord("a") + (thread + i) % 26) for i in range(7)) + "]" for thread in range(40)
    )
    assert machine.run("local_text", 1, 40, threads=1).result.output == expected


def test_output_is_capped(machine: Machine) -> None:
    output = machine.run("noise", 1, 1, 2000).result.output
    assert len(output) == 1 << 16
    assert output.startswith("0" * 99 + "0\n" + "0" * 99 + "1\n")


def test_a_width_without_reason_is_bounded(machine: Machine) -> None:
    assert len(machine.run("wide", 1, 1).result.output) < 1 << 15


def test_a_string_that_is_not_there_is_a_fault(machine: Machine) -> None:
    fault = machine.run("nowhere", 1, 1, 0x1234).fault
    assert fault.kind == "out of bounds"
    assert "printf reads a string at 0x1234" in fault.message
    assert fault.line == line_of(CUDA, "/* reads */")


def test_an_assertion_names_itself_and_its_thread(machine: Machine) -> None:
    values = np.zeros(64, "int32")
    values[37] = 5
    fault = machine.run("asserts", 1, 64, values, 5).fault
    assert fault.kind == "assert"
    assert 'out[threadIdx.x] < n && "small enough"' in fault.message
    assert "kernels.cu" in fault.message
    assert "asserts" in fault.message
    assert fault.thread == (37, 0, 0)
    assert fault.line == line_of(CUDA, 'n && "small enough"')
    assert machine.run("asserts", 1, 64, values, 6).result.status == "ok"


def test_nothing_printed_is_no_output(tmp_path: Path, machine: Machine) -> None:
    assert machine.run("asserts", 1, 1, Out(1, "int32"), 1, count=False).result.output == ""

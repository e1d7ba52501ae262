"""Calls of every kind: through tables and vtables, recursive, by some lanes, out of the kernel, by index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"
CUDA = r"""
struct Shape { __device__ virtual int area() const = 0; int side; };
struct Square : Shape { __device__ int area() const override { return side * side; } };
struct Double : Shape { __device__ int area() const override { return 2 * side; } };
typedef int (*Operation)(int, int);
__device__ int add(int a, int b) { return a + b; }
__device__ int subtract(int a, int b) { return a - b; }
__device__ int multiply(int a, int b) { return a * b; }
__device__ Operation table[3] = {add, subtract, multiply};
__constant__ Operation constant_table[2] = {multiply, add};
__device__ int apply(Operation f, int a, int b) { return f(a, b); }

extern "C" __global__ void tables(int* out, int n) {
  int i = threadIdx.x;
  out[i] = table[i % 3](i, n) + 1000 * constant_table[i & 1](i, 2);
}
extern "C" __global__ void pass(int* out, Operation given, int n) {
  out[threadIdx.x] = apply(threadIdx.x < 7 ? given : table[2], threadIdx.x, n);
}
extern "C" __global__ void take(Operation* out) { out[0] = subtract; out[1] = nullptr; }
extern "C" __global__ void virtuals(int* out) {
  Square square; Double twice;
  square.side = twice.side = threadIdx.x;
  Shape* shapes[2] = {&square, &twice};
  out[threadIdx.x] = shapes[threadIdx.x * 7 % 5 & 1]->area();
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ int is_odd(int n);
__device__ __noinline__ int is_even(int n) { return n == 0 ? 1 : is_odd(n - 1); }
__device__ __noinline__ int is_odd(int n) { return n == 0 ? 0 : is_even(n - 1); }
extern "C" __global__ void recurse(int* out) {
  out[threadIdx.x] = fibonacci(threadIdx.x % 12) + 1000 * is_even(threadIdx.x);
}
__device__ __noinline__ int frames(int n, int seed) {
  int own[8];
  for (int i = 0; i < 8; ++i) own[i] = seed * i + n;
  int below = n ? frames(n - 1, seed + 1) : 0;
  int sum = below;
  for (int i = 0; i < 8; ++i) sum += own[(i + seed) % 8] * (i + 1);
  return sum;
}
extern "C" __global__ void deep(int* out) { out[threadIdx.x] = frames(threadIdx.x % 9, threadIdx.x); }
__device__ __noinline__ int forever(int n) {
  volatile int own[4];
  own[n & 3] = n;
  return forever(n + 1) + own[1];  // too deep
}
extern "C" __global__ void endless(int* out) { out[0] = forever(out[0]); }
__device__ __noinline__ int leave(int n) {
  if (n % 3 == 0) asm volatile("exit;");
  return n * 2;
}
__device__ __noinline__ int leave_deeper(int n) { return n & 1 ? leave(n) + 1 : n; }
extern "C" __global__ void exits(int* out) {
  int n = threadIdx.x;
  if (n < 20) out[n] = leave_deeper(n);
  else out[n] = -n;
}
extern "C" __global__ void allocas(int* out, int n) {
  int total = 0;
  for (int round = 1; round < 4; ++round) {
    int count = n * round + threadIdx.x;
    int* own = static_cast<int*>(__builtin_alloca(count * sizeof(int)));
    for (int i = 0; i < count; ++i) own[i] = i * round;
    for (int i = 0; i < count; ++i) total += own[count - 1 - i] * (i + 1);
  }
  out[threadIdx.x] = total;
}
extern "C" __global__ void wrong(Operation f, int* out) { out[0] = f(1, 2); /* called */ }
extern "C" __global__ void other_kind(int (*f)(int), int* out) { out[0] = f(1); }
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, jail: None) -> Machine:
    return Machine(compile_cuda(CUDA, tmp_path_factory.mktemp("calls")))


@pytest.fixture(scope="module")
def debug(tmp_path_factory: pytest.TempPathFactory, jail: None) -> Machine:
    return Machine(compile_cuda(CUDA, tmp_path_factory.mktemp("calls-debug"), options=["-G"]))


@pytest.fixture(params=["machine", "debug"])
def either(request: pytest.FixtureRequest) -> Machine:
    machine: Machine = request.getfixturevalue(request.param)
    return machine


def ints(count: int) -> Out:
    return Out(count, "int32")


def test_tables_of_functions(either: Machine) -> None:
    i = np.arange(64)
    expected = np.choose(i % 3, [i + 5, i - 5, i * 5]) + 1000 * np.where(i & 1, i + 2, i * 2)
    assert either.run("tables", 1, 64, ints(64), 5).arrays["a0"].tolist() == expected.tolist()


def test_a_pointer_that_one_launch_stored_another_can_call(machine: Machine) -> None:
    pointers = machine.run("take", 1, 1, Out(2, "uint64")).arrays["a0"]
    assert pointers[0] % 16 == 0
    assert pointers[1] == 0
    i = np.arange(32)
    out = machine.run("pass", 1, 32, ints(32), int(pointers[0]), 3).arrays["a0"]
    assert out.tolist() == np.where(i < 7, i - 3, i * 3).tolist()


def test_virtual_functions(either: Machine) -> None:
    i = np.arange(32)
    expected = np.where(i * 7 % 5 & 1, 2 * i, i * i)
    assert either.run("virtuals", 1, 32, ints(32)).arrays["a0"].tolist() == expected.tolist()


def test_recursion(either: Machine) -> None:
    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    expected = [fibonacci(i % 12) + 1000 * (i % 2 == 0) for i in range(40)]
    assert either.run("recurse", 1, 40, ints(40)).arrays["a0"].tolist() == expected


def test_each_call_has_its_own_local_variables(either: Machine) -> None:
    def frames(n: int, seed: int) -> int:
        own = [seed * i + n for i in range(8)]
        below = frames(n - 1, seed + 1) if n else 0
        return below + sum(own[(i + seed) % 8] * (i + 1) for i in range(8))

    expected = [frames(i % 9, i) for i in range(64)]
    assert either.run("deep", 1, 64, ints(64)).arrays["a0"].tolist() == expected


def test_endless_recursion_is_a_fault(either: Machine) -> None:
    fault = either.run("endless", 1, 1, np.zeros(1, "int32")).fault
    assert fault.kind == "stack overflow"
    assert "nest too deep" in fault.message
    lines = range(line_of(CUDA, "forever(int n)"), line_of(CUDA, "// too deep") + 1)
    assert fault.line in lines


def test_lanes_that_leave_the_kernel_in_a_call_are_gone(either: Machine) -> None:
    start = np.full(32, 77, "int32")
    expected = [77 if n < 20 and n & 1 and n % 3 == 0 else 2 * n + 1 if n & 1 else n for n in range(20)]
    expected += [-n for n in range(20, 32)]
    assert either.run("exits", 1, 32, start).arrays["a0"].tolist() == expected


def test_alloca_gives_each_lane_what_it_asks_for(either: Machine) -> None:
    def total(thread: int) -> int:
        counts = [(5 * r + thread, r) for r in range(1, 4)]
        return sum((count - 1 - i) * r * (i + 1) for count, r in counts for i in range(count))

    expected = [total(thread) for thread in range(32)]
    assert either.run("allocas", 1, 32, ints(32), 5).arrays["a0"].tolist() == expected


def test_alloca_has_a_limit(machine: Machine) -> None:
    fault = machine.run("allocas", 1, 1, ints(1), 1 << 20).fault
    assert fault.kind == "stack overflow"
    assert "local memory" in fault.message


@pytest.mark.parametrize(
    ("pointer", "kind", "words"),
    [
        (0, "null", "null function pointer"),
        (0x1234, "bad call", "0x1234, where no function is"),
        (0x1300_0000_0008, "bad call", "no function is"),
    ],
)
def test_a_wrong_pointer_is_a_fault(machine: Machine, pointer: int, kind: str, words: str) -> None:
    fault = machine.run("wrong", 1, 1, pointer, ints(1)).fault
    assert fault.kind == kind
    assert words in fault.message
    assert fault.line == line_of(CUDA, "/* called */")


def test_a_function_of_another_kind_is_a_fault(machine: Machine) -> None:
    pointer = int(machine.run("take", 1, 1, Out(2, "uint64")).arrays["a0"][0])
    fault = machine.run("other_kind", 1, 1, pointer, ints(1)).fault
    assert fault.kind == "bad call"
    assert "other parameters" in fault.message


# Forms that nvcc does not emit ---------------------------------------------------------------------------

ENTRY = """
.visible .entry k(.param .u64 k_out, .param .align 8 .b8 k_s[64]) {
	.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
	ld.param.u64 %rd1, [k_out];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	BODY
	st.global.u32 [%rd1], %r2;
	ret;
}
"""


@pytest.fixture
def run_ptx(jail: None) -> object:
    def run(body: str, functions: str = "", threads: int = 32) -> list[int]:
        machine = Machine(HEADER + functions + ENTRY.replace("BODY", body))
        struct = np.arange(16, dtype="int32") * 11
        run = machine.run("k", 1, threads, ints(threads), struct.view("V64")[0])
        assert run.result.status == "ok", run.result
        values: list[int] = run.arrays["a0"].tolist()
        return values

    return run


def test_branch_by_index(run_ptx) -> None:  # type: ignore[no-untyped-def]
    body = """
	and.b32 %r3, %r1, 3;
	targets: .branchtargets A, B, A, C;
	setp.lt.u32 %p1, %r1, 28;
	mov.u32 %r2, 5;
	@%p1 brx.idx %r3, targets;
	bra D;
	A: mov.u32 %r2, 1; bra D;
	B: mov.u32 %r2, 2; bra D;
	C: mov.u32 %r2, 3;
	D:
	"""
    assert run_ptx(body) == [[1, 2, 1, 3][i & 3] if i < 28 else 5 for i in range(32)]


def test_a_loop_by_index_ends(run_ptx) -> None:  # type: ignore[no-untyped-def]
    body = """
	mov.u32 %r2, 0;
	ts: .branchtargets L, E;
	L: add.u32 %r2, %r2, 3;
	setp.gt.u32 %p1, %r2, %r1;
	selp.u32 %r3, 1, 0, %p1;
	brx.idx %r3, ts;
	E:
	"""
    assert run_ptx(body) == [3 * (i // 3 + 1) for i in range(32)]


def test_calltargets(run_ptx) -> None:  # type: ignore[no-untyped-def]
    functions = """
.func (.param .b32 r) one(.param .b32 a) {
	.reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.u32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) ten(.param .b32 a) {
	.reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.u32 %r2, %r1, 10; st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) never(.param .b32 a);
"""
    body = """
	mov.u64 %rd3, one; mov.u64 %rd4, ten;
	setp.lt.u32 %p1, %r1, 9;
	selp.b64 %rd5, %rd3, %rd4, %p1;
	list: .calltargets one, ten;
	mov.u32 %r2, 7;
	{ .param .b32 a; .param .b32 r;
	st.param.b32 [a], %r1;
	setp.ne.u32 %p2, %r1, 5;
	@%p2 call (r), %rd5, (a), list;
	@%p2 ld.param.b32 %r2, [r]; }
	"""
    assert run_ptx(body, functions) == [7 if i == 5 else i + 1 if i < 9 else i + 10 for i in range(32)]


def test_structs_by_value_and_by_address(run_ptx) -> None:  # type: ignore[no-untyped-def]
    functions = """
.func (.param .align 8 .b8 r[16]) pick(.param .align 8 .b8 s[32], .param .b32 n) {
	.reg .b32 %r<5>; .reg .b64 %rd<5>;
	ld.param.b32 %r1, [n];
	mov.b64 %rd1, s;
	cvta.param.u64 %rd2, %rd1;
	mul.wide.u32 %rd3, %r1, 4;
	add.u64 %rd4, %rd2, %rd3;
	ld.b32 %r2, [%rd4];
	add.u64 %rd4, %rd1, %rd3;
	ld.param.b32 %r3, [%rd4];
	ld.param.b32 %r4, [s+4];
	st.param.v2.b32 [r+8], {%r2, %r3};
	st.param.b32 [r], %r4;
	ret;
}
"""
    body = """
	{ .param .align 8 .b8 s[32]; .param .b32 n; .param .align 8 .b8 r[16];
	st.param.b32 [s], 100; st.param.b32 [s+4], %r1;
	st.param.v2.b32 [s+8], {200, 300}; st.param.b64 [s+16], 400;
	and.b32 %r3, %r1, 3;
	setp.lt.u32 %p1, %r1, 16;
	st.param.b32 [s+12], 1;
	@%p1 st.param.b32 [s+12], 301;
	st.param.b32 [n], %r3;
	call (r), pick, (s, n);
	ld.param.v2.b32 {%r4, %r5}, [r+8];
	ld.param.b32 %r6, [r]; }
	sub.u32 %r5, %r4, %r5;
	add.u32 %r2, %r4, %r5;
	mad.lo.u32 %r2, %r6, 1000, %r2;
	"""
    third = [301 if i < 16 else 1 for i in range(32)]
    expected = [[100, i, 200, third[i]][i & 3] + 1000 * i for i in range(32)]
    assert run_ptx(body, functions) == expected


def test_kernel_parameters_at_a_computed_address(run_ptx) -> None:  # type: ignore[no-untyped-def]
    body = """
	mov.b64 %rd3, k_s;
	and.b32 %r3, %r1, 15;
	mul.wide.u32 %rd4, %r3, 4;
	add.u64 %rd5, %rd3, %rd4;
	ld.param.u32 %r4, [%rd5];
	cvta.param.u64 %rd6, %rd5;
	ld.u32 %r5, [%rd6];
	ld.param.v2.u32 {%r6, %r7}, [k_s+8];
	add.u32 %r2, %r4, %r5;
	add.u32 %r2, %r2, %r7;
	"""
    assert run_ptx(body) == [22 * (i & 15) + 33 for i in range(32)]


def test_the_first_of_several_weak_definitions_counts(run_ptx) -> None:  # type: ignore[no-untyped-def]
    functions = """
.weak .func (.param .b32 r) w();
.weak .func (.param .b32 r) w() { st.param.b32 [r], 1; ret; }
.weak .func (.param .b32 r) w() { st.param.b32 [r], 2; ret; }
.weak .global .align 4 .u32 v = 10;
.weak .global .align 4 .u32 v = 20;
"""
    body = """
	{ .param .b32 r; call (r), w; ld.param.b32 %r3, [r]; }
	ld.global.u32 %r4, [v];
	add.u32 %r2, %r3, %r4;
	"""
    assert set(run_ptx(body, functions)) == {11}


def test_stack_save_and_restore(run_ptx) -> None:  # type: ignore[no-untyped-def]
    body = """
	mov.u32 %r2, 0;
	mov.u32 %r3, 0;
	L:
	stacksave.u64 %rd3;
	alloca.u64 %rd4, 4096, 32;
	st.local.u32 [%rd4+4092], %r1;
	ld.local.u32 %r4, [%rd4+4092];
	add.u32 %r2, %r2, %r4;
	stackrestore.u64 %rd3;
	add.u32 %r3, %r3, 1;
	setp.le.u32 %p1, %r3, %r1;
	@%p1 bra L;
	"""
    assert run_ptx(body) == [i * (i + 1) for i in range(32)]


def test_an_index_outside_its_list_is_a_fault(jail: None) -> None:
    body = "ts: .branchtargets A; brx.idx %r1, ts; A: mov.u32 %r2, 1;"
    machine = Machine(HEADER + ENTRY.replace("BODY", body))
    fault = machine.run("k", 1, 2, ints(2), np.zeros(16, "int32").view("V64")[0]).fault
    assert fault.kind == "bad call"
    assert fault.thread == (1, 0, 0)


def test_debug_builds_of_the_same_functions_can_be_lowered_alone(tmp_path: Path, jail: None) -> None:
    ptx = compile_cuda(CUDA, tmp_path, options=["-G"])
    run = Machine(ptx, kernels=["exits"]).run("exits", 1, 4, np.zeros(4, "int32"))
    assert run.arrays["a0"].tolist() == [0, 3, 2, 0]


def test_a_struct_of_16_kilobytes_by_value(tmp_path: Path, jail: None) -> None:
    source = """
struct Big { int a[4096]; };
__device__ __noinline__ int sum(Big b, int n) {
  int total = 0;
  for (int i = 0; i < n; ++i) total += b.a[i];
  b.a[n] = 1;
  return total + b.a[n / 2];
}
extern "C" __global__ void k(int* out, Big b, int n) {
  b.a[n] = 3;
  out[threadIdx.x] = sum(b, n + threadIdx.x);
}
"""
    machine = Machine(compile_cuda(source, tmp_path))
    values = np.arange(4096, dtype="int32")
    run = machine.run("k", 1, 4, ints(4), values.view("V16384")[0], 20)
    changed = values.tolist()
    changed[20] = 3
    expected = [sum(changed[: 20 + i]) + changed[(20 + i) // 2] for i in range(4)]
    assert run.arrays["a0"].tolist() == expected

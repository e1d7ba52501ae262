"""Only what is launched is lowered, with what it can call; modules are linked by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda

from sandbox.cancellation import Cancellation
from sandbox.emulator.client import lower
from sandbox.emulator.lowering.module import lower_modules
from sandbox.errors import Judged

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"
TWO = (
    HEADER
    + """
.func (.param .b32 r) twice(.param .b32 a) {
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [a];
	add.s32 %r2, %r1, %r1;
	st.param.b32 [r], %r2;
	ret;
}
.func unused() { wgmma.fence.sync.aligned; ret; }
.visible .entry good(.param .u64 p) {
	.reg .b32 %r<3>; .reg .b64 %rd<3>;
	ld.param.u64 %rd1, [p];
	{ .param .b32 a; .param .b32 r; st.param.b32 [a], 21; call (r), twice, (a); ld.param.b32 %r1, [r]; }
	st.global.u32 [%rd1], %r1;
	ret;
}
.visible .entry bad(.param .u64 p) { wgmma.fence.sync.aligned; ret; }
"""
)


@pytest.mark.usefixtures("jail")
def test_a_kernel_that_is_not_launched_need_not_be_supported() -> None:
    run = Machine(TWO, kernels=["good"]).run("good", 1, 1, Out(1, "int32"))
    assert run.arrays["a0"].tolist() == [42]


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("kernels", [[(0, "bad")], [(0, "good"), (0, "bad")], None])
def test_a_kernel_that_is_launched_has_to_be(kernels: list[tuple[int, str]] | None) -> None:
    with pytest.raises(Judged) as caught:
        lower([TWO], Cancellation(), kernels)
    assert caught.value.verdict == "unsupported"
    assert "wgmma" in caught.value.message


@pytest.mark.usefixtures("jail")
def test_each_choice_of_kernels_is_cached_for_itself() -> None:
    none, good = lower([TWO], Cancellation(), []), lower([TWO], Cancellation(), [(0, "good")])
    assert none != good
    assert lower([TWO], Cancellation(), [(0, "good"), (0, "good")]) == good


def test_what_is_lowered_is_what_can_be_reached() -> None:
    assert "kw.0.twice" in lower_modules([TWO], [(0, "good")]).ir
    assert "kw.0.unused" not in lower_modules([TWO], [(0, "good")]).ir
    assert "kw.0." not in lower_modules([TWO], []).ir


@pytest.mark.usefixtures("jail")
def test_another_module_may_define_a_function_and_a_variable() -> None:
    user = (
        HEADER
        + """
.extern .global .align 4 .u32 shared_number;
.extern .func (.param .b32 r) elsewhere(.param .b32 a);
.extern .func nowhere();
.extern .global .align 4 .u32 nothing;
.visible .entry k(.param .u64 p) {
	.reg .b32 %r<3>; .reg .b64 %rd<3>;
	ld.param.u64 %rd1, [p];
	ld.global.u32 %r2, [shared_number];
	{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r2; call (r), elsewhere, (a); ld.param.b32 %r1, [r]; }
	st.global.u32 [%rd1], %r1;
	ret;
}
.visible .entry lost(.param .u64 p) { .reg .b32 %r<2>; ld.global.u32 %r1, [nothing]; ret; }
"""
    )
    definer = (
        HEADER
        + """
.visible .global .align 4 .u32 shared_number = 5;
.visible .func (.param .b32 r) elsewhere(.param .b32 a) {
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [a];
	mul.lo.s32 %r2, %r1, 100;
	st.param.b32 [r], %r2;
	ret;
}
"""
    )
    run = Machine(user, definer, kernels=["k"]).run("k", 1, 1, Out(1, "int32"))
    assert run.arrays["a0"].tolist() == [500]
    lost = Machine(user, kernels=["lost"]).run("lost", 1, 1, np.zeros(1, "int32"))
    assert lost.result.status == "unsupported"
    assert "nothing" in lost.result.message


@pytest.mark.usefixtures("jail")
def test_faults_and_counts_name_the_file(tmp_path: Path) -> None:
    helper = "__device__ __noinline__ int last(const int* a, int n) {\n  return a[n];  // beyond\n}\n"
    source = '#include "helper.h"\nextern "C" __global__ void k(int* a, int n) {\n  a[0] = last(a, n);\n}\n'
    (tmp_path / "helper.h").write_text(helper)
    machine = Machine(compile_cuda(source, tmp_path))
    fault = machine.run("k", 1, 1, np.ones(4, "int32"), 4).fault
    assert (Path(fault.file).name, fault.line) == ("helper.h", 2)
    lines = {
        (Path(line.file).name, line.line)
        for line in machine.run("k", 1, 1, np.ones(4, "int32"), 3).trace.lines
    }
    assert {("helper.h", 2), ("kernels.cu", 3)} <= lines

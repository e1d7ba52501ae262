"""The judge's door: caching, refusals, cancellation, several modules, several plans."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from emulated import Machine, Out

from sandbox.cancellation import Cancellation
from sandbox.emulator.client import Lowered, Replay, lower, replay
from sandbox.errors import Cancelled, Judged
from sandbox.plan import DEVICE_BASE, SCRATCH_BASE, Allocate, Launch, LaunchPlan, WriteSymbol

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"
COUNT = (
    HEADER
    + """
.global .align 4 .u32 start = 5;
.visible .entry count(.param .u64 p) {
	.reg .b32 %r<3>; .reg .b64 %rd<5>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
	ld.global.u32 %r2, [start];
	add.u32 %r1, %r1, %r2;
	st.global.u32 [%rd3], %r1;
	ret;
}
"""
)
FOREVER = HEADER + ".visible .entry forever() {\n$L: bra $L;\n}\n"

pytestmark = pytest.mark.usefixtures("jail")


def test_the_same_text_is_lowered_once() -> None:
    first = lower([COUNT], Cancellation())
    began = time.monotonic()
    assert lower([COUNT], Cancellation()) == first
    assert time.monotonic() - began < 0.05


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("wgmma.fence.sync.aligned;", "wgmma.fence"),
        ("tex.2d.v4.f32.s32 {%f1, %f1, %f1, %f1}, [t, {%r1, %r1}];", "tex.2d"),
        ("mov.u32 %r1, %pm3;", "%pm3"),
        ("ld.global.v8.f64 {%d1, %d1, %d1, %d1, %d1, %d1, %d1, %d1}, [%rd1];", "ld.global.v8.f64"),
        ("call.uni vprintf, (%rd1);", "vprintf"),
        ("call.uni cudaGetParameterBuffer;", "a kernel that launches kernels"),
        ("call.uni cudaGetLastError;", "cudaGetLastError in a kernel"),
        ("call.uni elsewhere;", "elsewhere, which nothing here defines"),
        ("ld.param.u32 %r1, [k_param+8];", "bytes 8 to 12 of parameters that have 8 bytes"),
        ("ld.param.u32 %r1, [k_param+-4];", "bytes -4 to 0 of parameters that have 8 bytes"),
        ("{ .param .b32 p; st.param.b32 [p+100000], %r1; }", "bytes 100000 to 100004"),
        ("{ .param .b32 p; st.param.b32 [p+-100000], %r1; }", "bytes -100000 to -99996"),
    ],
)
def test_what_is_not_supported_names_the_instruction_and_its_line(statement: str, words: str) -> None:
    text = HEADER + (
        ".visible .entry k(.param .u64 k_param) {\n"
        ".reg .b32 %r<3>; .reg .f32 %f<3>; .reg .f64 %d<3>; .reg .b64 %rd<3>;\n"
        f".loc 1 42 3\n{statement}\nret;\n}}\n"
        '.file 1 "/scratch/candidate.cu"\n'
    )
    with pytest.raises(Judged) as caught:
        lower([text], Cancellation())
    assert (caught.value.verdict, caught.value.fault) == ("unsupported", "kernelwright")
    assert words in caught.value.message
    assert caught.value.message.endswith(" in k at line 42")


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_that_is_not_there_in_a_replay_without_checks(threads: int) -> None:
    """A fault like others, of the block that started first; the process lives, and replays what follows."""
    machine = Machine(
        HEADER + ".visible .entry k(.param .u64 out, .param .u64 far) {\n"
        ".reg .b64 %d<5>; .reg .b32 %r<3>; .reg .pred %p1;\n"
        "ld.param.u64 %d1, [out]; ld.param.u64 %d2, [far]; mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4;\n"
        "mov.u32 %r2, %ctaid.x; setp.lt.u32 %p1, %r2, 3; @%p1 bra FINE; add.u64 %d1, %d1, %d2;\n"
        "FINE: add.u64 %d1, %d1, %d3; st.global.u32 [%d1], %r1; ret; }",
        mode="plain",
    )
    far = machine.run("k", 8, 64, Out(64, "uint32"), 1 << 46, threads=threads)
    assert (far.fault.kind, far.fault.kernel, far.fault.line) == ("out of bounds", "k", None)
    assert far.fault.block == (3, 0, 0)
    assert "run with checks to see which, and at which line" in far.fault.message
    near = machine.run("k", 8, 64, Out(64, "uint32"), 0, threads=threads)
    assert near.result.status == "ok"
    assert near.arrays["a0"].tolist() == list(range(64))


def test_symbols_keep_their_initial_values_for_every_plan() -> None:
    machine = Machine(COUNT)
    write = WriteSymbol(module=0, symbol="start", offset=0, data=(100).to_bytes(4, "little").hex())
    prepared = [machine.prepare("count", 1, 4, Out(4, "int32"), before=before) for before in ([write], [])]
    runs = machine.run_all(prepared)
    assert [run.arrays["a0"].tolist() for run in runs] == [[100, 101, 102, 103], [5, 6, 7, 8]]


def test_two_modules_may_use_the_same_names() -> None:
    lowered = lower([COUNT, COUNT.replace("start = 5", "start = 50")], Cancellation())
    machine = Machine(COUNT)
    first = machine.prepare("count", 1, 2, Out(2, "int32"))
    launch = first.replay.plan.launches[0].model_copy(update={"module": 1})
    second = Replay(LaunchPlan(operations=[launch]), first.replay.buffers, count=False)
    results = replay(lowered, [first.replay, second], seconds=5, threads=1, cancel=Cancellation())
    assert [np.frombuffer(read["a0"], "i4").tolist() for _, read in results] == [[5, 6], [50, 51]]


def test_replaying_stops_after_the_first_fault_and_reports_progress() -> None:
    machine = Machine(COUNT)
    good = machine.prepare("count", 1, 4, Out(4, "int32")).replay
    bad = machine.prepare("count", 1, 8, Out(4, "int32")).replay
    seen: list[tuple[int, int]] = []
    results = replay(
        machine.lowered,
        [good, bad, good],
        seconds=5,
        threads=1,
        cancel=Cancellation(),
        on_progress=lambda done, of: seen.append((done, of)),
    )
    assert [result.status for result, _ in results] == ["ok", "fault"]
    assert seen == [(1, 3), (2, 3)]


def _plan(kernel: str, parameters: str = "") -> Replay:
    launch = Launch(
        module=0, kernel=kernel, grid=(1, 1, 1), block=(32, 1, 1), shared_bytes=0, parameters=parameters
    )
    return Replay(LaunchPlan(operations=[launch]), [], count=False)


def test_a_frame_larger_than_a_warps_stack() -> None:
    """Not written to whatever lies below the stack."""
    blocks = "".join(f".param .b8 p{i}[30000]; " for i in range(5))
    stores = "".join(f"st.param.b32 [p{i}], %r1; st.param.b32 [p{i}+29996], %r1; " for i in range(5))
    text = f"{HEADER}.visible .entry k() {{ .reg .b32 %r<2>; {blocks}mov.u32 %r1, %tid.x; {stores}ret; }}\n"
    with pytest.raises(Judged) as caught:
        replay(lower([text], Cancellation()), [_plan("k")], seconds=5, threads=1, cancel=Cancellation())
    assert (caught.value.verdict, caught.value.fault) == ("unsupported", "kernelwright")
    assert "more stack" in caught.value.message


def test_memory_that_a_device_might_have_is_our_limit() -> None:
    allocate = Allocate(address=SCRATCH_BASE + (1 << 16), bytes=50 << 30)
    [(result, _)] = replay(
        lower([COUNT], Cancellation()),
        [Replay(LaunchPlan(operations=[allocate]), [], count=False)],
        seconds=5,
        threads=1,
        cancel=Cancellation(),
    )
    assert result.status == "unsupported"
    assert "53,687,091,200 bytes" in result.message
    big = HEADER + ".global .align 4 .b8 big[5000000000];\n.visible .entry k() { ret; }\n"
    [(result, _)] = replay(
        lower([big], Cancellation()), [_plan("k")], seconds=5, threads=1, cancel=Cancellation()
    )
    assert result.status == "unsupported"
    assert "big" in result.message


def test_cancelling_ends_a_replay() -> None:
    lowered = lower([FOREVER], Cancellation())
    cancel = Cancellation()
    threading.Timer(0.3, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        replay(lowered, [_plan("forever")], seconds=30, threads=1, cancel=cancel)
    assert time.monotonic() - began < 5


def test_plans_that_do_not_fit_the_module() -> None:
    lowered = lower([COUNT], Cancellation())

    def one(plan: Replay) -> str:
        [(result, _)] = replay(lowered, [plan], seconds=5, threads=1, cancel=Cancellation())
        assert result.status == "unsupported"
        return result.message

    assert "not in the lowered module" in one(_plan("nothing"))
    assert "too few parameter bytes" in one(_plan("count", "00"))


def test_a_plans_names_cannot_smuggle_lines() -> None:
    lowered = lower([COUNT], Cancellation())
    with pytest.raises(ValueError, match="should match pattern"):
        replay(lowered, [_plan("count\nlibrary /x")], seconds=5, threads=1, cancel=Cancellation())


def test_a_broken_library_is_our_fault_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "module.so").write_bytes(b"no library")
    with pytest.raises(Judged) as caught:
        replay(Lowered(tmp_path / "module.so"), [_plan("count")], seconds=5, threads=1, cancel=Cancellation())
    assert (caught.value.verdict, caught.value.fault) == ("internal_error", "kernelwright")


def test_addresses_of_the_plan_are_hostile() -> None:
    """A pointer into the emulator's own memory is out of bounds like any other."""
    machine = Machine(COUNT)
    for address in (0x400000, 0x7FFF_0000_0000, DEVICE_BASE + (1 << 40), 0x1000_0000_0000):
        run = machine.run("count", 1, 1, np.uint64(address))
        assert run.fault.kind == "out of bounds"

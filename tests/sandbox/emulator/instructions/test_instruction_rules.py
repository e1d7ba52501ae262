"""Rules about all instructions: every one is in a table, none is half understood, wide values move whole."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import Machine, Out
from instruction_modules import header
from test_instruction_forms import TABLES

from sandbox.emulator.client import Mode
from sandbox.emulator.lowering import function
from sandbox.emulator.lowering.arithmetic import HANDLERS
from sandbox.emulator.lowering.module import lower_modules
from sandbox.ptx.model import PtxError

# Their handlers' instructions are all in the tables; those of the others have tests of their own.
TABLED = (
    "atomics",
    "bits",
    "choices",
    "conversions",
    "floats",
    "hints",
    "integers",
    "memory",
    "access",
    "video",
    "video_scalars",
)
ELSEWHERE = {"discard"}  # leaves any value: nothing to compare


def named(text: str) -> set[str]:
    return {statement.split()[0].split(".")[0] for statement in text.split(";")}


def test_every_instruction_is_in_a_table() -> None:
    assert function.HANDLERS is HANDLERS
    found = {name for table in TABLES.values() for form in table.forms for name in named(form.text)}
    own = {name for name, handler in HANDLERS.items() if handler.__module__.rsplit(".", 1)[1] in TABLED}
    print(*(f"{table.name}: {len(table.forms)} forms" for table in TABLES.values()), sep="\n")
    assert own - found - ELSEWHERE == set()


def kernel(*statements: str) -> str:
    registers = ".reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b16 %h<8>; .reg .pred %p<4>; .reg .b128 %q<4>;"
    return (
        header("sm_90") + f".visible .entry k(.param .u64 out) {{ {registers} {' '.join(statements)} ret; }}"
    )


@pytest.mark.parametrize(
    "statement",
    [
        "add.strange.f32 %r1, %r2, %r3",
        "add.rn.f32.f32x2 %r1, %r2, %r3",
        "fma.rn.oob.f16 %h1, %h2, %h3, %h4",
        "mul.wide.cold.u32 %d1, %r1, %r2",
        "min.strange.s32 %r1, %r2, %r3",
        "shl.wrap.b32 %r1, %r2, %r3",
        "setp.lt.strange.u32 %p1, %r1, %r2",
        "selp.sat.b32 %r1, %r2, %r3, %p1",
        "cvt.rs.f16x2.f32 %r1, %r2, %r3, %r4",
        "cvt.rn.satfinite.e2m1x2.f32 %h1, %r2, %r3",
        "prmt.b32.f5e %r1, %r2, %r3, %r4",
        "ld.global.strange.b32 %r1, [%d1]",
        "st.global.L3::evict_last.b32 [%d1], %r1",
        "atom.global.add.strange.u32 %r1, [%d1], %r2",
        "atom.global.mul.u32 %r1, [%d1], %r2",
        "red.async.relaxed.cluster.global.add.u32 [%d1], %r2",
        "redux.sync.min.f32 %r1, %r2, %r3",
        "vote.sync.most.pred %p1, %p2, -1",
        "vadd.s32.s32.s32.max %r1, %r2, %r3",
        "vadd.s32.s32.s32.sat.add.min %r1, %r2, %r3, %r4",
        "vadd.s32.s32.s32.add %r1.b0, %r2, %r3, %r4",
        "vsub.s32.s32.s32 %r1.h0, %r2, %r3",
        "vmin.s32.s32 %r1, %r2, %r3",
        "vshl.u32.u32.u32 %r1, %r2, %r3",
        "vshr.u32.u32.s32.wrap %r1, %r2, %r3",
        "vset.u32.u32.lt.gt %r1, %r2, %r3",
        "vmad.u32.u32.u32 %r1, %r2, %r3",
        "vadd4.u32.u32 %r1, %r2, %r3, %r4",
        "vadd4.u32.u32.u32.sat.add %r1, %r2, %r3, %r4",
        "vsub2.s32.s32.s32.max %r1, %r2, %r3, %r4",
        "vset4.u32.u32 %r1, %r2, %r3, %r4",
        "vset4.u32.u32.lt.gt %r1, %r2, %r3, %r4",
        "vadd4.u32.sat.u32.add.u32 %r1, %r2, %r3, %r4",
        "vadd4.u32.u32.u32 %r1.b10, %r2, %r3, %r4",
        "vavrg4.u32.u32.u32 %r1, %r2.b7610, %r3, %r4",
        "vmax2.s32.s32.s32 %r1, %r2, %r3.h10, %r4",
        "vmin2.s32.s32.s32 %r1, %r2, 5, %r4",
        "frobnicate.b32 %r1, %r2",
    ],
)
def test_what_is_not_understood_is_refused_by_name(statement: str) -> None:
    with pytest.raises(PtxError, match="unsupported") as refused:
        lower_modules([kernel(statement + ";")])
    assert statement.split()[0] in refused.value.message


def test_wide_values_move_and_swap_whole(jail: None) -> None:
    """128 bits: put together, exchanged in memory, compared and swapped, taken apart."""
    machine = Machine(
        kernel(
            "ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 48, %d1;",
            "cvt.u64.u32 %d3, %r1; mov.b128 %q0, {%d3, 7}; mov.b128 %q1, {%d3, 8}; mov.b128 %q2, {9, %d3};",
            "st.global.v2.b64 [%d2], {%d3, 7};",
            "atom.global.exch.b128 %q3, [%d2], %q1; mov.b128 {%d4, %d5}, %q3;",
            "st.global.v2.b64 [%d2+16], {%d4, %d5};",
            "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 mov.b128 %q1, {1, 1};",
            "atom.global.cas.b128 %q3, [%d2], %q1, %q2; mov.b128 {%d4, %d5}, %q3;",
            "st.global.v2.b64 [%d2+32], {%d4, %d5};",
        )
    )
    run = machine.run("k", 1, 64, Out(64 * 6, "uint64"))
    assert run.result.status == "ok", run.result
    for thread, row in enumerate(run.arrays["a0"].reshape(64, 6).tolist()):
        last = [9, thread] if thread & 1 else [thread, 8]
        assert row == [*last, thread, 7, thread, 8]


@pytest.mark.parametrize("mode", ["checked", "plain"])
def test_wide_values_are_loaded_and_stored(jail: None, mode: Mode) -> None:
    """One of 128 bits; 32 bytes as sm_100 moves them, in two halves; by some lanes, at an offset."""
    machine = Machine(
        kernel(
            "ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 128, %d1;",
            "cvt.u64.u32 %d3, %r1; not.b64 %d4, %d3; mov.b128 %q0, {%d3, %d4}; st.global.b128 [%d2], %q0;",
            "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; mov.b128 %q1, {5, 6};",
            "@%p1 ld.relaxed.gpu.global.b128 %q1, [%d2]; st.b128 [%d2+16], %q1;",
            "st.global.v4.b64 [%d2+32], {%d3, %d4, 7, %d3}; ld.global.v4.u64 {%d4, _, %d5, %d6}, [%d2+32];",
            "st.global.v2.b64 [%d2+64], {%d4, %d5};",
            "ld.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%d2+32];",
            "st.global.v8.b32 [%d2+96], {%r7, %r6, %r5, %r4, %r3, %r2, %r1, %r0};",
        ),
        mode=mode,
    )
    run = machine.run("k", 1, 64, Out(64 * 16, "uint64"))
    assert run.result.status == "ok", run.result
    for thread, row in enumerate(run.arrays["a0"].reshape(64, 16).tolist()):
        inverse = (1 << 64) - 1 - thread
        loaded = [5, 6] if thread & 1 else [thread, inverse]
        swapped = [value << 32 & (1 << 64) - 1 | value >> 32 for value in (thread, 7, inverse, thread)]
        expected = [thread, inverse, *loaded, thread, inverse, 7, thread, thread, 7]
        assert row[:10] == expected
        assert row[12:] == swapped


@pytest.mark.parametrize("mode", ["checked", "plain"])
def test_the_carry_goes_from_block_to_block(jail: None, mode: Mode) -> None:
    """A sum of 128 bits in a loop, as long as the number of the lane says, whose carries all differ."""
    machine = Machine(
        kernel(
            "ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 16, %d1;",
            "and.b32 %r2, %r1, 3; mov.u32 %r3, 0; add.cc.u32 %r4, 0, 0;",
            "LOOP: mad.wide.u32 %d3, %r3, 4, %d2; ld.global.u32 %r5, [%d3];",
            "addc.cc.u32 %r5, %r5, 0xfffffffe; st.global.u32 [%d3], %r5;",
            "add.u32 %r3, %r3, 1; setp.le.u32 %p1, %r3, %r2; @%p1 bra LOOP;",
            "setp.gt.u32 %p2, %r3, 3; @%p2 bra DONE; mad.wide.u32 %d3, %r3, 4, %d2; addc.u32 %r6, 0, 0;",
            "st.global.u32 [%d3], %r6; DONE:",
        ),
        mode=mode,
    )
    given = np.arange(256, dtype="uint32") % 5 * np.uint32(0x7FFFFFFF)
    run = machine.run("k", 1, 64, given.copy())
    assert run.result.status == "ok", run.result
    for thread, (row, first) in enumerate(
        zip(run.arrays["a0"].reshape(64, 4).tolist(), given.reshape(64, 4).tolist(), strict=True)
    ):
        expected, carry, words = list(first), 0, (thread & 3) + 1
        for place in range(words):
            carry, expected[place] = divmod(first[place] + 0xFFFFFFFE + carry, 1 << 32)
        if words < 4:
            expected[words] = carry
        assert row == expected


def test_the_lowest_member_is_elected(jail: None) -> None:
    machine = Machine(
        kernel(
            "ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 8, %d1;",
            "mov.u32 %r5, %laneid;",
            "mov.u32 %r3, 99; mov.u32 %r4, 99; setp.lt.u32 %p1, %r5, 5; @%p1 bra DONE;",
            "elect.sync %r3|%p2, 0xffffffe0; selp.u32 %r4, 1, 0, %p2;",
            "DONE: st.global.v2.b32 [%d2], {%r3, %r4};",
        )
    )
    run = machine.run("k", 1, 64, Out(128, "uint32"))
    lanes = np.arange(64) % 32
    want = np.stack([np.where(lanes < 5, 99, 5), np.where(lanes < 5, 99, lanes == 5)], 1)
    assert (run.arrays["a0"].reshape(64, 2) == want).all()

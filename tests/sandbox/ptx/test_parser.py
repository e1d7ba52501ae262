"""The PTX parser on pieces of what nvcc emits, and on hand-written assembly."""

from __future__ import annotations

import pytest

from sandbox.ptx import PtxError, parameter_layout, parse
from sandbox.ptx.model import (
    LINE_BITS,
    Address,
    Files,
    Immediate,
    Instruction,
    Label,
    Negated,
    Pair,
    Prototype,
    Register,
    Symbol,
    Vector,
)
from sandbox.ptx.words import number

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"


def body(text: str, head: str = ".visible .entry k(.param .u64 p)") -> list[Instruction | Label]:
    module = parse(f"{HEADER}{head} {{\n{text}\n}}")
    return list(next(iter(module.functions.values())).body)


def instructions(text: str) -> list[Instruction]:
    return [item for item in body(text) if isinstance(item, Instruction)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", Immediate(12)),
        ("-12", Immediate(-12)),
        ("0x1F", Immediate(31)),
        ("0b101", Immediate(5)),
        ("017", Immediate(15)),
        ("0", Immediate(0)),
        ("7U", Immediate(7)),
        ("0f3F800000", Immediate(0x3F800000, 32)),
        ("0d3FF0000000000000", Immediate(0x3FF0000000000000, 64)),
        ("-0f3F800000", Immediate(0xBF800000, 32)),
        ("1.5", Immediate(0x3FF8000000000000, 64)),
        ("%r1", None),
        ("label", None),
    ],
)
def test_literals(text: str, expected: Immediate | None) -> None:
    assert number(text) == expected


def test_parameter_layout_follows_alignment() -> None:
    text = (
        HEADER
        + """
.visible .entry first(
	.param .u32 first_param_0,
	.param .u64 .ptr .global .align 4 first_param_1,
	.param .align 8 .b8 first_param_2[40],
	.param .u8 first_param_3,
	.param .f64 first_param_4
)
.maxntid 256, 1, 1
{ ret; }
.visible .entry none() { ret; }
.func (.param .b32 r) helper(.param .b32 a) { ret; }
"""
    )
    assert parameter_layout(text) == {
        "first": [(0, 4), (8, 8), (16, 40), (56, 1), (64, 8)],
        "none": [],
    }
    assert parse(text).functions["first"].max_threads == 256
    assert parse(text).functions["first"].parameter_bytes == 72


def test_operands() -> None:
    [load, store, compare, shuffle, pack] = instructions("""
	.reg .pred %p<4>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;
	ld.global.v2.f32 {%f1, _}, [%rd1+-16];
	@!%p1 st.shared.u32 [table+8], 5;
	setp.lt.and.s32 %p1|%p2, %r1, -3, !%p3;
	shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;
	mov.b64 %rd1, {%r1, %r2};
    """)
    assert load.parts == ("ld", "global", "v2", "f32")
    assert load.operands == (Vector((Register("%f1"), None)), Address(Register("%rd1"), -16))
    assert store.guard == Register("%p1")
    assert store.guard_negated
    assert store.operands == (Address(Symbol("table"), 8), Immediate(5))
    assert compare.operands[0] == Pair(Register("%p1"), Register("%p2"))
    assert compare.operands[3] == Negated(Register("%p3"))
    assert shuffle.operands[0] == Pair(Register("%r1"), Register("%p1"))
    assert pack.operands[1] == Vector((Register("%r1"), Register("%r2")))


def test_one_name_in_nested_scopes_is_two_registers() -> None:
    [outer, inner, again] = instructions("""
	.reg .b32 %t;
	mov.u32 %t, 1;
	{ .reg .b32 %t; mov.u32 %t, 2; }
	mov.u32 %t, 3;
    """)
    assert outer.operands[0] == again.operands[0] != inner.operands[0]


def test_declarations_need_no_blanks_between_directives() -> None:
    text = "{.reg.b32 f;.shared.align 8.b8 s[16]; .param.b32 p; mov.b32 f, 1; st.shared.b32 [s], f;}"
    [move, store] = instructions(text)
    assert (move.opcode, store.opcode) == ("mov.b32", "st.shared.b32")


def test_several_statements_on_a_line_and_comments() -> None:
    items = body(
        ".reg .b32 %r<3>; mov.u32 %r1, 1; add.s32 %r2, %r1, /* two */ 2; // three\n$L__a: bra $L__a;"
    )
    assert [type(item).__name__ for item in items] == ["Instruction", "Instruction", "Label", "Instruction"]


def test_calls() -> None:
    [_, call, _] = instructions("""
	.reg .f32 %f<3>;
	{ // callseq 0, 0
	.param .b32 param0;
	st.param.f32 	[param0+0], %f1;
	.param .b32 retval0;
	call.uni (retval0),
	_Z1gf,
	(
	param0
	);
	ld.param.f32 	%f2, [retval0+0];
	}
    """)
    assert call.call is not None
    assert call.call.callee == "_Z1gf"
    assert len(call.call.returns) == len(call.call.arguments) == 1


def test_variables() -> None:
    module = parse(
        HEADER
        + """
.const .align 4 .b8 coefficients[8] = {0, 0, 128, 63};
.global .align 4 .u32 counter;
.visible .global .align 8 .u64 pointer = generic(counter)+4;
.global .align 8 .f64 half = 0d3FE0000000000000;
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k() { .shared .align 4 .b8 tile[4096]; .local .align 8 .b8 depot[40]; ret; }
"""
    )
    variables = {variable.name: variable for variable in module.variables}
    assert variables["coefficients"].data == bytes([0, 0, 128, 63, 0, 0, 0, 0])
    assert variables["counter"].data is None
    assert variables["counter"].size == 4
    assert variables["pointer"].addresses == ((0, Symbol("counter", 4)),)
    assert variables["half"].data == b"\0\0\0\0\0\0\xe0\x3f"
    assert variables["dynamic"].external
    tile, depot = module.functions["k"].variables
    assert (tile.space, tile.size, depot.space, depot.size) == ("shared", 4096, "local", 40)


def test_lines_are_the_innermost_of_the_candidates_own_file() -> None:
    text = (
        HEADER
        + """
.visible .entry k() {
	.reg .b32 %r<9>;
	.loc	1 5 3
	mov.u32 %r1, 1;
	.loc	2 99 9, function_name $L__info_string0, inlined_at 1 7 3
	mov.u32 %r2, 1;
	.loc	2 77 1, function_name $L__info_string1, inlined_at 2 99 9
	mov.u32 %r3, 1;
	.loc	1 20 1, function_name $L__info_string2, inlined_at 1 8 5
	mov.u32 %r4, 1;
	.loc	1 0 5
	mov.u32 %r5, 1;
}
	.file	1 "/scratch/candidate.cu"
	.file	2 "/usr/local/cuda/targets/x86_64-linux/include/sm_30_intrinsics.hpp"
	.section	.debug_str
	{
$L__info_string0:
.b8 95,90
	}
"""
    )
    lines = [item.line for item in parse(text).functions["k"].body if isinstance(item, Instruction)]
    assert lines == [5, 7, 7, 20, 20]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("call (r), %rd1, (p), prototype;", "without its prototype"),
        ("brx.idx %r1, targets;", "without its list of targets"),
        ("mov.u32 %r1, (;", "not understood"),
        ("mov.u32 %r1, 1", "without an end"),
        (".reg .v2 .f32 %v;", "vector register"),
    ],
)
def test_what_is_not_understood_says_so(text: str, words: str) -> None:
    with pytest.raises(PtxError) as caught:
        body(f".reg .b32 %r<3>; .reg .b64 %rd<3>;\n{text}")
    assert words in caught.value.message


def test_indirect_calls_and_branches() -> None:
    text = """
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    {
    .param .b64 p0; .param .b32 r0;
    proto : .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 4 .b8 _[12]) .noreturn;
    call (r0), %rd1, (p0), proto;
    }
    some: .calltargets f, g;
    call %rd2, some;
    ts: .branchtargets A, B;
    brx.idx %r1, ts;
    A:
    B:
    """
    first, second, branch = instructions(text)
    assert first.call is not None
    assert second.call is not None
    assert first.call.callee == Register("%rd1")
    assert first.call.prototype == Prototype((4,), (8, 12))
    assert second.call.targets == ("f", "g")
    assert branch.operands == (Register("%r1"),)
    assert branch.targets == ("A", "B")


def test_a_label_in_a_scope_is_its_own() -> None:
    text = ".reg .pred p; { L: bra L; } { bra M; L: bra L; M: } L: bra L; { @p bra L; }"
    items = body(text)
    labels = [item.name for item in items if isinstance(item, Label)]
    assert len(set(labels)) == len(labels) == 4
    targets = [item.operands[0] for item in items if isinstance(item, Instruction)]
    first, second, jump, last = labels
    assert targets == [Symbol(name) for name in (first, jump, second, last, last)]


def test_a_function_nobody_asks_for_need_not_be_understood() -> None:
    module = parse(HEADER + ".entry good() { ret; }\n.func bad() { @@; }\n.extern .func far;\n")
    assert list(module.functions) == ["good", "bad"]
    assert module.entries == {"good"}
    assert module.order == {"good": 0, "bad": 1, "far": 2}
    assert len(module.functions["good"].body) == 1
    with pytest.raises(PtxError):
        module.functions["bad"]


def test_parameters_of_calls_side_by_side_share_their_room() -> None:
    text = ".param .b64 a; { .param .b32 p; .param .b64 q; } { .param .align 16 .b8 p[32]; }"
    function = parse(f"{HEADER}.entry k() {{ {text} }}").functions["k"]
    assert [(p.offset, p.size) for p in function.locals.values()] == [(0, 8), (8, 4), (16, 8), (16, 32)]


def test_places_name_the_users_files_and_no_others() -> None:
    names = [
        "/home/me/cuda-samples/include/helper.h",
        "/opt/cuda-13.0/include/cub/cub.cuh",
        "/venv/lib/python3.11/site-packages/nvidia/cu13/include/cuda_fp16.hpp",
        "/home/me/main.cu",
    ]
    locations = "".join(f".loc {n} {10 + n} 1\nmov.u32 %r1, 1;\n" for n in (1, 2, 3, 4, 1))
    table = "".join(f'.file {n} "{name}"\n' for n, name in enumerate(names, 1))
    files = Files()
    function = parse(f"{HEADER}.entry k() {{ .reg .b32 %r<2>;\n{locations}}}\n{table}", files).functions["k"]
    places = [item.line for item in function.body if isinstance(item, Instruction)]
    found = [(files.names[place >> LINE_BITS], place % (1 << LINE_BITS)) for place in places]
    assert found == [(names[0], 11)] * 3 + [(names[3], 14), (names[0], 11)]

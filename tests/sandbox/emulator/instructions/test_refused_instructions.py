"""What of the PTX ISA is refused: docs/instructions.md lists it; name, function and line are said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox.emulator.lowering.analysis import TERMINATORS
from sandbox.emulator.lowering.arithmetic import HANDLERS
from sandbox.emulator.lowering.module import lower_modules
from sandbox.ptx.model import LINE_BITS, PtxError

PAGE = Path(__file__).parents[4] / "docs" / "instructions.md"
# Every instruction of PTX ISA 9.0, by the first word of its name.
ISA = """
    abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev
    brkpt brx call clusterlaunchcontrol clz cnot copysign cos cp createpolicy cvt cvta discard div
    dp2a dp4a elect ex2 exit fence fma fns getctarank griddepcontrol isspacep istypep ld ldmatrix
    ldu lg2 lop3 mad mad24 madc mapa match max mbarrier membar min mma mov movmatrix mul mul24
    multimem nanosleep neg not or pmevent popc prefetch prefetchu prmt rcp red redux rem ret rsqrt
    sad selp set setmaxnreg setp shf shfl shl shr sin slct sqrt st stackrestore stacksave stmatrix
    sub subc suld suq sured sust szext tanh tcgen05 tensormap testp tex tld4 trap txq vabsdiff
    vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote
    vset vset2 vset4 vshl vshr vsub vsub2 vsub4 wgmma wmma xor
"""
# For each name on the page, a statement that has it; F4 and R4 are vectors of four registers.
_REFUSED = """
wgmma: wgmma.fence.sync.aligned
cp.async.bulk.tensor: cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
  [sh], [%d1, {%r1}], [sh]
cp.async.bulk.prefetch.tensor: cp.async.bulk.prefetch.tensor.1d.L2.global [%d1, {%r1}]
cp.reduce.async.bulk.tensor: cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%d1,
  {%r1}], [sh]
tensormap.replace: tensormap.replace.tile.rank.global.b1024.b32 [%d1], %r1
tensormap.cp_fenceproxy:
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [sh], 128
fence.proxy.tensormap: fence.proxy.tensormap::generic.release.gpu
prefetch.tensormap: prefetch.tensormap [%d1]
mapa: mapa.shared::cluster.u32 %r1, %r2, 1
st.async: st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3]
red.async: red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2,
  [%r3]
.multicast::cluster: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
  [sh], [%d1], 16, [sh], %h1
clusterlaunchcontrol: clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1
multimem: multimem.ld_reduce.relaxed.gpu.global.add.f32 %r1, [%d1]
tcgen05: tcgen05.wait::ld.sync.aligned
mma.sp: mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 F4, {%r0, %r1}, {%r2, %r3}, F4, %r4, 0
mma.block_scale:
  mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 F4, R4,
  {%r4, %r5}, F4, %r6, {%h1, %h2}, %r7, {%h1, %h2}
mma.kind::f8f6f4: mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32 F4, R4, {%r4, %r5}, F4
ldmatrix.b8: ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [sh]
stmatrix.b8: stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [sh], {%r1}
cvt.e2m1x2: cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2
cvt.e2m3x2: cvt.rn.satfinite.e2m3x2.f32 %h1, %f1, %f2
cvt.e3m2x2: cvt.rn.f16x2.e3m2x2 %r1, %h1
cvt.ue8m0x2: cvt.rp.satfinite.ue8m0x2.bf16x2 %h1, %r1
cvt.rs: cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2
fma.oob: fma.rn.oob.f16 %h1, %h2, %h3, %h4
redux.f32: redux.sync.min.f32 %f1, %f2, -1
st.bulk: st.bulk.weak.shared::cta [sh], 64, 0
cp.reduce.async.bulk.inc:
  cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.inc.u32 [sh], [sh], 64,
  [sh]
cp.reduce.async.bulk.bf16: cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%d1], [sh],
  64
cp.async.bulk.cp_mask: cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d1], [sh], 32, %h1
tex.cube: tex.cube.v4.f32.f32 F4, [%d1, F4]
tex.acube: tex.acube.v4.f32.f32 F4, [%d1, {%r0, %f1, %f2, %f3}]
tex.2dms: tex.2dms.v4.f32.s32 F4, [%d1, R4]
tex.f16x2: tex.2d.v2.f16x2.f32 {%r0, %r1}, [%d1, {%f0, %f1}]
tld4.a2d: tld4.r.a2d.v4.f32.f32 F4, [%d1, {%r0, %f1, %f2, %f3}]
txq.num_mipmap_levels: txq.num_mipmap_levels.b32 %r1, [%d1]
suq.channel_order: suq.channel_order.b32 %r1, [%d1]
istypep: istypep.texref %p1, %d1
sust.p: sust.p.2d.v2.b32.trap [%d1, {%r1, %r2}], {%r3, %r4}
sured: sured.b.add.2d.u32.trap [%d1, {%r1, %r2}], %r3
vadd2.mask: vadd2.u32.u32.u32 %r1.h1, %r2, %r3, %r4
isspacep.const: isspacep.const %p1, %d1
brkpt: brkpt
%pm0: mov.u32 %r1, %pm0
%envreg3: mov.b32 %r1, %envreg3
%current_graph_exec: mov.u64 %d1, %current_graph_exec
call.extern: call.uni cudaCDP2GetLastError
"""
REFUSED = {
    name: statement.replace("F4", "{%f0, %f1, %f2, %f3}").replace("R4", "{%r0, %r1, %r2, %r3}")
    for name, _, statement in (
        row.partition(": ") for row in _REFUSED.replace("\n  ", " ").split("\n") if row
    )
}
ELSEWHERE = {".reqnctapercluster"}  # no statement: test_asynchronous.py


def kernel(statement: str) -> str:
    registers = ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .b16 %h<9>; .reg .pred %p<4>; .reg .b128 %q<4>;"
    return (
        '.version 9.0\n.target sm_100a\n.address_size 64\n.file 1 "/home/somebody/kernels.cu"\n'
        f".visible .entry named() {{ {registers} .reg .f32 %f<9>; .shared .align 128 .b8 sh[1024];\n"
        f".loc 1 17 3\n{statement};\nret; }}"
    )


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_name_function_and_line(name: str) -> None:
    statement = REFUSED[name]
    with pytest.raises(PtxError, match=r"^unsupported") as refused:
        lower_modules([kernel(statement)])
    assert statement.split()[0] in refused.value.message
    assert refused.value.message.endswith("in named")
    assert refused.value.line is not None
    assert refused.value.line & (1 << LINE_BITS) - 1 == 17


def test_the_page_lists_them_all() -> None:
    rows = [line for line in PAGE.read_text().split("\n") if line.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert sorted(listed) == sorted([*REFUSED, *ELSEWHERE])


def test_every_instruction_of_the_isa_runs_or_is_listed() -> None:
    known = {*HANDLERS, *TERMINATORS, "call"}
    listed = {name.split(".")[0] for name in REFUSED}
    assert set(ISA.split()) - known - listed == set()
    assert known - set(ISA.split()) == set()

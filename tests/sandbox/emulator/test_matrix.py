"""Matrix instructions against NumPy: wmma through mma.h, mma through inline PTX, compiled by nvcc."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import fragment_tables as layouts
import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of
from fragment_tables import Numbers

from sandbox.emulator.lowering.module import lower_modules
from sandbox.ptx import PtxError

# wmma ---------------------------------------------------------------------------------------------------

# Doubles A * B + C, one tile through memory: what a fragment holds where is of no account.
WMMA = r"""
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda::wmma;
template <class L> __device__ constexpr bool by_row() { return false; }
template <> __device__ constexpr bool by_row<row_major>() { return true; }
template <class T> struct stored { using type = T; };
template <> struct stored<precision::tf32> { using type = float; };
template <class T> __device__ T twice(T x) { return x + x; }
template <int M, int N, int K, class T, class Sum, class LA, class LB, layout_t LC>
__device__ void tile(const void *a_given, const void *b_given, const Sum *c, Sum *d) {
  using Memory = typename stored<T>::type;
  auto a = static_cast<const Memory *>(a_given), b = static_cast<const Memory *>(b_given);
  __shared__ __align__(32) Memory sa[M * K];
  for (int i = threadIdx.x; i < M * K; i += 32) sa[i] = a[i];
  __syncwarp();
  fragment<matrix_a, M, N, K, T, LA> fa;
  fragment<matrix_b, M, N, K, T, LB> fb;
  fragment<accumulator, M, N, K, Sum> fc;
  load_matrix_sync(fa, sa, by_row<LA>() ? K : M);
  load_matrix_sync(fb, b, by_row<LB>() ? N : K);
  load_matrix_sync(fc, c, LC == mem_row_major ? N : M, LC);
  mma_sync(fc, fa, fb, fc);
  for (int i = 0; i < fc.num_elements; i++) fc.x[i] = twice(fc.x[i]);
  store_matrix_sync(d, fc, LC == mem_row_major ? N : M, LC);
}
#define TILE(NAME, M, N, K, T, SUM, LA, LB, LC)                                           \
  extern "C" __global__ void NAME(const void *a, const void *b, const SUM *c, SUM *d) {   \
    tile<M, N, K, T, SUM, LA##_major, LB##_major, mem_##LC##_major>(a, b, c, d);          \
  }
extern "C" __global__ void bits(const unsigned *a, const unsigned *b, int *xored, int *anded) {
  fragment<matrix_a, 8, 8, 128, experimental::precision::b1, row_major> fa;
  fragment<matrix_b, 8, 8, 128, experimental::precision::b1, col_major> fb;
  fragment<accumulator, 8, 8, 128, int> fc, fd;
  load_matrix_sync(fa, a, 128);
  load_matrix_sync(fb, b, 128);
  fill_fragment(fc, 1);
  bmma_sync(fd, fa, fb, fc, experimental::bmmaBitOpXOR);
  store_matrix_sync(xored, fd, 8, mem_row_major);
  bmma_sync(fd, fa, fb, fc, experimental::bmmaBitOpAND);
  store_matrix_sync(anded, fd, 8, mem_row_major);
}
extern "C" __global__ void nibbles(const int *a, const int *b, int *d) {
  fragment<matrix_a, 8, 8, 32, experimental::precision::s4, row_major> fa;
  fragment<matrix_b, 8, 8, 32, experimental::precision::s4, col_major> fb;
  fragment<accumulator, 8, 8, 32, int> fc;
  load_matrix_sync(fa, a, 32);
  load_matrix_sync(fb, b, 32);
  fill_fragment(fc, 0);
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(d, fc, 8, mem_row_major);
}
extern "C" __global__ void counted(const half *a, const half *b, float *d) {
  fragment<matrix_a, 16, 16, 16, half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, half, row_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.0f);
  load_matrix_sync(fa, a, 16);
  load_matrix_sync(fb, b, 64);   // far apart
  mma_sync(fc, fa, fb, fc);   // multiplies
  store_matrix_sync(d, fc, 16, mem_row_major);
}
extern "C" __global__ void half_a_warp(const half *a, float *d) {
  fragment<matrix_a, 16, 16, 16, half, row_major> fa;
  fragment<accumulator, 16, 16, 16, float> fc;
  if (threadIdx.x < 16) load_matrix_sync(fa, a, 16);   // half of it
  else fill_fragment(fa, (half)0);
  fill_fragment(fc, (float)fa.x[0]);
  d[threadIdx.x] = fc.x[0];
}
extern "C" __global__ void too_far(const half *a, float *d) {
  fragment<matrix_a, 16, 16, 16, half, row_major> fa;
  load_matrix_sync(fa, a + 16, 16);   // past the end
  d[threadIdx.x] = (float)fa.x[0];
}
"""
SHAPES = {"f16": [(16, 16, 16), (32, 8, 16), (8, 32, 16)], "tf32": [(16, 16, 8)], "f64": [(8, 8, 4)]}
SHAPES |= {"bf16": SHAPES["f16"], "s8": SHAPES["f16"], "u8": SHAPES["f16"]}
CUDA_TYPES = {
    "f16": "half",
    "bf16": "__nv_bfloat16",
    "tf32": "precision::tf32",
    "f64": "double",
    "s8": "signed char",
    "u8": "unsigned char",
    "f32": "float",
    "s32": "int",
}
SUMS = {"f16": ["f16", "f32"], "bf16": ["f32"], "tf32": ["f32"], "f64": ["f64"], "s8": ["s32"], "u8": ["s32"]}
TILES = [
    (kind, total, shape, *order)
    for kind, shapes in SHAPES.items()
    for total, shape in itertools.product(SUMS[kind], shapes)
    for order in (("row", "col", "row"), ("col", "row", "col"), ("row", "row", "col"), ("col", "col", "row"))
]


def tile_name(kind: str, total: str, shape: tuple[int, ...], *order: str) -> str:
    return "_".join(["tile", kind, total, *map(str, shape), *order])


@pytest.fixture(scope="module")
def wmma(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    lines = [
        f"TILE({tile_name(kind, total, shape, *order)}, {', '.join(map(str, shape))}, {CUDA_TYPES[kind]}, "
        f"{CUDA_TYPES[total]}, {', '.join(order)})"
        for kind, total, shape, *order in TILES
    ]
    return Machine(compile_cuda(WMMA + "\n".join(lines), tmp_path_factory.mktemp("wmma")))


def test_every_wmma_tile(wmma: Machine) -> None:
    random = np.random.default_rng(3)
    prepared, expected = [], []
    for kind, total, (m, n, k), row_a, row_b, row_c in TILES:
        low = 0 if kind == "u8" else -8
        a, b = random.integers(low, 9, (m, k)), random.integers(low, 9, (k, n))
        c = random.integers(-50, 50, (m, n))
        given = [
            layouts.packed(kind, matrix if order == "row" else matrix.T)
            for matrix, order in ((a, row_a), (b, row_b))
        ]
        start = layouts.packed(total, c if row_c == "row" else c.T)
        name = tile_name(kind, total, (m, n, k), row_a, row_b, row_c)
        prepared.append(
            wmma.prepare(name, 1, 32, *given, start, Out(m * n * layouts.BITS[total] // 8, "uint8"))
        )
        want = 2 * (a @ b + c)
        expected.append((name, total, want if row_c == "row" else want.T))
    runs = wmma.run_all(prepared)
    assert len(runs) == len(TILES)
    for run, (name, total, want) in zip(runs, expected, strict=True):
        assert run.result.status == "ok", (name, run.result)
        got = layouts.unpacked(total, run.arrays["a3"]).reshape(want.shape)
        assert np.array_equal(got, want), name


def test_wmma_of_bits_and_of_four_bits(wmma: Machine) -> None:
    random = np.random.default_rng(4)
    a, b = random.integers(0, 2, (8, 128)), random.integers(0, 2, (128, 8))
    run = wmma.run(
        "bits", 1, 32, layouts.packed("b1", a), layouts.packed("b1", b.T), Out(64, "int32"), Out(64, "int32")
    )
    assert np.array_equal(run.arrays["a2"].reshape(8, 8), 1 + (a[:, :, None] != b[None]).sum(axis=1))
    assert np.array_equal(run.arrays["a3"].reshape(8, 8), 1 + a @ b)
    a, b = random.integers(-8, 8, (8, 32)), random.integers(-8, 8, (32, 8))
    run = wmma.run("nibbles", 1, 32, layouts.packed("s4", a), layouts.packed("s4", b.T), Out(64, "int32"))
    assert np.array_equal(run.arrays["a2"].reshape(8, 8), a @ b)


def test_the_same_without_checks(jail: None, tmp_path: Path) -> None:
    machine = Machine(compile_cuda(WMMA, tmp_path), mode="plain")
    a, b = np.ones(256, "float16"), np.ones(16 * 64, "float16")
    assert (machine.run("counted", 1, 32, a, b, Out(256), count=False).arrays["a2"] == 16).all()


def test_what_a_matrix_product_counts(wmma: Machine) -> None:
    a, b = np.ones(256, "float16"), np.ones(16 * 64, "float16")
    run = wmma.run("counted", 1, 32, a, b, Out(256))
    assert (run.arrays["a2"] == 16).all()
    source = line_of(WMMA, "far apart")
    assert run.line(source).global_load_sectors == 16  # 16 rows of 32 bytes
    assert run.line(source).global_load_bytes == 512
    assert run.total("flop_fp16") == 2 * 16 * 16 * 16
    assert run.total("flop_fp32") == 0
    assert run.total("global_store_bytes") == 1024


def test_a_matrix_instruction_needs_the_whole_warp(wmma: Machine) -> None:
    fault = wmma.run("half_a_warp", 1, 32, np.ones(256, "float16"), Out(32)).fault
    assert fault.kind == "barrier"
    assert fault.line == line_of(WMMA, "half of it")
    assert "all 32 lanes" in fault.message
    assert wmma.run("counted", 1, 16, np.ones(256, "float16"), np.ones(1024, "float16"), Out(256)).fault


def test_a_matrix_past_the_end_is_found(wmma: Machine) -> None:
    fault = wmma.run("too_far", 1, 32, np.ones(256, "float16"), Out(32)).fault
    assert (fault.kind, fault.line) == ("out of bounds", line_of(WMMA, "past the end"))


# mma ----------------------------------------------------------------------------------------------------

FORMS = [  # shape, a, b, sum
    *((shape, "f16", "f16", total) for shape in ("m16n8k8", "m16n8k16") for total in ("f16", "f32")),
    *((shape, "bf16", "bf16", "f32") for shape in ("m16n8k8", "m16n8k16")),
    *((shape, "tf32", "tf32", "f32") for shape in ("m16n8k4", "m16n8k8")),
    *((shape, "f64", "f64", "f64") for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
    *((shape, "s8", "u8", "s32") for shape in ("m8n8k16", "m16n8k16", "m16n8k32")),
    *((shape, "u8", "s8", "s32") for shape in ("m8n8k16", "m16n8k16", "m16n8k32")),
    *((shape, "s4", "u4", "s32") for shape in ("m8n8k32", "m16n8k32", "m16n8k64")),
    *((shape, "b1", "b1", "s32") for shape in ("m8n8k128", "m16n8k128", "m16n8k256")),
    ("m16n8k32", "e4m3", "e5m2", "f32"),
    ("m16n8k32", "e5m2", "e4m3", "f32"),
]


def mma_name(shape: str, a: str, b: str, total: str) -> str:
    return f"mma_{shape}_{a}_{b}_{total}"


def mma_kernel(shape: str, a: str, b: str, total: str, suffix: str = "", order: str = "row.col") -> str:
    """A kernel whose lanes give and take the registers of fragments from arrays [lane][register]."""
    wide = a == "f64"
    quads = shape == "m8n8k4" and a == "f16"
    counts = [
        layouts.registers(shape, part, kind, 4 if quads else 1)
        for part, kind in zip("abc", (a, b, total), strict=True)
    ]
    letter, word = ("d", "double") if wide else ("r", "unsigned")

    def operands(first: int, count: int) -> str:
        return "{" + ", ".join(f"%{first + index}" for index in range(count)) + "}"

    starts = [0, counts[2], counts[2] + counts[0], counts[2] + counts[0] + counts[1]]
    text = ", ".join(
        operands(first, count)
        for first, count in zip(starts, (counts[2], counts[0], counts[1], counts[2]), strict=True)
    )
    inputs = [
        f'"{letter}"({name}[threadIdx.x * {count} + {index}])'
        for name, count in zip("abc", counts, strict=True)
        for index in range(count)
    ]
    outputs = [f'"={letter}"(d[threadIdx.x * {counts[2]} + {index}])' for index in range(counts[2])]
    name = (
        mma_name(shape, a, b, total) + suffix.replace(".", "_") + ("" if order == "row.col" else "_" + order)
    )
    return (
        f'extern "C" __global__ void {name.replace(".", "_")}'
        f"(const {word} *a, const {word} *b, const {word} *c, {word} *d) {{\n"
        f'  asm volatile("mma.sync.aligned.{shape}.{order}.{total}.{a}.{b}.{total}{suffix} {text};"\n'
        f"    : {', '.join(outputs)} : {', '.join(inputs)});\n}}\n"
    )


QUADS = [(order, total) for order in ("row.col", "col.row", "row.row", "col.col") for total in ("f16", "f32")]
LDMATRIX = r"""
extern "C" __global__ void matrices(const unsigned *in, unsigned *out, unsigned *back, unsigned *moved,
    int pad) {
  __shared__ __align__(128) unsigned tile[4 * 8 * 8];   // rows of 16 bytes, up to 32 bytes apart
  int lane = threadIdx.x;
  for (int i = lane; i < 128; i += 32) tile[i / 4 * (4 + pad) + i % 4] = in[i];
  __syncwarp();
  unsigned at = (unsigned)__cvta_generic_to_shared(tile) + lane * (16 + 4 * pad), r0, r1, r2, r3;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
    : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at));   // as they are
  out[lane] = r0; out[32 + lane] = r1; out[64 + lane] = r2; out[96 + lane] = r3;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(moved[lane]) : "r"(r0));
  unsigned t0, t1;
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
    : "=r"(t0), "=r"(t1) : "r"(at));
  out[128 + lane] = t0; out[160 + lane] = t1;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.b16 {%0}, [%1];" : "=r"(t0)
    : "l"((char *)tile + lane % 8 * (16 + 4 * pad)));
  out[192 + lane] = t0;
  __syncwarp();
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
    : : "r"(at), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
  __syncwarp();
  for (int i = lane; i < 128; i += 32) back[i] = tile[i / 4 * (4 + pad) + i % 4];
}
extern "C" __global__ void saturated(const int *a, int *d) {
  int d0, d1, d2, d3;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %4}, {%4}, "
    "{%5, %5, %5, %5};" : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3) : "r"(0x7f7f7f7f), "r"(a[0]));
  d[threadIdx.x] = d0 == d1 && d1 == d2 && d2 == d3 ? d0 : 0;
}
"""


@pytest.fixture(scope="module")
def mma(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    kernels = [LDMATRIX]
    for shape, a, b, total in FORMS:
        for suffix in (".xor.popc", ".and.popc") if a == "b1" else ("",):
            kernels.append(mma_kernel(shape, a, b, total, suffix))
    kernels += [mma_kernel("m8n8k4", "f16", "f16", total, order=order) for order, total in QUADS]
    return Machine(compile_cuda("\n".join(kernels), tmp_path_factory.mktemp("mma")))


def small_numbers(random: np.random.Generator, kind: str, shape: tuple[int, int]) -> Numbers:
    low, high = {"b1": (0, 2), "u4": (0, 16), "u8": (0, 256), "s4": (-8, 8), "s8": (-128, 128)}.get(
        kind, (-7, 8)
    )
    return random.integers(low, high, shape)


def test_every_mma_form(mma: Machine) -> None:
    random = np.random.default_rng(5)
    prepared, expected = [], []
    for shape, a_kind, b_kind, total in FORMS:
        m, n, k = layouts.extents(shape)
        a, b = small_numbers(random, a_kind, (m, k)), small_numbers(random, b_kind, (k, n))
        c = random.integers(-99, 99, (m, n))
        dtype = "uint64" if a_kind == "f64" else "uint32"
        for suffix in ("_xor_popc", "_and_popc") if a_kind == "b1" else ("",):
            name = mma_name(shape, a_kind, b_kind, total) + suffix
            registers = [
                layouts.fragments(shape, part, kind, matrix)
                for part, kind, matrix in (("a", a_kind, a), ("b", b_kind, b), ("c", total, c))
            ]
            prepared.append(mma.prepare(name, 1, 32, *registers, Out(registers[2].size, dtype)))
            product = (a[:, :, None] != b[None]).sum(axis=1) if "xor" in suffix else a @ b
            expected.append((name, layouts.fragments(shape, "c", total, product + c)))
    for run, (name, want) in zip(mma.run_all(prepared), expected, strict=True):
        assert run.result.status == "ok", (name, run.result)
        assert np.array_equal(run.arrays["a3"], want.ravel()), name


def test_mma_of_quads(mma: Machine) -> None:
    """mma.m8n8k4 of f16 is four products, each of eight lanes."""
    random = np.random.default_rng(6)
    prepared, expected = [], []
    for order, total in QUADS:
        a, b = random.integers(-7, 8, (4, 8, 4)), random.integers(-7, 8, (4, 4, 8))
        c = random.integers(-99, 99, (4, 8, 8))
        row_a, row_b = (word == "row" for word in order.split("."))
        registers = [
            layouts.quad_fragments("a" if row_a else "a by column", "f16", a),
            layouts.quad_fragments("b by row" if row_b else "b", "f16", b),
            layouts.quad_fragments("c", total, c),
        ]
        name = mma_name("m8n8k4", "f16", "f16", total)
        name += "" if order == "row.col" else "_" + order.replace(".", "_")
        prepared.append(mma.prepare(name, 1, 32, *registers, Out(registers[2].size, "uint32")))
        expected.append((name, layouts.quad_fragments("c", total, a @ b + c)))
    for run, (name, want) in zip(mma.run_all(prepared), expected, strict=True):
        assert run.result.status == "ok", (name, run.result)
        assert np.array_equal(run.arrays["a3"], want.ravel()), name


@pytest.mark.parametrize(
    ("form", "bound"),
    [
        (("m16n8k16", "f16", "f16", "f32"), 2**-22),
        (("m16n8k16", "bf16", "bf16", "f32"), 2**-22),
        (("m16n8k8", "tf32", "tf32", "f32"), 2**-22),
        (("m16n8k16", "f16", "f16", "f16"), 2**-10),
        (("m16n8k16", "f64", "f64", "f64"), 2**-50),
    ],
)
def test_mma_of_random_numbers(mma: Machine, form: tuple[str, str, str, str], bound: float) -> None:
    shape, a_kind, _, total = form
    random = np.random.default_rng(7)
    m, n, k = layouts.extents(shape)
    a, b, c = (
        layouts.rounded(kind, random.standard_normal(size))
        for kind, size in ((a_kind, (m, k)), (a_kind, (k, n)), (total, (m, n)))
    )
    registers = [
        layouts.fragments(shape, part, kind, matrix)
        for part, kind, matrix in (("a", a_kind, a), ("b", a_kind, b), ("c", total, c))
    ]
    run = mma.run(mma_name(*form), 1, 32, *registers, Out(registers[2].size, str(registers[2].dtype)))
    got = layouts.matrix(shape, "c", total, run.arrays["a3"])
    size = np.abs(a) @ np.abs(b) + np.abs(c)
    assert (np.abs(got - (a @ b + c)) <= bound * size).all()


def test_saturated_sums(mma: Machine) -> None:
    most = 2**31 - 1
    for start, want in ((0, 16 * 127 * 127), (most - 5, most), (-most, -most + 16 * 127 * 127)):
        run = mma.run("saturated", 1, 32, np.array([start], "int32"), Out(32, "int32"))
        assert (run.arrays["a1"] == want).all()


def test_matrices_between_shared_memory_and_registers(mma: Machine) -> None:
    words = np.random.default_rng(8).integers(0, 2**32, 128, dtype="uint32")
    halves = words.view("uint16").reshape(4, 8, 8)
    for pad, wavefronts in ((0, 4), (4, 8)):  # rows 32 bytes apart meet in the banks
        outs = (Out(224, "uint32"), Out(128, "uint32"), Out(32, "uint32"))
        run = mma.run("matrices", 1, 32, words, *outs, pad)
        got = run.arrays["a1"].view("uint16").reshape(7, 8, 8)
        transposed = halves.transpose(0, 2, 1)
        assert np.array_equal(got, np.concatenate([halves, transposed[:2], halves[:1]]))
        assert np.array_equal(run.arrays["a2"].view("uint16").reshape(4, 8, 8), transposed)
        assert np.array_equal(run.arrays["a3"].view("uint16").reshape(8, 8), halves[0].T)
        line = run.line(line_of(LDMATRIX, "as they are"))
        assert line.shared_load_requests == 1
        assert line.shared_load_wavefronts == wavefronts
        assert line.shared_load_ideal == 4


UNSUPPORTED = {
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r1, %r2}, "
    "{%r1, %r2, %r3, %r4}, %r1, 0x0;": "mma.sp.sync",
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3];": "ldmatrix.sync.aligned.m16n16",
    "mma.sync.aligned.m16n8k16.row.col.kind::f8f6f4.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, "
    "{%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r1, %r2, %r3, %r4};": "mma.sync",
}


@pytest.mark.parametrize("text", UNSUPPORTED)
def test_other_forms_are_named(text: str) -> None:
    with pytest.raises(PtxError, match="^unsupported: " + re.escape(UNSUPPORTED[text])):
        lower_modules([f".version 8.7\n.target sm_90\n.entry k() {{ .reg .b32 %r<9>; {text} ret; }}"])

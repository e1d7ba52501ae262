"""Whole CUDA kernels, compiled by the real nvcc, against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda

from sandbox.plan import WriteSymbol

SOURCE = r"""
#include <math.h>
extern "C" {
__global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void saxpy_vector(int n, float a, const float4 *x, float4 *y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float4 u = x[i], v = y[i];
    y[i] = make_float4(a * u.x + v.x, a * u.y + v.y, a * u.z + v.z, a * u.w + v.w);
  }
}
#define T 16
__global__ void matmul(int n, const float *a, const float *b, float *c) {
  __shared__ float sa[T][T], sb[T][T + 1];
  int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < (n + T - 1) / T; t++) {
    int k = t * T;
    sa[threadIdx.y][threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0;
    sb[threadIdx.y][threadIdx.x] = column < n && k + threadIdx.y < n ? b[(k + threadIdx.y) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < T; i++) sum += sa[threadIdx.y][i] * sb[i][threadIdx.x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}
__global__ void softmax(int columns, const float *x, float *y) {
  __shared__ float part[32];
  const float *row = x + (size_t)blockIdx.x * columns;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) most = fmaxf(most, row[i]);
  for (int o = 16; o; o /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
  if (lane == 0) part[warp] = most;
  __syncthreads();
  most = part[0];
  for (int w = 1; w < blockDim.x / 32; w++) most = fmaxf(most, part[w]);
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - most);
  for (int o = 16; o; o /= 2) sum += __shfl_down_sync(~0u, sum, o);
  if (lane == 0) part[warp] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < blockDim.x / 32; w++) sum += part[w];
  float *out = y + (size_t)blockIdx.x * columns;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = expf(row[i] - most) / sum;
}
__global__ void total(int n, const double *x, double *out) {
  extern __shared__ double tree[];
  double sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  tree[threadIdx.x] = sum;
  __syncthreads();
  for (int o = blockDim.x / 2; o; o /= 2) {
    if (threadIdx.x < o) tree[threadIdx.x] += tree[threadIdx.x + o];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, tree[0]);
}
__global__ void histogram(int n, const unsigned char *x, unsigned *bins) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) if (local[i]) atomicAdd(&bins[i], local[i]);
}
__global__ void transpose(int n, const double *in, double *out) {
  __shared__ double tile[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < n && y < n) tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x; y = blockIdx.x * 16 + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void stencil(int n, const float *in, float *out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
    out[y * n + x] = 0.2f * (in[y * n + x] + in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x]
                             + in[(y + 1) * n + x]);
  else if (x < n && y < n) out[y * n + x] = in[y * n + x];
}
__global__ void forces(int n, const float4 *body, float *fx) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 me = body[i];
  float sum = 0;
  for (int j = 0; j < n; j++) {
    float4 other = body[j];
    float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
    float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
    sum += other.w * dx * inverse * inverse * inverse;
  }
  fx[i] = sum;
}
__global__ void functions(int n, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i], a = fabsf(v) + 0.1f;
  float *o = y + i * 12;
  o[0] = expf(v); o[1] = logf(a); o[2] = tanhf(v); o[3] = erff(v); o[4] = powf(a, 1.7f);
  o[5] = sinf(v * 1e5f);
  o[6] = cosf(v); o[7] = log1pf(a); o[8] = atanf(v); o[9] = cbrtf(v); o[10] = sqrtf(a);
  o[11] = fmodf(v, 0.3f);
}
__global__ void functions_double(int n, const double *x, double *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double v = x[i], a = fabs(v) + 0.1;
  double *o = y + i * 8;
  o[0] = exp(v); o[1] = log(a); o[2] = tanh(v); o[3] = erf(v); o[4] = pow(a, 1.7);
  o[5] = sin(v * 1e5); o[6] = sqrt(a); o[7] = v / a;
}
__global__ void integers(int n, const int *a, const int *b, long long *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long wide = (long long)a[i] * b[i];
  out[i] = wide / (b[i] | 1) + a[i] % (b[i] | 1) + (wide >> 7) + __popc(a[i]) + __clz(b[i])
           + (long long)(unsigned)a[i] / 1000;
}
__global__ void collatz(int n, const int *start, int *steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long v = start[i];
  int count = 0;
  while (v != 1) {
    if (v % 2) { v = 3 * v + 1; if (v > 1000000) { count += 1000; break; } }
    else v /= 2;
    count++;
  }
  steps[i] = count;
}
__constant__ float weights[5];
__device__ int calls;
__device__ __noinline__ float weighted(const float *x, int i, int n) {
  float sum = 0;
  for (int k = -2; k <= 2; k++) { int j = i + k; if (j >= 0 && j < n) sum += weights[k + 2] * x[j]; }
  return sum;
}
__global__ void filter(int n, const float *x, float *y, int *total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { y[i] = weighted(x, i, n); *total = atomicAdd(&calls, 1) >= 0; }
}
struct Settings { int mode; double scale; short table[6]; };
__global__ void by_value(Settings s, int n, float *y) {
  int i = threadIdx.x;
  if (i < n) y[i] = s.table[i % 6] * s.scale + s.mode;
}
__global__ void warp_tricks(const int *x, int *y) {
  int v = x[threadIdx.x];
  unsigned odd = __ballot_sync(~0u, v & 1), same = __match_any_sync(~0u, v % 3);
  int up = __shfl_up_sync(~0u, v, 1), from = __shfl_sync(~0u, v, threadIdx.x / 2);
  int most = __reduce_max_sync(~0u, v);
  int *o = y + threadIdx.x * 6;
  o[0] = odd; o[1] = same; o[2] = up; o[3] = from; o[4] = most;
  o[5] = __any_sync(~0u, v > 90) + 2 * __all_sync(~0u, v > 5);
}
__global__ void counting(const int *x, int *y) {
  int v = x[threadIdx.x];
  y[threadIdx.x] = __syncthreads_count(v > 0) * 4 + __syncthreads_or(v > 99) * 2 + __syncthreads_and(v > -5);
}
__global__ void lock_step(int *lock, int *value) {
  bool done = false;
  while (!done)
    if (atomicCAS(lock, 0, 1) == 0) {
      *(volatile int *)value += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
}
__global__ void three_dimensions(int *out) {
  int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  int at = block * blockDim.x * blockDim.y * blockDim.z + thread;
  out[at] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.y;
}
__global__ void bytes(int n, const unsigned char *a, const signed char *b, short *c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ unsigned char tile[64];
  tile[threadIdx.x] = i < n ? a[i] : 0;
  __syncthreads();
  if (i < n) c[i] = tile[63 - threadIdx.x] + b[i] * 2;
}
}
"""


@pytest.fixture(scope="module")
def machine(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("kernels")))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_saxpy(machine: Machine, rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((2, 1000), dtype="f4")
    run = machine.run("saxpy", 4, 256, 1000, np.float32(2.5), x, y)
    np.testing.assert_allclose(run.arrays["a3"], np.float32(2.5) * x + y, rtol=1e-5, atol=1e-6)
    assert (run.arrays["a2"] == x).all()


def test_vector_loads(machine: Machine, rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((2, 4 * 100), dtype="f4")
    run = machine.run("saxpy_vector", 2, 32, 100, np.float32(-1.5), x, y)
    np.testing.assert_allclose(run.arrays["a3"], np.float32(-1.5) * x + y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [1, 16, 45])
def test_matrix_product(machine: Machine, rng: np.random.Generator, n: int) -> None:
    a, b = rng.standard_normal((2, n, n), dtype="f4")
    run = machine.run("matmul", (-(-n // 16), -(-n // 16)), (16, 16), n, a, b, Out(n * n))
    assert run.result.status == "ok", run.result
    np.testing.assert_allclose(run.arrays["a3"].reshape(n, n), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("columns", "threads"), [(1, 32), (70, 64), (333, 128)])
def test_softmax(machine: Machine, rng: np.random.Generator, columns: int, threads: int) -> None:
    x = rng.standard_normal((5, columns), dtype="f4") * 8
    run = machine.run("softmax", 5, threads, columns, x, Out(x.size))
    assert run.result.status == "ok", run.result
    wide = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    np.testing.assert_allclose(
        run.arrays["a2"].reshape(x.shape), wide / wide.sum(1, keepdims=True), rtol=1e-5
    )


def test_reduction_in_dynamic_shared_memory(machine: Machine, rng: np.random.Generator) -> None:
    x = rng.standard_normal(5000)
    run = machine.run("total", 7, 128, 5000, x, np.zeros(1), shared=128 * 8)
    np.testing.assert_allclose(run.arrays["a2"], [x.sum()], rtol=1e-12)


def test_histogram(machine: Machine, rng: np.random.Generator) -> None:
    x = rng.integers(0, 256, 4000).astype("u1")
    run = machine.run("histogram", 3, 96, 4000, x, np.zeros(256, "u4"))
    assert (run.arrays["a2"] == np.bincount(x, minlength=256)).all()


def test_transpose(machine: Machine, rng: np.random.Generator) -> None:
    x = rng.standard_normal((50, 50))
    run = machine.run("transpose", (4, 4), (16, 16), 50, x, Out(2500, "float64"))
    assert (run.arrays["a2"].reshape(50, 50) == x.T).all()
    assert run.total("shared_load_wavefronts") == run.total(
        "shared_load_ideal"
    )  # 17 doubles a row: no conflicts


def test_stencil(machine: Machine, rng: np.random.Generator) -> None:
    x = rng.standard_normal((37, 37), dtype="f4")
    expected = x.copy()
    expected[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1])
    run = machine.run("stencil", (2, 5), (32, 8), 37, x, Out(37 * 37))
    np.testing.assert_allclose(run.arrays["a2"].reshape(37, 37), expected, rtol=1e-5, atol=1e-6)


def test_n_body(machine: Machine, rng: np.random.Generator) -> None:
    body = rng.standard_normal((77, 4), dtype="f4")
    delta = body[None, :, :3].astype("f8") - body[:, None, :3]
    inverse = 1 / np.sqrt((delta**2).sum(-1) + 1e-3)
    run = machine.run("forces", 3, 32, 77, body, Out(77))
    expected = (body[None, :, 3] * delta[..., 0] * inverse**3).sum(1)
    np.testing.assert_allclose(run.arrays["a2"], expected, rtol=2e-3, atol=2e-3)


def test_float_functions(machine: Machine, rng: np.random.Generator) -> None:
    x = (rng.standard_normal(200) * 3).astype("f4")
    run = machine.run("functions", 2, 128, 200, x, Out(200 * 12))
    assert run.result.status == "ok", run.result
    v = x.astype("f8")
    a = np.abs(x) + np.float32(0.1)
    wide = a.astype("f8")
    expected = np.stack(
        [
            *(np.exp(v), np.log(wide), np.tanh(v), [math.erf(t) for t in v], wide ** np.float32(1.7)),
            *(
                np.sin((x * np.float32(1e5)).astype("f8")),
                np.cos(v),
                np.log1p(wide),
                np.arctan(v),
                np.cbrt(v),
            ),
            *(np.sqrt(wide), np.fmod(x, np.float32(0.3))),
        ],
        axis=1,
    )
    np.testing.assert_allclose(run.arrays["a2"].reshape(200, 12), expected, rtol=4e-6, atol=2e-7)


def test_double_functions(machine: Machine, rng: np.random.Generator) -> None:
    v = rng.standard_normal(150) * 3
    run = machine.run("functions_double", 2, 96, 150, v, Out(150 * 8, "float64"))
    assert run.result.status == "ok", run.result
    a = np.abs(v) + 0.1
    expected = np.stack(
        [
            np.exp(v),
            np.log(a),
            np.tanh(v),
            [math.erf(t) for t in v],
            a**1.7,
            np.sin(v * 1e5),
            np.sqrt(a),
            v / a,
        ],
        axis=1,
    )
    np.testing.assert_allclose(run.arrays["a2"].reshape(150, 8), expected, rtol=1e-14, atol=1e-15)


def test_integer_arithmetic(machine: Machine, rng: np.random.Generator) -> None:
    a, b = rng.integers(-(2**31), 2**31, (2, 300)).astype("i4")
    run = machine.run("integers", 3, 128, 300, a, b, Out(300, "int64"))

    def one(x: int, y: int) -> int:
        odd = np.int32(y | 1).item()
        quotient = lambda p, q: abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)  # noqa: E731
        rest = x - quotient(x, odd) * odd
        ones, zeros = (x & 0xFFFFFFFF).bit_count(), 32 - (y & 0xFFFFFFFF).bit_length()
        return quotient(x * y, odd) + rest + (x * y >> 7) + ones + zeros + (x & 0xFFFFFFFF) // 1000

    assert run.arrays["a3"].tolist() == [one(int(x), int(y)) for x, y in zip(a, b, strict=True)]


def test_divergent_loops(machine: Machine) -> None:
    start = np.arange(1, 201, dtype="i4")

    def steps(v: int) -> int:
        count = 0
        while v != 1:
            if v % 2:
                v = 3 * v + 1
                if v > 1_000_000:
                    return count + 1000
            else:
                v //= 2
            count += 1
        return count

    run = machine.run("collatz", 1, 224, 200, start, Out(200, "int32"))
    assert run.arrays["a2"].tolist() == [steps(int(v)) for v in start]
    assert run.total("divergent_branches") > 0


def test_constants_device_variables_and_calls(machine: Machine, rng: np.random.Generator) -> None:
    x = rng.standard_normal(100, dtype="f4")
    weights = np.array([0.1, 0.2, 0.4, 0.2, 0.1], "f4")
    write = WriteSymbol(module=0, symbol="weights", offset=0, data=weights.tobytes().hex())
    run = machine.run("filter", 1, 128, 100, x, Out(100), np.zeros(1, "i4"), before=[write])
    assert run.result.status == "ok", run.result
    np.testing.assert_allclose(run.arrays["a2"], np.convolve(x, weights, "same"), rtol=1e-5, atol=1e-6)


def test_struct_by_value(machine: Machine) -> None:
    settings = np.zeros(1, [("mode", "i4"), ("pad", "i4"), ("scale", "f8"), ("table", "6i2"), ("end", "i4")])
    settings["mode"], settings["scale"], settings["table"] = 3, 0.5, [1, 2, 3, 4, 5, 6]
    run = machine.run("by_value", 1, 32, settings[0], 12, Out(12))
    np.testing.assert_allclose(run.arrays["a2"], [0.5 * (1 + i % 6) + 3 for i in range(12)])


def test_warp_collectives(machine: Machine, rng: np.random.Generator) -> None:
    x = rng.integers(6, 100, 32).astype("i4")
    run = machine.run("warp_tricks", 1, 32, x, Out(32 * 6, "int32"))
    got = run.arrays["a1"].reshape(32, 6)
    assert (got[:, 0].view("u4") == sum(1 << i for i in range(32) if x[i] & 1)).all()
    same = [sum(1 << j for j in range(32) if x[j] % 3 == x[i] % 3) for i in range(32)]
    assert got[:, 1].view("u4").tolist() == same
    assert got[:, 2].tolist() == [x[max(i - 1, 0)] for i in range(32)]
    assert got[:, 3].tolist() == [x[i // 2] for i in range(32)]
    assert (got[:, 4] == x.max()).all()
    assert (got[:, 5] == int((x > 90).any()) + 2 * int((x > 5).all())).all()


def test_barrier_reductions(machine: Machine, rng: np.random.Generator) -> None:
    x = rng.integers(-4, 100, 80).astype("i4")
    run = machine.run("counting", 1, 80, x, Out(80, "int32"))
    assert run.result.status == "ok", run.result
    assert set(run.arrays["a1"].tolist()) == {
        int((x > 0).sum()) * 4 + 2 * int((x > 99).any()) + int((x > -5).all())
    }


def test_lanes_of_one_warp_take_a_lock(machine: Machine) -> None:
    run = machine.run("lock_step", 3, 64, np.zeros(1, "i4"), np.zeros(1, "i4"))
    assert run.arrays["a1"][0] == 3 * 64


def test_all_grid_and_block_dimensions(machine: Machine) -> None:
    run = machine.run("three_dimensions", (2, 3), (4, 3), Out(6 * 12, "int32"))
    expected = [
        x + 10 * y + 1000 * by for by in range(3) for _ in range(2) for y in range(3) for x in range(4)
    ]
    assert run.arrays["a0"].tolist() == expected


def test_narrow_types(machine: Machine, rng: np.random.Generator) -> None:
    a, b = rng.integers(0, 256, 100).astype("u1"), rng.integers(-128, 128, 100).astype("i1")
    run = machine.run("bytes", 2, 64, 100, a, b, Out(100, "int16"))
    tiles = np.concatenate([a, np.zeros(28, "u1")]).reshape(2, 64)[:, ::-1].ravel()[:100]
    assert (run.arrays["a3"] == tiles.astype("i2") + b.astype("i2") * 2).all()


def test_threads_do_not_change_the_counts(machine: Machine, rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((2, 1000), dtype="f4")
    one, two = (machine.run("saxpy", 4, 256, 1000, np.float32(1), x, y, threads=n).trace for n in (1, 2))
    assert one == two


def test_the_size_of_a_warp_is_a_constant_of_the_language() -> None:
    ptx = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_param_0)
{
 .reg .b32 %r<4>; .reg .b64 %rd<4>;
 ld.param.u64 %rd1, [k_param_0];
 cvta.to.global.u64 %rd2, %rd1;
 mov.u32 %r1, WARP_SZ;
 mov.u32 %r2, %tid.x;
 add.u32 %r3, %r2, WARP_SZ;
 mul.wide.u32 %rd3, %r2, 4;
 add.s64 %rd2, %rd2, %rd3;
 add.u32 %r1, %r1, %r3;
 st.global.u32 [%rd2], %r1;
 ret;
}"""
    ran = Machine(ptx).run("k", 1, 32, Out(32, "int32"))
    assert ran.arrays["a0"].tolist() == [64 + lane for lane in range(32)]

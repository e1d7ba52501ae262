"""Asynchronous copies and mbarriers: libcu++ and cooperative groups as programs use them, and inline PTX."""

from __future__ import annotations

import re

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of

from sandbox.emulator.lowering.module import lower_modules
from sandbox.ptx import PtxError

LIBRARY = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void each_thread_copies(const int *in, int *out) {
  __shared__ block_barrier barrier;
  __shared__ alignas(16) int tile[256];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(tile + threadIdx.x, in + threadIdx.x, sizeof(int), barrier);
  barrier.arrive_and_wait();
  out[threadIdx.x] = tile[255 - threadIdx.x];
  auto token = barrier.arrive();
  barrier.wait(std::move(token));
  tile[threadIdx.x] = 0;
}
extern "C" __global__ void the_block_copies(const int *in, int *out) {
  auto block = cg::this_thread_block();
  __shared__ block_barrier barrier;
  __shared__ alignas(16) int tile[256];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(block, tile, in, cuda::aligned_size_t<16>(sizeof(tile)), barrier);
  barrier.arrive_and_wait();
  out[threadIdx.x] = tile[255 - threadIdx.x];
}
extern "C" __global__ void thread_pipeline(const int *in, int *out, int n) {
  __shared__ alignas(16) int tile[2][256];
  auto pipeline = cuda::make_pipeline();
  pipeline.producer_acquire();
  cuda::memcpy_async(&tile[0][threadIdx.x], in + threadIdx.x, 4, pipeline);
  pipeline.producer_commit();
  for (int i = 0; i < n; i++) {
    if (i + 1 < n) {
      pipeline.producer_acquire();
      cuda::memcpy_async(&tile[(i + 1) & 1][threadIdx.x], in + (i + 1) * 256 + threadIdx.x, 4, pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    __syncthreads();
    out[i * 256 + threadIdx.x] = tile[i & 1][255 - threadIdx.x];
    __syncthreads();
    pipeline.consumer_release();
  }
}
extern "C" __global__ void block_pipeline(const int *in, int *out, int n) {
  auto block = cg::this_thread_block();
  __shared__ alignas(16) int tile[2][256];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto pipeline = cuda::make_pipeline(block, &state);
  for (int i = 0, filled = 0; i < n; i++) {
    for (; filled < n && filled < i + 2; filled++) {
      pipeline.producer_acquire();
      auto bytes = cuda::aligned_size_t<16>(1024);
      cuda::memcpy_async(block, tile[filled & 1], in + filled * 256, bytes, pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    out[i * 256 + threadIdx.x] = tile[i & 1][255 - threadIdx.x];
    pipeline.consumer_release();
  }
}
extern "C" __global__ void specialised(const int *in, int *out, int n) {
  auto block = cg::this_thread_block();
  __shared__ alignas(16) int tile[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  bool produces = threadIdx.x < 32;
  auto pipeline = cuda::make_pipeline(block, &state,
    produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  if (produces) {
    for (int i = 0; i < n; i++) {
      pipeline.producer_acquire();
      for (int k = threadIdx.x; k < 64; k += 32)
        cuda::memcpy_async(&tile[i & 1][k], in + i * 64 + k, 4, pipeline);
      pipeline.producer_commit();
    }
  } else {
    for (int i = 0; i < n; i++) {
      pipeline.consumer_wait();
      out[i * 64 + threadIdx.x - 32] = tile[i & 1][95 - threadIdx.x];
      pipeline.consumer_release();
    }
  }
}
extern "C" __global__ void group_copy(const int *in, int *out) {
  __shared__ alignas(16) int tile[256];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile, in, sizeof(tile));
  cg::wait(block);
  out[threadIdx.x] = tile[255 - threadIdx.x];
}
"""


@pytest.fixture(scope="module", params=["sm_80", "sm_90"])
def library(jail: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(compile_cuda(LIBRARY, tmp_path_factory.mktemp("library"), request.param))


@pytest.fixture(scope="module")
def plain(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(compile_cuda(LIBRARY, tmp_path_factory.mktemp("plain")), mode="plain")


def numbers(count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 1 << 30, count).astype("int32")


@pytest.mark.parametrize("kernel", ["each_thread_copies", "the_block_copies", "group_copy"])
def test_one_copy_of_a_tile(library: Machine, kernel: str) -> None:
    given = numbers(256)
    run = library.run(kernel, 1, 256, given, Out(256, "int32"))
    assert run.result.status == "ok", run.result
    assert np.array_equal(run.arrays["a1"], given[::-1])


@pytest.mark.parametrize("kernel", ["thread_pipeline", "block_pipeline"])
def test_pipelines(library: Machine, kernel: str) -> None:
    given = numbers(5 * 256)
    run = library.run(kernel, 1, 256, given, Out(5 * 256, "int32"), 5)
    assert run.result.status == "ok", run.result
    assert np.array_equal(run.arrays["a1"].reshape(5, 256), given.reshape(5, 256)[:, ::-1])


def test_producers_and_consumers(library: Machine) -> None:
    given = numbers(9 * 64)
    run = library.run("specialised", 1, 96, given, Out(9 * 64, "int32"), 9)
    assert run.result.status == "ok", run.result
    assert np.array_equal(run.arrays["a1"].reshape(9, 64), given.reshape(9, 64)[:, ::-1])


def test_the_same_without_checks(plain: Machine) -> None:
    given = numbers(9 * 64)
    run = plain.run("specialised", 1, 96, given, Out(9 * 64, "int32"), 9, count=False)
    assert run.result.status == "ok", run.result
    assert np.array_equal(run.arrays["a1"].reshape(9, 64), given.reshape(9, 64)[:, ::-1])


INLINE = r"""
#include <cuda_runtime.h>
__device__ unsigned shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(unsigned barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(count) : "memory");
}
__device__ void expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
    : : "r"(barrier), "r"(bytes) : "memory");
}
__device__ void wait(unsigned barrier, int parity) {
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }"
    : : "r"(barrier), "r"(parity) : "memory");
}
extern "C" {
__global__ void sizes(const int *in, int *out, int bytes) {
  __shared__ __align__(16) int tile[32 * 4];
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
    : : "r"(shared(tile + 4 * threadIdx.x)), "l"(in + 4 * threadIdx.x), "r"(bytes) : "memory");
  asm volatile("cp.async.commit_group; cp.async.wait_group 0;" : : : "memory");
  for (int i = 0; i < 4; i++) out[4 * threadIdx.x + i] = tile[4 * threadIdx.x + i];
}
__global__ void ignored(const int *in, int *out) {
  __shared__ __align__(16) long long tile[32];
  asm volatile("{ .reg .pred p; setp.gt.u32 p, %2, 9; cp.async.ca.shared.global [%0], [%1], 8, p; }"
    : : "r"(shared(tile + threadIdx.x)), "l"(in + 2 * threadIdx.x), "r"(threadIdx.x) : "memory");
  asm volatile("cp.async.wait_all;" : : : "memory");
  ((long long *)out)[threadIdx.x] = tile[threadIdx.x];
}
__global__ void stages(const int *in, int *out, int waits) {
  __shared__ int tile[2][32];
  int lane = threadIdx.x;
  for (int s = 0; s < 2; s++) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
      : : "r"(shared(&tile[s][lane])), "l"(in + 32 * s + lane) : "memory");   // copies
    asm volatile("cp.async.commit_group;" : : : "memory");
  }
  if (waits == 2) asm volatile("cp.async.wait_group 1;" : : : "memory");
  if (waits == 1) asm volatile("cp.async.wait_group 2;" : : : "memory");
  if (waits != 3) out[lane] = tile[0][lane];   // reads the first stage
  asm volatile("cp.async.wait_group 0;" : : : "memory");
  if (waits == 3) out[lane] = tile[0][31 - lane];   // reads another's copy
  out[32 + lane] = tile[1][lane];
}
__global__ void bulk(const int *in, int *out, int bytes, int short_by) {
  __shared__ __align__(128) int tile[1024];
  __shared__ __align__(8) unsigned long long barrier;
  if (threadIdx.x == 0) {
    init(shared(&barrier), 1);
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async;" : : : "memory");
  }
  __syncthreads();
  for (int round = 0; round < 3; round++) {
    if (threadIdx.x == 0) {
      expect(shared(&barrier), bytes);
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1], %2, [%3];" : : "r"(shared(tile)), "l"(in + 1024 * round), "r"(bytes - short_by),
        "r"(shared(&barrier)) : "memory");
    }
    wait(shared(&barrier), round & 1);   // waits for the bytes
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) tile[i] += 1;
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
        : : "l"(out + 1024 * round), "r"(shared(tile)), "r"(bytes) : "memory");
      asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" : : : "memory");
    }
    __syncthreads();
  }
}
__global__ void bulk_sum(const float *in, float *sum) {
  __shared__ __align__(128) float tile[64];
  for (int i = threadIdx.x; i < 64; i += 32) tile[i] = in[64 * blockIdx.x + i];
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 256;"
      : : "l"(sum), "r"(shared(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" : : : "memory");
  }
}
__global__ void misaligned(const int *in, int *out) {
  __shared__ __align__(128) int tile[64];
  __shared__ __align__(8) unsigned long long barrier;
  init(shared(&barrier), 1);
  expect(shared(&barrier), 16);
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "   // odd
    "[%0], [%1], 16, [%2];" : : "r"(shared(tile)), "l"(in + 1), "r"(shared(&barrier)) : "memory");
  out[0] = tile[0];
}
__global__ void uninitialised(int *out) {
  __shared__ __align__(8) unsigned long long barrier;
  if (out[0]) barrier = ~0ull;
  wait(shared(&barrier), 0);
  out[0] = 1;
}
__global__ void too_many(int *out) {
  __shared__ __align__(8) unsigned long long barrier;
  if (threadIdx.x == 0) init(shared(&barrier), 31);
  __syncthreads();
  if (threadIdx.x < 31) {
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], %2;"   // arrives
      : "=l"(state) : "r"(shared(&barrier)), "r"(1 + out[32]) : "memory");
    unsigned left;
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(left) : "l"(state));
    out[1 + threadIdx.x] = left;
    asm volatile("{ .reg .pred p; loop: mbarrier.test_wait.shared::cta.b64 p, [%0], %1; @!p bra loop; }"
      : : "r"(shared(&barrier)), "l"(state) : "memory");
  }
  out[0] = 7;
}
__global__ void too_soon(int *out, int safe) {
  __shared__ __align__(8) unsigned long long barrier;
  if (threadIdx.x == 0) init(shared(&barrier), 64);   // by one thread
  if (safe) __syncthreads();
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared(&barrier)) : "memory");   // by all
  wait(shared(&barrier), 0);
  out[threadIdx.x] = 1;
}
__global__ void cluster(int *out) {
  __shared__ int cells[64];
  unsigned rank, blocks, x, count, other;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(x));
  asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
    : "=r"(other) : "r"(shared(&cells[threadIdx.x])), "r"(rank));
  asm volatile("st.shared::cluster.u32 [%0], %1;" : : "r"(other), "r"(threadIdx.x) : "memory");
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
    : : : "memory");
  out[64 * blockIdx.x + threadIdx.x] = cells[63 - threadIdx.x] + 100 * blocks + 1000 * x + 10000 * count;
}
}
"""


@pytest.fixture(scope="module")
def inline(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(compile_cuda(INLINE, tmp_path_factory.mktemp("inline")))


@pytest.mark.parametrize("bytes_", [16, 8, 5, 0])
def test_what_the_source_does_not_give_is_zero(inline: Machine, bytes_: int) -> None:
    given = numbers(128)
    run = inline.run("sizes", 1, 32, given, Out(128, "int32"), bytes_)
    want = given.reshape(32, 4).copy().view("uint8")
    want[:, bytes_:] = 0
    assert np.array_equal(run.arrays["a1"].reshape(32, 4), want.view("int32"))


def test_an_ignored_source_is_not_read(inline: Machine) -> None:
    given = numbers(20)  # the rest does not exist
    run = inline.run("ignored", 1, 32, given, Out(64, "int32"))
    assert np.array_equal(run.arrays["a1"], np.concatenate([given, np.zeros(44, "int32")]))


def test_a_read_before_the_wait_is_found(inline: Machine) -> None:
    given = numbers(64)
    run = inline.run("stages", 1, 32, given, Out(64, "int32"), 2)
    assert np.array_equal(run.arrays["a1"], given)
    source = line_of(INLINE, "copies")
    assert run.line(source).global_load_sectors == 8
    assert run.line(source).shared_store_wavefronts == 2
    for waits in (0, 1):
        fault = inline.run("stages", 1, 32, given, Out(64, "int32"), waits).fault
        assert (fault.kind, fault.line) == ("race", line_of(INLINE, "reads the first stage"))
        assert "asynchronous copy" in fault.message
        assert f"line {source}" in fault.message


def test_a_wait_is_for_ones_own_copies(inline: Machine) -> None:
    fault = inline.run("stages", 1, 32, numbers(64), Out(64, "int32"), 3).fault
    assert (fault.kind, fault.line) == ("race", line_of(INLINE, "reads another's copy"))


def test_bulk_copies(inline: Machine) -> None:
    given = numbers(3072)
    run = inline.run("bulk", 1, 64, given, Out(3072, "int32"), 4096, 0)
    assert run.result.status == "ok", run.result
    assert np.array_equal(run.arrays["a1"], given + 1)
    assert run.total("global_load_bytes") == run.total("global_store_bytes") == 3 * 4096
    assert run.total("global_load_sectors") == 3 * 128
    fault = inline.run("bulk", 1, 64, numbers(1024), Out(3072, "int32"), 4096, 0).fault
    assert fault.kind == "out of bounds"


def test_bytes_that_never_come(inline: Machine) -> None:
    run = inline.run("bulk", 1, 64, numbers(3072), Out(3072, "int32"), 4096, 16, seconds=1)
    assert run.result.status == "timeout" or run.fault.kind == "deadlock"


def test_bulk_sums(inline: Machine) -> None:
    given = numbers(256).astype("float32") % 1000
    run = inline.run("bulk_sum", 4, 32, given, np.zeros(64, "float32"))
    assert np.array_equal(run.arrays["a1"], given.reshape(4, 64).sum(axis=0))


@pytest.mark.parametrize(
    ("kernel", "threads", "kind", "text"),
    [
        ("misaligned", 1, "misaligned", "odd"),
        ("uninitialised", 1, "barrier", "again:"),
        ("too_many", 32, "barrier", "arrives"),
        ("too_soon", 64, "race", "by all"),
    ],
)
def test_faults(inline: Machine, kernel: str, threads: int, kind: str, text: str) -> None:
    arguments = {
        "misaligned": [numbers(64), Out(1, "int32")],
        "uninitialised": [np.zeros(1, "int32")],
        "too_many": [np.ones(33, "int32")],
        "too_soon": [Out(64, "int32"), 0],
    }
    fault = inline.run(kernel, 1, threads, *arguments[kernel]).fault
    assert fault.kind == kind, fault
    assert fault.address is not None
    if text:
        assert abs((fault.line or 0) - line_of(INLINE, text)) <= 2


def test_their_neighbours_without_the_fault(inline: Machine) -> None:
    run = inline.run("too_many", 1, 32, np.zeros(33, "int32"))
    assert sorted(run.arrays["a0"][1:32]) == list(range(1, 32))
    assert inline.run("too_soon", 1, 64, Out(64, "int32"), 1).arrays["a0"].all()


def test_a_cluster_of_one_block(inline: Machine) -> None:
    run = inline.run("cluster", 3, 64, Out(192, "int32"))
    lane, block = np.arange(63, -1, -1), np.arange(3)[:, None]
    assert np.array_equal(run.arrays["a0"].reshape(3, 64), lane + 100 + 1000 * block + 30000)


@pytest.mark.parametrize(
    "statement",
    [
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%r1], [%rd1, {%r1, %r2}], [%r3];",
        "wgmma.fence.sync.aligned;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;",
    ],
)
def test_hoppers_matrices_are_named(statement: str) -> None:
    text = (
        ".version 8.7\n.target sm_90a\n.entry k() { .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .f32 %f<5>; "
        f"{statement} ret; }}"
    )
    with pytest.raises(PtxError, match="^unsupported: " + re.escape(statement.split()[0].rstrip(";"))):
        lower_modules([text])


def test_a_larger_cluster_is_refused() -> None:
    text = ".version 8.7\n.target sm_90\n.entry k() .reqnctapercluster 2, 1, 1 { ret; }"
    with pytest.raises(PtxError, match="unsupported: a cluster of 2 blocks"):
        lower_modules([text])

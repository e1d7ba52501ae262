// Tensor cores, by the C++ interface and by instruction. One warp, or one warp a tile.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

template <typename T, typename Sum>
__device__ void tile_product(const T *a, const T *b, Sum *c, int n) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, Sum> sum;
  wmma::fill_fragment(sum, static_cast<Sum>(0.0f));
  int row = blockIdx.y * 16, column = blockIdx.x * 16;
  for (int k = 0; k < n; k += 16) {
    wmma::load_matrix_sync(left, a + row * n + k, n);
    wmma::load_matrix_sync(right, b + k * n + column, n);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}
extern "C" __global__ void wmma_half(const __half *a, const __half *b, float *c, int n) { tile_product(a, b, c, n); }
extern "C" __global__ void wmma_half_sums(const __half *a, const __half *b, __half *c, int n) { tile_product(a, b, c, n); }
extern "C" __global__ void wmma_bfloat(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n) {
  tile_product(a, b, c, n);
}

// c = a * b, a 16 x k row by row, b k x 8 column by column: the fragments are read as PTX lays them out.
__device__ unsigned pair_at(const void *matrix, int element) {
  return *reinterpret_cast<const unsigned *>(static_cast<const unsigned short *>(matrix) + element);
}
extern "C" __global__ void mma_half(const __half *a, const __half *b, float *c) {
  int group = threadIdx.x / 4, pair = 2 * (threadIdx.x % 4);
  unsigned a0 = pair_at(a, group * 16 + pair), a1 = pair_at(a, (group + 8) * 16 + pair);
  unsigned a2 = pair_at(a, group * 16 + pair + 8), a3 = pair_at(a, (group + 8) * 16 + pair + 8);
  unsigned b0 = pair_at(b, group * 16 + pair), b1 = pair_at(b, group * 16 + pair + 8);
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  c[group * 8 + pair] = s0, c[group * 8 + pair + 1] = s1;
  c[(group + 8) * 8 + pair] = s2, c[(group + 8) * 8 + pair + 1] = s3;
}
extern "C" __global__ void mma_bfloat(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c) {
  int group = threadIdx.x / 4, pair = 2 * (threadIdx.x % 4);
  unsigned a0 = pair_at(a, group * 16 + pair), a1 = pair_at(a, (group + 8) * 16 + pair);
  unsigned a2 = pair_at(a, group * 16 + pair + 8), a3 = pair_at(a, (group + 8) * 16 + pair + 8);
  unsigned b0 = pair_at(b, group * 16 + pair), b1 = pair_at(b, group * 16 + pair + 8);
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  c[group * 8 + pair] = s0, c[group * 8 + pair + 1] = s1;
  c[(group + 8) * 8 + pair] = s2, c[(group + 8) * 8 + pair + 1] = s3;
}
// k = 8; the lower 13 bits of each input are zero, so that nothing is rounded on the way in.
extern "C" __global__ void mma_tf32(const unsigned *a, const unsigned *b, float *c) {
  int group = threadIdx.x / 4, at = threadIdx.x % 4, pair = 2 * at;
  unsigned a0 = a[group * 8 + at], a1 = a[(group + 8) * 8 + at];
  unsigned a2 = a[group * 8 + at + 4], a3 = a[(group + 8) * 8 + at + 4];
  unsigned b0 = b[group * 8 + at], b1 = b[group * 8 + at + 4];
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  c[group * 8 + pair] = s0, c[group * 8 + pair + 1] = s1;
  c[(group + 8) * 8 + pair] = s2, c[(group + 8) * 8 + pair + 1] = s3;
}
// k = 32, signed bytes: exact. Four bytes of a row, or column, in each register.
extern "C" __global__ void mma_bytes(const unsigned *a, const unsigned *b, int *c) {
  int group = threadIdx.x / 4, at = threadIdx.x % 4, pair = 2 * at;
  unsigned a0 = a[group * 8 + at], a1 = a[(group + 8) * 8 + at];
  unsigned a2 = a[group * 8 + at + 4], a3 = a[(group + 8) * 8 + at + 4];
  unsigned b0 = b[group * 8 + at], b1 = b[group * 8 + at + 4];
  int s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+r"(s0), "+r"(s1), "+r"(s2), "+r"(s3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  c[group * 8 + pair] = s0, c[group * 8 + pair + 1] = s1;
  c[(group + 8) * 8 + pair] = s2, c[(group + 8) * 8 + pair + 1] = s3;
}
// Four 8 x 8 matrices of 16-bit elements from shared memory, rows of 16 bytes.
extern "C" __global__ void load_matrices(const uint4 *x, uint4 *y) {
  __shared__ uint4 rows[32];
  rows[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(rows + threadIdx.x));
  uint4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at) : "memory");
  y[threadIdx.x] = v;
}

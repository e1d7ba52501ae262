// Half and bfloat16 on the ordinary pipes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void half_fma(const __half *x, __half *y) {
  __half v = x[INDEX];
  y[INDEX] = __hfma(v, v, __hfma(v, __float2half(0.5f), v));
}
extern "C" __global__ void half_adds(const __half *x, __half *y) {
  __half v = x[INDEX];
  y[INDEX] = __hmul_rn(__hadd_rn(v, v), __hsub_rn(v, __float2half(1.0f)));
}
extern "C" __global__ void half_pairs(const __half2 *x, __half2 *y) {
  __half2 v = x[INDEX];
  y[INDEX] = __hfma2(v, v, __hadd2_rn(v, __float2half2_rn(0.25f)));
}
extern "C" __global__ void half_to_float(const __half *x, float *y) {
  float sum = 0;
  for (int k = 0; k < 8; k++) sum += __half2float(x[8 * INDEX + k]);
  y[INDEX] = sum;
}
extern "C" __global__ void float_to_half(const float *x, __half *y) { y[INDEX] = __float2half_rn(x[INDEX] * 3.0f); }
extern "C" __global__ void bfloat_fma(const __nv_bfloat16 *x, __nv_bfloat16 *y) {
  __nv_bfloat16 v = x[INDEX];
  y[INDEX] = __hfma(v, v, v);
}
extern "C" __global__ void bfloat_pairs(const __nv_bfloat162 *x, __nv_bfloat162 *y) {
  __nv_bfloat162 v = x[INDEX];
  y[INDEX] = __hfma2(v, v, v);
}
extern "C" __global__ void bfloat_to_float(const __nv_bfloat16 *x, float *y) { y[INDEX] = 2.0f * __bfloat162float(x[INDEX]); }

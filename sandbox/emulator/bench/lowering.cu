// Source of the kernels whose lowering is timed: STEPS makes them as long as wanted.
extern "C" __global__ void steps(const float *x, const int *index, float *y, int n) {
  __shared__ float tile[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  unsigned mixed = i;
  float sum = 0;
  tile[t] = i < n ? x[i] : 0;
  __syncthreads();
#pragma unroll
  for (int step = 0; step < STEPS; step++) {
    float value = x[index[i + step * 32]];
    mixed = mixed * 1664525u + 1013904223u;
    if (value > step)
      sum = fmaf(value, tile[(t * 3 + step) & 255], sum);
    else
      sum += __uint2float_rn(mixed >> 8) / (value - 2.0f);
    if (step % 8 == 7) {
      __syncthreads();
      tile[t] = sum;
      __syncthreads();
    }
    y[i + step * n] = sum + tile[(t + step) & 255];
  }
}

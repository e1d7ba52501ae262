// Divergence, early exit, barriers, uneven warps.

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void odd_and_even(const int *x, int *y) {
  int i = INDEX, v = x[i];
  if (i % 2) {
    for (int k = 0; k < 8; k++) v = v * 3 + (v >> 1);
  } else {
    for (int k = 0; k < 8; k++) v = v * 5 - (v >> 2);
  }
  y[i] = v;
}
extern "C" __global__ void four_ways(const int *x, int *y) {
  int i = INDEX, v = x[i];
  switch (threadIdx.x % 4) {
    case 0: for (int k = 0; k < 6; k++) v = v * 3 ^ (v >> 3); break;
    case 1: for (int k = 0; k < 7; k++) v = v * 5 ^ (v >> 4); break;
    case 2: for (int k = 0; k < 8; k++) v = v * 7 ^ (v >> 5); break;
    default: for (int k = 0; k < 9; k++) v = v * 9 ^ (v >> 6);
  }
  y[i] = v;
}
extern "C" __global__ void by_warp(const int *x, int *y) {
  int i = INDEX, v = x[i];
  if (threadIdx.x / 32 % 2) {
    for (int k = 0; k < 8; k++) v = v * 3 ^ (v >> 1);
  } else {
    for (int k = 0; k < 8; k++) v = v * 5 ^ (v >> 2);
  }
  y[i] = v;
}
extern "C" __global__ void nested(const int *x, int *y) {
  int i = INDEX, v = x[i];
  if (threadIdx.x & 1) {
    v = v * 3 ^ (v >> 1);
    if (threadIdx.x & 2) {
      for (int k = 0; k < 5; k++) v = v * 5 ^ (v >> 2);
      if (threadIdx.x & 4)
        for (int k = 0; k < 5; k++) v = v * 7 ^ (v >> 3);
    }
  }
  y[i] = v;
}
extern "C" __global__ void uneven_lanes(const int *rounds, unsigned *y) {
  int i = INDEX;
  unsigned v = i;
  for (int k = 0; k < rounds[i]; k++) v = v * 1664525u + 1013904223u;
  y[i] = v;
}
extern "C" __global__ void collatz(const int *x, int *y) {
  int i = INDEX, steps = 0;
  for (int v = x[i]; v != 1; steps++) v = v % 2 ? 3 * v + 1 : v / 2;
  y[i] = steps;
}
extern "C" __global__ void early_exit(const int *x, int *y, int last) {
  int i = INDEX;
  if (threadIdx.x % 32 >= last) return;
  int v = x[i];
  for (int k = 0; k < 10; k++) v = v * 3 ^ (v >> 7);
  y[i] = v;
}
extern "C" __global__ void search(const int *x, const int *wanted, int *y, int n) {
  int i = INDEX, found = -1;
  for (int k = 0; k < n; k++)
    if (x[k] == wanted[i]) {
      found = k;
      break;
    }
  y[i] = found;
}
extern "C" __global__ void selected(const float *x, float *y) {
  int i = INDEX;
  float v = x[i];
  y[i] = v > 0 ? v : -2.0f * v;
}
extern "C" __global__ void uneven_warps(const int *x, int *y) {
  int i = INDEX, v = x[i];
  for (int k = 0; k < 4 * (threadIdx.x / 32); k++) v = v * 3 ^ (v >> 7);
  y[i] = v;
}
extern "C" __global__ void barriers(const int *x, int *y) {
  __shared__ int tile[128];
  int t = threadIdx.x, v = x[INDEX];
  for (int k = 0; k < 8; k++) {
    tile[t] = v;
    __syncthreads();
    v += tile[(t + 1 + k) % 128];
    __syncthreads();
  }
  y[INDEX] = v;
}
extern "C" __global__ void barrier_votes(const int *x, int *y) {
  int v = x[INDEX];
  y[INDEX] = __syncthreads_count(v > 0) + 1000 * __syncthreads_or(v > 90);
}

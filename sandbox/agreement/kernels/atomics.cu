// Atomics, reductions, shuffles, votes.

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void atomic_spread(const int *x, int *y) { atomicAdd(y + INDEX, x[INDEX]); }
extern "C" __global__ void atomic_one_address(const int *x, int *y) { atomicAdd(y, x[INDEX] % 2 ? 3 : 5); }
extern "C" __global__ void atomic_by_index(const int *x, int *y) { atomicAdd(y + x[INDEX], 1); }
extern "C" __global__ void atomic_tickets(int *counter, int *y) { y[atomicAdd(counter + blockIdx.x % 2, 1) * 2 + blockIdx.x % 2] = 1; }
extern "C" __global__ void atomic_extremes(const int *x, int *y) {
  atomicMax(y + 0, x[INDEX]);
  atomicMin(y + 1, x[INDEX]);
}
extern "C" __global__ void atomic_bits(const int *x, unsigned *y) {
  int i = INDEX;
  atomicOr(y + x[i] / 32, 1u << x[i] % 32);
  atomicXor(y + 8 + i % 4, 1u << i % 32);
}
extern "C" __global__ void atomic_compare(int *y) {
  int *mine = y + INDEX % 8, seen = *(volatile int *)mine, before;
  do {
    before = seen;
    seen = atomicCAS(mine, before, before + 3);
  } while (seen != before);
}
extern "C" __global__ void atomic_floats(const float *x, float *y) { atomicAdd(y + INDEX % 4, x[INDEX]); }
extern "C" __global__ void histogram_shared(const unsigned char *x, int *bins, int n) {
  __shared__ int mine[256];
  mine[threadIdx.x] = 0;
  __syncthreads();
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) atomicAdd(mine + x[i], 1);
  __syncthreads();
  atomicAdd(bins + threadIdx.x, mine[threadIdx.x]);
}
extern "C" __global__ void atomic_shared_one(const int *x, int *y) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  int before = atomicAdd(&sum, x[INDEX]);
  if (before < 0) y[gridDim.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

extern "C" __global__ void reduce_tree(const float *x, float *y) {
  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = x[INDEX];
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) tile[t] += tile[t + half];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = tile[0];
}
extern "C" __global__ void reduce_interleaved(const float *x, float *y) {
  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = x[INDEX];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    if (t % (2 * step) == 0) tile[t] += tile[t + step];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = tile[0];
}
extern "C" __global__ void reduce_shuffle(const float *x, float *y) {
  __shared__ float sums[8];
  float v = x[INDEX];
  for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(~0u, v, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < 8 ? sums[threadIdx.x] : 0.0f;
    for (int step = 4; step > 0; step /= 2) v += __shfl_down_sync(~0u, v, step);
    if (threadIdx.x == 0) y[blockIdx.x] = v;
  }
}
extern "C" __global__ void scan_shuffle(const int *x, int *y) {
  int v = x[INDEX], lane = threadIdx.x % 32;
  for (int step = 1; step < 32; step *= 2) {
    int other = __shfl_up_sync(~0u, v, step);
    if (lane >= step) v += other;
  }
  y[INDEX] = v;
}
extern "C" __global__ void butterfly(const float *x, float *y) {
  float v = x[INDEX];
  for (int step = 1; step < 32; step *= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, step));
  y[INDEX] = v;
}
extern "C" __global__ void shuffle_index(const int *x, const int *index, int *y) {
  int v = x[INDEX];
  int from = index[INDEX];
  y[INDEX] = __shfl_sync(~0u, v, from) + __shfl_sync(~0u, v, from, 8);
}
extern "C" __global__ void votes(const int *x, unsigned *y) {
  int v = x[INDEX];
  unsigned above = __ballot_sync(~0u, v > 50);
  y[INDEX] = above + __popc(above) + (__any_sync(~0u, v == 7) ? 1000 : 0) + (__all_sync(~0u, v >= 0) ? 5000 : 0);
}
extern "C" __global__ void matches(const int *x, unsigned *y) { y[INDEX] = __match_any_sync(~0u, x[INDEX]); }
extern "C" __global__ void warp_sums(const int *x, int *y) {
  int v = x[INDEX];
  y[INDEX] = __reduce_add_sync(~0u, v) ^ __reduce_max_sync(~0u, v);
}

// Shared memory: conflicts of each width, padding, swizzle, broadcast.

extern __shared__ __align__(16) unsigned char dynamic[];

// Each thread stores one element `stride` elements from its neighbour's, and reads the next thread's.
#define BANKS(name, T)                                                         \
  extern "C" __global__ void name(const T *x, T *y, int stride) {              \
    T *tile = reinterpret_cast<T *>(dynamic);                                  \
    int t = threadIdx.x, next = (t + 1) % blockDim.x;                          \
    tile[t * stride] = x[t];                                                   \
    __syncthreads();                                                           \
    y[t] = tile[next * stride];                                                \
  }
BANKS(banks_1_byte, unsigned char)
BANKS(banks_2_bytes, unsigned short)
BANKS(banks_4_bytes, unsigned)
BANKS(banks_8_bytes, uint2)
BANKS(banks_16_bytes, uint4)

extern "C" __global__ void banks_broadcast(const float *x, float *y, int lanes) {
  __shared__ float tile[128];
  int t = threadIdx.x;
  tile[t] = x[t];
  __syncthreads();
  y[t] = tile[t / lanes];
}
extern "C" __global__ void banks_random(const float *x, const int *index, float *y) {
  __shared__ float tile[1024];
  for (int k = threadIdx.x; k < 1024; k += blockDim.x) tile[k] = x[k];
  __syncthreads();
  for (int k = threadIdx.x; k < 1024; k += blockDim.x) y[k] = tile[index[k]];
}
extern "C" __global__ void transpose_conflicts(const float *x, float *y, int n) {
  __shared__ float tile[32][32];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32;
  for (int k = threadIdx.y; k < 32; k += 8) tile[k][threadIdx.x] = x[(row + k) * n + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32;
  for (int k = threadIdx.y; k < 32; k += 8) y[(row + k) * n + column] = tile[threadIdx.x][k];
}
extern "C" __global__ void transpose_padded(const float *x, float *y, int n) {
  __shared__ float tile[32][33];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32;
  for (int k = threadIdx.y; k < 32; k += 8) tile[k][threadIdx.x] = x[(row + k) * n + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32;
  for (int k = threadIdx.y; k < 32; k += 8) y[(row + k) * n + column] = tile[threadIdx.x][k];
}
extern "C" __global__ void transpose_swizzled(const float *x, float *y, int n) {
  __shared__ float tile[32][32];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32;
  for (int k = threadIdx.y; k < 32; k += 8) tile[k][threadIdx.x ^ k] = x[(row + k) * n + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32;
  for (int k = threadIdx.y; k < 32; k += 8) y[(row + k) * n + column] = tile[threadIdx.x][k ^ threadIdx.x];
}
// Few blocks fit on a multiprocessor: what a block asks for decides.
extern "C" __global__ void much_shared(const float *x, float *y) {
  float *tile = reinterpret_cast<float *>(dynamic);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x * 64] = x[i];
  __syncthreads();
  y[i] = tile[(blockDim.x - 1 - threadIdx.x) * 64];
}
extern "C" __global__ void stencil_shared(const float *x, float *y, int n) {
  __shared__ float tile[128 + 2];
  int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + 1;
  tile[t] = i < n ? x[i] : 0.0f;
  if (threadIdx.x == 0) tile[0] = i > 0 ? x[i - 1] : 0.0f;
  if (threadIdx.x == blockDim.x - 1) tile[t + 1] = i + 1 < n ? x[i + 1] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = 0.25f * tile[t - 1] + 0.5f * tile[t] + 0.25f * tile[t + 1];
}

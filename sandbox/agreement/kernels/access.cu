// How lanes of a warp meet global, constant and local memory.

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void copy_coalesced(const float *x, float *y, int n) {
  int i = INDEX;
  if (i < n) y[i] = x[i];
}
extern "C" __global__ void load_strided(const float *x, float *y, int stride) {
  int i = INDEX;
  y[i] = x[i * stride];
}
extern "C" __global__ void store_strided(const float *x, float *y, int stride) {
  int i = INDEX;
  y[i * stride] = x[i];
}
extern "C" __global__ void load_misaligned(const float *x, float *y, int shift) {
  int i = INDEX;
  y[i] = x[i + shift];
}
extern "C" __global__ void store_misaligned(const float *x, float *y, int shift) {
  int i = INDEX;
  y[i + shift] = x[i];
}
extern "C" __global__ void copy_reversed(const float *x, float *y, int n) {
  int i = INDEX;
  y[n - 1 - i] = x[i];
}
extern "C" __global__ void gather(const float *x, const int *index, float *y) {
  int i = INDEX;
  y[i] = x[index[i]];
}
extern "C" __global__ void scatter(const float *x, const int *index, float *y) {
  int i = INDEX;
  y[index[i]] = x[i];
}
extern "C" __global__ void gather_bytes(const unsigned char *x, const int *index, unsigned char *y) {
  int i = INDEX;
  y[i] = x[index[i]];
}
extern "C" __global__ void broadcast(const float *x, float *y) { y[INDEX] = x[blockIdx.x]; }
extern "C" __global__ void broadcast_groups(const float *x, float *y, int lanes) {
  int i = INDEX;
  y[i] = x[i / lanes];
}
struct Point {
  float x, y, z, w;
};
extern "C" __global__ void structs_in_array(const Point *p, float *y) {
  int i = INDEX;
  y[i] = p[i].x + p[i].z;
}
extern "C" __global__ void copy_bytes(const unsigned char *x, unsigned char *y) {
  int i = INDEX;
  y[i] = x[i];
}
extern "C" __global__ void copy_shorts(const short *x, short *y) {
  int i = INDEX;
  y[i] = x[i];
}
extern "C" __global__ void copy_doubles(const double *x, double *y) {
  int i = INDEX;
  y[i] = x[i];
}
extern "C" __global__ void copy_vectors2(const float2 *x, float2 *y) {
  int i = INDEX;
  y[i] = x[i];
}
extern "C" __global__ void copy_vectors4(const float4 *x, float4 *y) {
  int i = INDEX;
  y[i] = x[i];
}
extern "C" __global__ void load_vectors4_strided(const float4 *x, float4 *y, int stride) {
  int i = INDEX;
  y[i] = x[i * stride];
}
extern "C" __global__ void transpose_naive(const float *x, float *y, int n) {
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  y[column * n + row] = x[row * n + column];
}
extern "C" __global__ void grid_stride(const float *x, float *y, int n) {
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) y[i] = 2.0f * x[i];
}
extern "C" __global__ void every_other_lane(const float *x, float *y) {
  int i = INDEX;
  if (i % 2 == 0) y[i] = x[i];
}
extern "C" __global__ void read_only(const float *__restrict__ x, float *__restrict__ y) {
  int i = INDEX;
  y[i] = __ldg(x + i) + __ldg(x + (i ^ 1));
}
extern "C" __global__ void volatile_copy(const volatile float *x, volatile float *y) {
  int i = INDEX;
  y[i] = x[i];
}
extern "C" __global__ void rectangle(const float *x, float *y, int width, int height) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column < width && row < height) y[row * width + column] = x[row * width + column];
}

__constant__ float coefficients[32] = {0.5f,  0.25f, -0.5f, 0.125f, 1.0f,   -1.0f, 0.75f, 0.0625f,
                                       -0.5f, 0.5f,  0.25f, -0.25f, 0.375f, 0.0f,  1.0f,  -0.125f,
                                       0.5f,  0.25f, -0.5f, 0.125f, 1.0f,   -1.0f, 0.75f, 0.0625f,
                                       -0.5f, 0.5f,  0.25f, -0.25f, 0.375f, 0.0f,  1.0f,  -0.125f};

extern "C" __global__ void constant_uniform(const float *x, float *y) {
  int i = INDEX;
  float sum = 0;
  for (int k = 0; k < 16; k++) sum = sum * x[i] + coefficients[k];
  y[i] = sum;
}
extern "C" __global__ void constant_by_lane(const float *x, float *y) {
  int i = INDEX;
  y[i] = x[i] + coefficients[threadIdx.x % 32];
}
extern "C" __global__ void local_array(const int *index, int *y) {
  int i = INDEX;
  int mine[16];
  for (int k = 0; k < 16; k++) mine[k] = i * k;
  int sum = 0;
  for (int k = 0; k < 4; k++) {
    int at = (index[i] + k) % 16;
    sum += mine[at];
    mine[at] = sum;
  }
  y[i] = sum;
}
// 64 values live at a time with 32 registers to keep them in.
extern "C" __global__ void __launch_bounds__(1024, 2) spills(const int *x, int *y, int rounds) {
  int i = INDEX;
  int a[64];
#pragma unroll
  for (int k = 0; k < 64; k++) a[k] = x[i] + k * k;
  for (int round = 0; round < rounds; round++) {
#pragma unroll
    for (int k = 0; k < 64; k++) a[k] = a[k] * 3 + a[(k + 17) % 64];
  }
  int sum = 0;
#pragma unroll
  for (int k = 0; k < 64; k++) sum ^= a[k];
  y[i] = sum;
}

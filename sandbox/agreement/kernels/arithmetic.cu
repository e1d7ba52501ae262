// Floating point, integers, stencils, matrix products on the ordinary pipes.

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void saxpy(const float *x, float *y, float a, int n) {
  int i = INDEX;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void polynomial(const float *x, float *y) {
  float v = x[INDEX], sum = 0.5f;
  for (int k = 0; k < 12; k++) sum = sum * v + 0.25f;
  y[INDEX] = sum;
}
extern "C" __global__ void explicit_fma(const float *x, const float *w, float *y) {
  float sum = 0;
  for (int k = 0; k < 16; k++) sum = fmaf(x[INDEX], w[k], sum);
  y[INDEX] = sum;
}
extern "C" __global__ void adds_and_products(const float *x, float *y) {
  float v = x[INDEX];
  y[INDEX] = __fadd_rn(__fmul_rn(v, v), __fmul_rn(0.5f, __fadd_rn(v, 1.0f)));
}
extern "C" __global__ void doubles(const double *x, double *y) {
  double v = x[INDEX], sum = 0.5;
  for (int k = 0; k < 8; k++) sum = sum * v + 0.25;
  y[INDEX] = sum;
}
extern "C" __global__ void divide(const float *x, float *y) { y[INDEX] = 1.0f / (x[INDEX] + 2.0f); }
extern "C" __global__ void root(const float *x, float *y) { y[INDEX] = sqrtf(x[INDEX] + 2.0f); }
extern "C" __global__ void divide_doubles(const double *x, double *y) { y[INDEX] = x[INDEX] / (x[INDEX] + 3.0); }
extern "C" __global__ void transcendental(const float *x, float *y) { y[INDEX] = expf(x[INDEX]) + sinf(x[INDEX]); }
extern "C" __global__ void approximate(const float *x, float *y) {
  y[INDEX] = __expf(x[INDEX]) + __fdividef(1.0f, x[INDEX] + 2.0f) + rsqrtf(x[INDEX] + 2.0f);
}
extern "C" __global__ void integers(const unsigned *x, unsigned *y) {
  unsigned v = x[INDEX];
  for (int k = 0; k < 4; k++) v = (v ^ (v >> 15)) * 2246822519u + __umulhi(v, 3266489917u);
  y[INDEX] = v;
}
extern "C" __global__ void integer_division(const int *x, int *y, int d) { y[INDEX] = x[INDEX] / d + 100 * (x[INDEX] % d); }
extern "C" __global__ void conversions(const float *x, float *y) {
  float v = 100.0f * x[INDEX];
  y[INDEX] = static_cast<float>(static_cast<int>(v)) + static_cast<float>(static_cast<unsigned char>(fabsf(v)));
}

extern "C" __global__ void stencil_line(const float *x, float *y, int n) {
  int i = INDEX;
  if (i > 0 && i < n - 1) y[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
  else if (i < n) y[i] = x[i];
}
extern "C" __global__ void stencil_plane(const float *x, float *y, int width, int height) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  int i = row * width + column;
  bool inside = column > 0 && row > 0 && column < width - 1 && row < height - 1;
  y[i] = inside ? 0.5f * x[i] + 0.125f * (x[i - 1] + x[i + 1] + x[i - width] + x[i + width]) : x[i];
}

extern "C" __global__ void product_naive(const float *a, const float *b, float *c, int m, int n, int k) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= n || row >= m) return;
  float sum = 0;
  for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}
extern "C" __global__ void product_tiled(const float *a, const float *b, float *c, int n) {
  __shared__ float left[16][16], right[16][16];
  int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (int start = 0; start < n; start += 16) {
    left[y][x] = a[row * n + start + x];
    right[y][x] = b[(start + y) * n + column];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
// A row for each warp.
extern "C" __global__ void matrix_vector(const float *a, const float *x, float *y, int m, int n) {
  int row = INDEX / 32, lane = threadIdx.x % 32;
  if (row >= m) return;
  float sum = 0;
  for (int i = lane; i < n; i += 32) sum += a[row * n + i] * x[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (lane == 0) y[row] = sum;
}
// Each thread makes a square of four results, in registers.
extern "C" __global__ void product_registers(const float *a, const float *b, float *c, int n) {
  int column = 2 * (blockIdx.x * blockDim.x + threadIdx.x), row = 2 * (blockIdx.y * blockDim.y + threadIdx.y);
  float s00 = 0, s01 = 0, s10 = 0, s11 = 0;
  for (int i = 0; i < n; i++) {
    float a0 = a[row * n + i], a1 = a[(row + 1) * n + i];
    float2 both = *reinterpret_cast<const float2 *>(b + i * n + column);
    s00 += a0 * both.x, s01 += a0 * both.y, s10 += a1 * both.x, s11 += a1 * both.y;
  }
  *reinterpret_cast<float2 *>(c + row * n + column) = make_float2(s00, s01);
  *reinterpret_cast<float2 *>(c + (row + 1) * n + column) = make_float2(s10, s11);
}

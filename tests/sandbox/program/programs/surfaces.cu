// Textures and surfaces against the same worked out on the host.
#include <cmath>
#include <vector>
#include "check.h"

template <class T> using Fetch = T (*)(cudaTextureObject_t, float, float, float);

__global__ void linear_memory(cudaTextureObject_t texture, int n, float4 *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<float4>(texture, i - 2);
}
__global__ void plane(cudaTextureObject_t texture, int n, const float2 *places, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2D<float>(texture, places[i].x, places[i].y);
}
__global__ void line(cudaTextureObject_t texture, int n, const float2 *places, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1D<float>(texture, places[i].x) + tex1DLod<float>(texture, places[i].x, 0.5f);
}
__global__ void volume(cudaTextureObject_t texture, int n, const float2 *places, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex3D<float>(texture, places[i].x, places[i].y, places[i].x * 0.5f);
}
__global__ void layers(cudaTextureObject_t texture, float *out) {
  out[threadIdx.x] = tex2DLayered<float>(texture, threadIdx.x % 4 + 0.5f, threadIdx.x / 4 % 4 + 0.5f, threadIdx.x / 16);
}
__global__ void colours(cudaTextureObject_t integers, cudaTextureObject_t normalized, uchar4 *out, float4 *unit, float4 *corners) {
  int x = threadIdx.x, y = threadIdx.y, i = y * blockDim.x + x;
  out[i] = tex2D<uchar4>(integers, x + 0.5f, y + 0.5f);
  unit[i] = tex2D<float4>(normalized, x + 0.5f, y + 0.5f);
  corners[i] = tex2Dgather<float4>(normalized, x + 1.0f, y + 1.0f, 2);
}
__global__ void copy_surface(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  float2 value = surf2Dread<float2>(from, x * 8, y, cudaBoundaryModeZero);
  surf2Dwrite(make_float2(value.y, value.x + (x >= width)), to, x * 8, y, cudaBoundaryModeZero);
}
__global__ void outside(cudaSurfaceObject_t surface) { surf2Dwrite(1.0f, surface, (int)threadIdx.x * 4, 7); }

// The host's own: one axis of a lookup as (place, weight) pairs.
struct Tap { int at; float weight; };

static int wrapped(int i, int n, cudaTextureAddressMode mode) {
  if (i >= 0 && i < n) return i;
  if (mode == cudaAddressModeBorder) return -1;
  if (mode == cudaAddressModeClamp) return i < 0 ? 0 : n - 1;
  if (mode == cudaAddressModeWrap) return ((i % n) + n) % n;
  int twice = ((i % (2 * n)) + 2 * n) % (2 * n);
  return twice < n ? twice : 2 * n - 1 - twice;
}

static std::vector<Tap> taps(float x, int n, const cudaTextureDesc &how, int axis) {
  if (how.normalizedCoords) x *= n;
  if (how.filterMode == cudaFilterModePoint) return {{wrapped((int)std::floor(x), n, how.addressMode[axis]), 1.0f}};
  x -= 0.5f;
  int low = (int)std::floor(x);
  float a = std::nearbyint((x - low) * 256.0f) / 256.0f;
  return {{wrapped(low, n, how.addressMode[axis]), 1 - a}, {wrapped(low + 1, n, how.addressMode[axis]), a}};
}

static float sample(const std::vector<float> &texels, int w, int h, int d, float x, float y, float z, const cudaTextureDesc &how) {
  std::vector<Tap> one = {{0, 1.0f}};
  float sum = 0;
  for (Tap c : d ? taps(z, d, how, 2) : one)
    for (Tap b : h ? taps(y, h, how, 1) : one)
      for (Tap a : taps(x, w, how, 0)) {
        bool border = a.at < 0 || b.at < 0 || c.at < 0;
        sum += a.weight * b.weight * c.weight * (border ? how.borderColor[0] : texels[(c.at * (h ? h : 1) + b.at) * w + a.at]);
      }
  return sum;
}

template <class T> T *upload(const std::vector<T> &values) {
  T *device;
  OK(cudaMalloc(&device, values.size() * sizeof(T)));
  OK(cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}
template <class T> std::vector<T> download(const T *device, size_t count) {
  std::vector<T> values(count);
  OK(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

static std::vector<float> numbers(int n) {
  std::vector<float> values(n);
  for (int i = 0; i < n; i++) values[i] = (float)((i * 7919) % 1009) - 500;
  return values;
}

static void linear() {
  std::vector<float4> given(10);
  for (int i = 0; i < 10; i++) given[i] = make_float4(i, i + 0.25f, -i, 3);
  float4 *memory = upload(given), *out = upload(std::vector<float4>(16));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = memory;
  resource.res.linear.desc = cudaCreateChannelDesc<float4>();
  resource.res.linear.sizeInBytes = 10 * sizeof(float4);
  cudaTextureDesc how = {};
  cudaTextureObject_t texture;
  OK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  linear_memory<<<1, 32>>>(texture, 16, out);
  auto got = download(out, 16);
  for (int i = 0; i < 16; i++) {
    bool inside = i >= 2 && i < 12;
    CHECK(got[i].x == (inside ? given[i - 2].x : 0) && got[i].y == (inside ? given[i - 2].y : 0));
    CHECK(got[i].z == (inside ? given[i - 2].z : 0) && got[i].w == (inside ? 3 : 0));
  }
  OK(cudaDestroyTextureObject(texture));
  OK(cudaFree(memory)); OK(cudaFree(out));
}

static void sampled(int w, int h, int d) {
  int count = w * (h ? h : 1) * (d ? d : 1), n = 300;
  auto texels = numbers(count);
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  OK(cudaMalloc3DArray(&array, &format, make_cudaExtent(w, h, d)));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(texels.data(), w * sizeof(float), w, h ? h : 1);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(w, h ? h : 1, d ? d : 1);
  copy.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&copy));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  for (int normalized = 0; normalized < 2; normalized++)
    for (int filter = 0; filter < 2; filter++)
      for (int mode = 0; mode < 4; mode++) {
        cudaTextureDesc how = {};
        how.normalizedCoords = normalized;
        how.filterMode = filter ? cudaFilterModeLinear : cudaFilterModePoint;
        how.readMode = cudaReadModeElementType;
        how.borderColor[0] = 77;
        if (!normalized && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror)) continue;
        for (auto &axis : how.addressMode) axis = (cudaTextureAddressMode)mode;
        std::vector<float2> places(n);
        for (int i = 0; i < n; i++) {
          places[i] = make_float2((i * 37 % 301) / 64.0f - 2, (i * 53 % 307) / 32.0f - 3);
          if (normalized) places[i] = make_float2(places[i].x / 2, places[i].y / 4);
        }
        float2 *where = upload(places);
        float *out = upload(std::vector<float>(n));
        cudaTextureObject_t texture;
        OK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
        if (d) volume<<<10, 32>>>(texture, n, where, out);
        else if (h) plane<<<10, 32>>>(texture, n, where, out);
        else line<<<10, 32>>>(texture, n, where, out);
        auto got = download(out, n);
        for (int i = 0; i < n; i++) {
          float want = sample(texels, w, h, d, places[i].x, places[i].y, places[i].x * 0.5f, how) * (h ? 1 : 2);
          CHECK(std::fabs(got[i] - want) <= 1e-3f);
        }
        OK(cudaDestroyTextureObject(texture));
        OK(cudaFree(where)); OK(cudaFree(out));
      }
  OK(cudaFreeArray(array));
}

static void layered() {
  auto texels = numbers(4 * 4 * 3);
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  OK(cudaMalloc3DArray(&array, &format, make_cudaExtent(4, 4, 3), cudaArrayLayered));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(texels.data(), 16, 4, 4);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(4, 4, 3);
  copy.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&copy));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how = {};
  cudaTextureObject_t texture;
  OK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  float *out = upload(std::vector<float>(48));
  layers<<<1, 48>>>(texture, out);
  CHECK(download(out, 48) == texels);
  OK(cudaDestroyTextureObject(texture));
  OK(cudaFreeArray(array)); OK(cudaFree(out));
}

static void bytes() {
  const int w = 16, h = 8;
  std::vector<uchar4> given(w * h);
  for (int i = 0; i < w * h; i++) given[i] = make_uchar4(i, 255 - i, i * 3 % 256, 255);
  uchar4 *memory;
  size_t pitch;
  OK(cudaMallocPitch(&memory, &pitch, w * sizeof(uchar4), h));
  OK(cudaMemcpy2D(memory, pitch, given.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = memory;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
  resource.res.pitch2D.width = w;
  resource.res.pitch2D.height = h;
  resource.res.pitch2D.pitchInBytes = pitch;
  cudaTextureDesc how = {};
  for (auto &axis : how.addressMode) axis = cudaAddressModeClamp;
  cudaTextureObject_t integers, normalized;
  OK(cudaCreateTextureObject(&integers, &resource, &how, nullptr));
  how.readMode = cudaReadModeNormalizedFloat;
  OK(cudaCreateTextureObject(&normalized, &resource, &how, nullptr));
  uchar4 *out = upload(given);
  float4 *unit = upload(std::vector<float4>(w * h)), *corners = upload(std::vector<float4>(w * h));
  OK(cudaMemset(out, 0, w * h * 4));
  colours<<<1, dim3(w, h)>>>(integers, normalized, out, unit, corners);
  auto same = download(out, w * h);
  auto floats = download(unit, w * h), gathered = download(corners, w * h);
  auto third = [&](int x, int y) { return given[(y < h ? y : h - 1) * w + (x < w ? x : w - 1)].z / 255.0f; };
  for (int y = 0, i = 0; y < h; y++)
    for (int x = 0; x < w; x++, i++) {
      CHECK(same[i].x == given[i].x && same[i].y == given[i].y && same[i].z == given[i].z && same[i].w == 255);
      CHECK(floats[i].x == given[i].x / 255.0f && floats[i].w == 1);
      CHECK(gathered[i].x == third(x, y + 1) && gathered[i].y == third(x + 1, y + 1));
      CHECK(gathered[i].z == third(x + 1, y) && gathered[i].w == third(x, y));
    }
  OK(cudaDestroyTextureObject(integers)); OK(cudaDestroyTextureObject(normalized));
  OK(cudaFree(memory)); OK(cudaFree(out)); OK(cudaFree(unit)); OK(cudaFree(corners));
}

static void surfaces(bool out_of_bounds) {
  const int w = 20, h = 8;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float2>();
  cudaArray_t from, to;
  OK(cudaMallocArray(&from, &format, w, h, cudaArraySurfaceLoadStore));
  OK(cudaMallocArray(&to, &format, w, h, cudaArraySurfaceLoadStore));
  auto given = numbers(2 * w * h);
  OK(cudaMemcpy2DToArray(from, 0, 0, given.data(), w * 8, w * 8, h, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  cudaSurfaceObject_t a, b;
  resource.res.array.array = from;
  OK(cudaCreateSurfaceObject(&a, &resource));
  resource.res.array.array = to;
  OK(cudaCreateSurfaceObject(&b, &resource));
  if (out_of_bounds) {
    outside<<<1, 64>>>(b);
    std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    return;
  }
  copy_surface<<<dim3(2, 1), dim3(16, 8)>>>(a, b, w, h);
  std::vector<float> got(2 * w * h);
  OK(cudaMemcpy2DFromArray(got.data(), w * 8, to, 0, 0, w * 8, h, cudaMemcpyDeviceToHost));
  for (int i = 0; i < w * h; i++) CHECK(got[2 * i] == given[2 * i + 1] && got[2 * i + 1] == given[2 * i]);
  OK(cudaDestroySurfaceObject(a)); OK(cudaDestroySurfaceObject(b));
  OK(cudaFreeArray(from)); OK(cudaFreeArray(to));
}

int main(int argc, char **) {
  if (argc > 1) return surfaces(true), 0;
  linear();
  sampled(13, 0, 0);
  sampled(9, 11, 0);
  sampled(7, 5, 6);
  layered();
  bytes();
  surfaces(false);
}

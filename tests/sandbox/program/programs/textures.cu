// Texture and surface objects over arrays and linear memory, as the runtime makes them.
#include "check.h"

__global__ void fetch(cudaTextureObject_t image, cudaTextureObject_t line, cudaSurfaceObject_t to, float *out, int w, int h) {
    int x = threadIdx.x, y = threadIdx.y;
    float v = tex2D<float>(image, x + 0.5f, y + 0.5f);
    out[y * w + x] = v + tex1Dfetch<float>(line, x);
    surf2Dwrite(v * 2, to, x * 4, y);
}

int main() {
    const int w = 16, h = 8;
    float in[h][w], out[h][w], twice[h][w], *dout, *dline;
    for (int i = 0; i < w * h; i++) in[i / w][i % w] = i;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array, target;
    OK(cudaMallocArray(&array, &format, w, h));
    OK(cudaMallocArray(&target, &format, w, h, cudaArraySurfaceLoadStore));
    OK(cudaMemcpy2DToArray(array, 0, 0, in, sizeof in[0], sizeof in[0], h, cudaMemcpyHostToDevice));
    OK(cudaMalloc(&dout, sizeof out));
    OK(cudaMalloc(&dline, sizeof in[0]));
    OK(cudaMemcpy(dline, in, sizeof in[0], cudaMemcpyHostToDevice));
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = array;
    cudaTextureDesc t = {};
    t.readMode = cudaReadModeElementType;
    t.filterMode = cudaFilterModePoint;
    t.addressMode[0] = t.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t image, line;
    cudaSurfaceObject_t surface;
    OK(cudaCreateTextureObject(&image, &r, &t, nullptr));
    r.res.array.array = target;
    OK(cudaCreateSurfaceObject(&surface, &r));
    r = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = dline;
    r.res.linear.desc = format;
    r.res.linear.sizeInBytes = sizeof in[0];
    OK(cudaCreateTextureObject(&line, &r, &t, nullptr));
    fetch<<<1, dim3(w, h)>>>(image, line, surface, dout, w, h);
    OK(cudaGetLastError());
    OK(cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy2DFromArray(twice, sizeof in[0], target, 0, 0, sizeof in[0], h, cudaMemcpyDeviceToHost));
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) CHECK(out[y][x] == in[y][x] + x && twice[y][x] == 2 * in[y][x]);
    OK(cudaDestroyTextureObject(image));
    OK(cudaDestroyTextureObject(line));
    OK(cudaDestroySurfaceObject(surface));
    OK(cudaFreeArray(array));
    OK(cudaFreeArray(target));
    OK(cudaFree(dout));
    OK(cudaFree(dline));
    return 0;
}

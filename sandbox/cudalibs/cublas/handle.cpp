// Handles and their settings, names of statuses, copies between host and device.
#include <mutex>
#include <set>
#include <string>

#include "cublas.h"

extern "C" {
cudaError_t cudaMemcpy2DAsync(void *, size_t, const void *, size_t, size_t, size_t, cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaFree(void *);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *, const void *);
}

namespace {

constexpr int kVersion = 130000;

struct Handles {
    std::mutex mutex;
    std::set<const Handle *> all;
};

Handles &handles() {
    static auto *kept = new Handles;
    return *kept;
}

struct Named {
    int status;
    const char *name, *text;
};

constexpr Named kNames[] = {
    {0, "CUBLAS_STATUS_SUCCESS", "success"},
    {1, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {3, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {7, "CUBLAS_STATUS_INVALID_VALUE", "an invalid value was used as an argument"},
    {8, "CUBLAS_STATUS_ARCH_MISMATCH", "an absent device architectural feature is required"},
    {11, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    {13, "CUBLAS_STATUS_EXECUTION_FAILED", "the GPU program failed to execute"},
    {14, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {15, "CUBLAS_STATUS_NOT_SUPPORTED", "the functionality is not supported"},
    {16, "CUBLAS_STATUS_LICENSE_ERROR", "the requested functionality requires a license"},
};

const Named *find(int status) {
    auto found = std::find_if(std::begin(kNames), std::end(kNames), [&](auto &one) { return one.status == status; });
    return found == std::end(kNames) ? nullptr : found;
}

template <class Change>
Status with(Handle *handle, Change change) {
    if (!known(handle)) return kNotInitialized;
    change(*handle);
    return kSuccess;
}

// A copy of elements that lie `step` elements apart, or of the columns of a matrix.
Status copy(void *to, int64_t to_step, const void *from, int64_t from_step, size_t bytes, int64_t count, size_t element,
            cudaMemcpyKind kind, cudaStream_t stream, bool waits) {
    if (!count || !bytes) return kSuccess;
    auto width = [&](int64_t step) { return static_cast<size_t>(step) * element; };
    bool dense = width(to_step) == bytes && width(from_step) == bytes;
    cudaError_t error = dense ? cudaMemcpyAsync(to, from, bytes * static_cast<size_t>(count), kind, stream)
                              : cudaMemcpy2DAsync(to, width(to_step), from, width(from_step), bytes,
                                                  static_cast<size_t>(count), kind, stream);
    if (!error && waits) error = cudaStreamSynchronize(stream);
    return error ? kMappingError : kSuccess;
}

Status copy_vector(int count, int element, const void *from, int from_step, void *to, int to_step, cudaMemcpyKind kind,
                   cudaStream_t stream, bool waits) {
    if (count < 0 || element <= 0 || from_step <= 0 || to_step <= 0) return kInvalidValue;
    auto bytes = static_cast<size_t>(element);
    return copy(to, to_step, from, from_step, bytes, count, bytes, kind, stream, waits);
}

Status copy_matrix(int rows, int columns, int element, const void *from, int from_leading, void *to, int to_leading,
                   cudaMemcpyKind kind, cudaStream_t stream, bool waits) {
    if (rows < 0 || columns < 0 || element <= 0 || from_leading < rows || to_leading < rows) return kInvalidValue;
    auto bytes = static_cast<size_t>(element);
    return copy(to, to_leading, from, from_leading, static_cast<size_t>(rows) * bytes, columns, bytes, kind, stream, waits);
}

}  // namespace

bool known(const Handle *handle) {
    std::lock_guard lock(handles().mutex);
    return handles().all.count(handle);
}

Status status_of(cudaError_t error) {
    switch (error) {
    case cudaSuccess:
        return kSuccess;
    case cudaErrorInitializationError:
        return kNotInitialized;
    case cudaErrorMemoryAllocation:
        return kAllocationFailed;
    case cudaErrorNotSupported:
        return kNotSupported;
    default:
        return kExecutionFailed;
    }
}

bool on_host(const char *what, const void *at) {
    constexpr int kDeviceMemory = 2;
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, at) || attributes.type != kDeviceMemory) return true;
    std::string text = std::string("cuBLAS: ") + what + " lies in device memory, and the pointer mode is the host's";
    kernelwright_library_note(text.c_str());
    return false;
}

Status refuse(const char *call, const char *why) {
    kernelwright_library_refuses(call, why);
    return kNotSupported;
}

EXPORT int cublasCreate_v2(Handle **handle) {
    if (!handle) return kInvalidValue;
    if (cudaError_t error = cudaFree(nullptr)) return status_of(error);  // starts the runtime
    *handle = new Handle;
    std::lock_guard lock(handles().mutex);
    handles().all.insert(*handle);
    return kSuccess;
}

EXPORT int cublasDestroy_v2(Handle *handle) {
    std::lock_guard lock(handles().mutex);
    if (!handles().all.erase(handle)) return kNotInitialized;
    delete handle;
    return kSuccess;
}

EXPORT int cublasGetVersion_v2(Handle *, int *version) { return version ? *version = kVersion, kSuccess : kInvalidValue; }

EXPORT int cublasGetProperty(int which, int *value) {
    constexpr int parts[] = {kVersion / 10000, kVersion / 100 % 100, kVersion % 100};
    if (which < 0 || which > 2 || !value) return kInvalidValue;
    *value = parts[which];
    return kSuccess;
}

EXPORT size_t cublasGetCudartVersion() { return kVersion / 10; }

EXPORT const char *cublasGetStatusName(int status) { return find(status) ? find(status)->name : "unknown"; }
EXPORT const char *cublasGetStatusString(int status) { return find(status) ? find(status)->text : "unknown"; }

EXPORT int cublasSetStream_v2(Handle *handle, cudaStream_t stream) {
    return with(handle, [&](Handle &one) { one.stream = stream; });
}
EXPORT int cublasGetStream_v2(Handle *handle, cudaStream_t *stream) {
    return with(handle, [&](Handle &one) { *stream = one.stream; });
}
EXPORT int cublasSetPointerMode_v2(Handle *handle, int mode) {
    if (mode != 0 && mode != 1) return kInvalidValue;
    return with(handle, [&](Handle &one) { one.scalars_on_device = mode == 1; });
}
EXPORT int cublasGetPointerMode_v2(Handle *handle, int *mode) {
    return with(handle, [&](Handle &one) { *mode = one.scalars_on_device; });
}
EXPORT int cublasSetMathMode(Handle *handle, int mode) {  // products are exact to float in every mode
    return with(handle, [&](Handle &one) { one.math_mode = mode; });
}
EXPORT int cublasGetMathMode(Handle *handle, int *mode) {
    return with(handle, [&](Handle &one) { *mode = one.math_mode; });
}
EXPORT int cublasSetAtomicsMode(Handle *handle, int mode) {
    return with(handle, [&](Handle &one) { one.atomics_mode = mode; });
}
EXPORT int cublasGetAtomicsMode(Handle *handle, int *mode) {
    return with(handle, [&](Handle &one) { *mode = one.atomics_mode; });
}
EXPORT int cublasSetWorkspace_v2(Handle *handle, void *, size_t) {  // none is used
    return with(handle, [](Handle &) {});
}

EXPORT int cublasSetVector(int n, int element, const void *x, int incx, void *y, int incy) {
    return copy_vector(n, element, x, incx, y, incy, cudaMemcpyHostToDevice, nullptr, true);
}
EXPORT int cublasGetVector(int n, int element, const void *x, int incx, void *y, int incy) {
    return copy_vector(n, element, x, incx, y, incy, cudaMemcpyDeviceToHost, nullptr, true);
}
EXPORT int cublasSetVectorAsync(int n, int element, const void *x, int incx, void *y, int incy, cudaStream_t stream) {
    return copy_vector(n, element, x, incx, y, incy, cudaMemcpyHostToDevice, stream, false);
}
EXPORT int cublasGetVectorAsync(int n, int element, const void *x, int incx, void *y, int incy, cudaStream_t stream) {
    return copy_vector(n, element, x, incx, y, incy, cudaMemcpyDeviceToHost, stream, false);
}
EXPORT int cublasSetMatrix(int rows, int columns, int element, const void *a, int lda, void *b, int ldb) {
    return copy_matrix(rows, columns, element, a, lda, b, ldb, cudaMemcpyHostToDevice, nullptr, true);
}
EXPORT int cublasGetMatrix(int rows, int columns, int element, const void *a, int lda, void *b, int ldb) {
    return copy_matrix(rows, columns, element, a, lda, b, ldb, cudaMemcpyDeviceToHost, nullptr, true);
}
EXPORT int cublasSetMatrixAsync(int rows, int columns, int element, const void *a, int lda, void *b, int ldb,
                                cudaStream_t stream) {
    return copy_matrix(rows, columns, element, a, lda, b, ldb, cudaMemcpyHostToDevice, stream, false);
}
EXPORT int cublasGetMatrixAsync(int rows, int columns, int element, const void *a, int lda, void *b, int ldb,
                                cudaStream_t stream) {
    return copy_matrix(rows, columns, element, a, lda, b, ldb, cudaMemcpyDeviceToHost, stream, false);
}

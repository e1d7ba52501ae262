// cuFFT's calls. Names, numbers and meanings are those of NVIDIA's documentation.
#include <algorithm>
#include <mutex>
#include <string>

#include "plan.h"

namespace {

enum Result : int {
    kSuccess = 0,
    kInvalidPlan = 1,
    kAllocationFailed = 2,
    kInvalidType = 3,
    kInvalidValue = 4,
    kExecutionFailed = 6,
    kSetupFailed = 7,
    kInvalidSize = 8,
    kNotSupported = 16,
};

constexpr int kVersion = 12000;
constexpr int64_t kMostNumbers = int64_t{1} << 33;

struct Entry {
    std::shared_ptr<const Plan> plan;  // none: made by cufftCreate, and not filled yet
    cudaStream_t stream = nullptr;
};

struct Entries {
    std::mutex mutex;
    std::map<int, Entry> all;
    int last = 0;
};

Entries &entries() {
    static auto *kept = new Entries;
    return *kept;
}

template <class Change>
Result with(int handle, Change change) {
    std::lock_guard lock(entries().mutex);
    auto found = entries().all.find(handle);
    return found == entries().all.end() ? kInvalidPlan : change(found->second);
}

bool known_type(int type) {
    return type == kR2C || type == kC2R || type == kC2C || type == kD2Z || type == kZ2D || type == kZ2Z;
}

template <class Integer>
struct Given {
    const Integer *embed;
    Integer stride, distance;

    Layout layout(int rank) const {
        Layout made{{1, 1, 1}, stride, distance};
        for (int i = 0; i < rank; i++) made.embed[static_cast<size_t>(3 - rank + i)] = embed[i];
        return made;
    }
};

template <class Integer>
Result fill(int handle, int rank, const Integer *size, Given<Integer> input, Given<Integer> output, int type, Integer batch,
            size_t *work_bytes) {
    if (rank < 1 || rank > 3 || !size) return kInvalidValue;
    if (!known_type(type)) return kInvalidType;
    if (batch < 1) return kInvalidSize;
    auto plan = std::make_shared<Plan>();
    plan->type = static_cast<Type>(type);
    plan->batch = batch;
    int64_t numbers = batch;
    for (int i = 0; i < rank; i++) {
        plan->size[static_cast<size_t>(3 - rank + i)] = size[i];
        if (size[i] < 1 || __builtin_mul_overflow(numbers, int64_t{size[i]}, &numbers)) return kInvalidSize;
    }
    if (numbers > kMostNumbers) return kInvalidSize;
    plan->advanced = input.embed && output.embed;
    if (plan->advanced) {
        if (input.stride < 1 || output.stride < 1) return kInvalidValue;
        plan->input = input.layout(rank), plan->output = output.layout(rank);
    }
    try {
        plan->prepare();
    } catch (const std::bad_alloc &) {
        return kAllocationFailed;
    }
    if (work_bytes) *work_bytes = 0;  // none of the program's memory is used
    return with(handle, [&](Entry &entry) { return entry.plan = plan, kSuccess; });
}

template <class Integer>
Result fill(int handle, std::initializer_list<Integer> size, int type, Integer batch, size_t *work_bytes) {
    return fill<Integer>(handle, static_cast<int>(size.size()), size.begin(), {}, {}, type, batch, work_bytes);
}

extern "C" cudaError_t cudaFree(void *);

Result create(int *handle) {
    if (!handle) return kInvalidValue;
    if (cudaFree(nullptr)) return kSetupFailed;  // starts the runtime
    std::lock_guard lock(entries().mutex);
    *handle = ++entries().last;
    entries().all[*handle];
    return kSuccess;
}

template <class Fill>
Result create_filled(int *handle, Fill fill) {
    int made = 0;
    if (Result result = create(&made)) return result;
    if (Result result = fill(made)) {
        std::lock_guard lock(entries().mutex);
        entries().all.erase(made);
        return result;
    }
    return handle ? (*handle = made, kSuccess) : kInvalidValue;
}

Result execute(const char *call, int handle, Type type, const void *from, void *to, int direction) {
    Entry entry;
    if (Result result = with(handle, [&](Entry &one) { return entry = one, kSuccess; })) return result;
    if (!entry.plan || entry.plan->type != type) return kInvalidPlan;
    if (!from || !to || (direction != -1 && direction != 1)) return kInvalidValue;
    auto work = [=, plan = entry.plan](DeviceMemory &memory) {
        plan->run(memory, from, to, direction, kernelwright_library_threads());
    };
    switch (kernelwright_library_call(entry.stream, {call, work}, false)) {
    case cudaSuccess:
        return kSuccess;
    case cudaErrorMemoryAllocation:
        return kAllocationFailed;
    case cudaErrorNotSupported:
        return kNotSupported;
    default:
        return kExecutionFailed;
    }
}

}  // namespace

EXPORT int cufftCreate(int *handle) { return create(handle); }

EXPORT int cufftDestroy(int handle) {
    std::lock_guard lock(entries().mutex);
    return entries().all.erase(handle) ? kSuccess : kInvalidPlan;
}

EXPORT int cufftSetStream(int handle, cudaStream_t stream) {
    return with(handle, [&](Entry &entry) { return entry.stream = stream, kSuccess; });
}

EXPORT int cufftMakePlan1d(int handle, int n, int type, int batch, size_t *bytes) {
    return fill(handle, {n}, type, batch, bytes);
}
EXPORT int cufftMakePlan2d(int handle, int nx, int ny, int type, size_t *bytes) {
    return fill(handle, {nx, ny}, type, 1, bytes);
}
EXPORT int cufftMakePlan3d(int handle, int nx, int ny, int nz, int type, size_t *bytes) {
    return fill(handle, {nx, ny, nz}, type, 1, bytes);
}
EXPORT int cufftMakePlanMany(int handle, int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride,
                             int odist, int type, int batch, size_t *bytes) {
    return fill<int>(handle, rank, n, {inembed, istride, idist}, {onembed, ostride, odist}, type, batch, bytes);
}
EXPORT int cufftMakePlanMany64(int handle, int rank, long long *n, long long *inembed, long long istride, long long idist,
                               long long *onembed, long long ostride, long long odist, int type, long long batch,
                               size_t *bytes) {
    return fill<long long>(handle, rank, n, {inembed, istride, idist}, {onembed, ostride, odist}, type, batch, bytes);
}

EXPORT int cufftPlan1d(int *handle, int n, int type, int batch) {
    return create_filled(handle, [&](int made) { return fill(made, {n}, type, batch, nullptr); });
}
EXPORT int cufftPlan2d(int *handle, int nx, int ny, int type) {
    return create_filled(handle, [&](int made) { return fill(made, {nx, ny}, type, 1, nullptr); });
}
EXPORT int cufftPlan3d(int *handle, int nx, int ny, int nz, int type) {
    return create_filled(handle, [&](int made) { return fill(made, {nx, ny, nz}, type, 1, nullptr); });
}
EXPORT int cufftPlanMany(int *handle, int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride,
                         int odist, int type, int batch) {
    return create_filled(handle, [&](int made) {
        return fill<int>(made, rank, n, {inembed, istride, idist}, {onembed, ostride, odist}, type, batch, nullptr);
    });
}

EXPORT int cufftExecC2C(int handle, const void *from, void *to, int direction) {
    return execute("cufftExecC2C", handle, kC2C, from, to, direction);
}
EXPORT int cufftExecZ2Z(int handle, const void *from, void *to, int direction) {
    return execute("cufftExecZ2Z", handle, kZ2Z, from, to, direction);
}
EXPORT int cufftExecR2C(int handle, const void *from, void *to) { return execute("cufftExecR2C", handle, kR2C, from, to, -1); }
EXPORT int cufftExecD2Z(int handle, const void *from, void *to) { return execute("cufftExecD2Z", handle, kD2Z, from, to, -1); }
EXPORT int cufftExecC2R(int handle, const void *from, void *to) { return execute("cufftExecC2R", handle, kC2R, from, to, 1); }
EXPORT int cufftExecZ2D(int handle, const void *from, void *to) { return execute("cufftExecZ2D", handle, kZ2D, from, to, 1); }

// The same by the types of elements, cudaDataType: of what is read, written and computed in.
namespace {
int type_named(int from, int to, int compute) {
    enum { kR32F = 0, kR64F = 1, kC32F = 4, kC64F = 5 };
    if (compute == kC32F && from == kC32F) return to == kC32F ? kC2C : to == kR32F ? kC2R : 0;
    if (compute == kC32F && from == kR32F) return to == kC32F ? kR2C : 0;
    if (compute == kC64F && from == kC64F) return to == kC64F ? kZ2Z : to == kR64F ? kZ2D : 0;
    if (compute == kC64F && from == kR64F) return to == kC64F ? kD2Z : 0;
    return 0;
}
}  // namespace
EXPORT int cufftXtMakePlanMany(int handle, int rank, long long *n, long long *inembed, long long istride, long long idist,
                               int from, long long *onembed, long long ostride, long long odist, int to, long long batch,
                               size_t *bytes, int compute) {
    int type = type_named(from, to, compute);
    if (!type) {
        kernelwright_library_refuses("cufftXtMakePlanMany", "only transforms of float and double are offered");
        return kNotSupported;
    }
    return fill<long long>(handle, rank, n, {inembed, istride, idist}, {onembed, ostride, odist}, type, batch, bytes);
}
EXPORT int cufftXtExec(int handle, const void *from, void *to, int direction) {
    Entry entry;
    if (Result result = with(handle, [&](Entry &one) { return entry = one, kSuccess; })) return result;
    if (!entry.plan) return kInvalidPlan;
    bool one_way = entry.plan->from_real() || entry.plan->to_real();
    return execute("cufftXtExec", handle, entry.plan->type, from, to, !one_way ? direction : entry.plan->to_real() ? 1 : -1);
}

// Transforms need none of the program's memory.
namespace {
Result no_bytes(size_t *bytes) { return bytes ? (*bytes = 0, kSuccess) : kInvalidValue; }
}  // namespace
EXPORT int cufftSetAutoAllocation(int handle, int) {
    return with(handle, [](Entry &) { return kSuccess; });
}
EXPORT int cufftSetWorkArea(int handle, void *) {
    return with(handle, [](Entry &) { return kSuccess; });
}
EXPORT int cufftGetSize(int handle, size_t *bytes) {
    return with(handle, [&](Entry &) { return no_bytes(bytes); });
}
EXPORT int cufftEstimate1d(int, int, int, size_t *bytes) { return no_bytes(bytes); }
EXPORT int cufftEstimate2d(int, int, int, size_t *bytes) { return no_bytes(bytes); }
EXPORT int cufftEstimate3d(int, int, int, int, size_t *bytes) { return no_bytes(bytes); }
EXPORT int cufftEstimateMany(int, int *, int *, int, int, int *, int, int, int, int, size_t *bytes) { return no_bytes(bytes); }
EXPORT int cufftGetSize1d(int, int, int, int, size_t *bytes) { return no_bytes(bytes); }
EXPORT int cufftGetSize2d(int, int, int, int, size_t *bytes) { return no_bytes(bytes); }
EXPORT int cufftGetSize3d(int, int, int, int, int, size_t *bytes) { return no_bytes(bytes); }
EXPORT int cufftGetSizeMany(int, int, int *, int *, int, int, int *, int, int, int, int, size_t *bytes) { return no_bytes(bytes); }

EXPORT int cufftGetVersion(int *version) { return version ? (*version = kVersion, kSuccess) : kInvalidValue; }
EXPORT int cufftGetProperty(int which, int *value) {
    constexpr int parts[] = {kVersion / 1000, kVersion / 100 % 10, kVersion % 100};
    if (which < 0 || which > 2 || !value) return kInvalidValue;
    *value = parts[which];
    return kSuccess;
}

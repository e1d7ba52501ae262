// What nvcc's stubs call before main and at every <<<>>>.
#include "runtime.h"

namespace {

struct Configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};
thread_local std::vector<Configuration> pushed;

// A fat binary's handle is the address of its module's number.
int module_of(void **handle) { return *reinterpret_cast<int *>(handle); }

}  // namespace

EXPORT void **__cudaRegisterFatBinary(void *wrapper) {
    Call call;
    runtime().fat_binaries.push_back(wrapper);
    return reinterpret_cast<void **>(new int(static_cast<int>(runtime().fat_binaries.size()) - 1));
}

EXPORT void __cudaRegisterFatBinaryEnd(void **) {}
EXPORT void __cudaUnregisterFatBinary(void **) {}

// Called before host code touches a managed variable.
EXPORT char __cudaInitModule(void **handle) {
    Call call;
    if (call.refused()) return 0;
    for (auto &[shadow, variable] : runtime().variables) {
        if (!variable.managed || *variable.managed || variable.module != module_of(handle)) continue;
        Address address = 0;
        if (call.end(call.backend()->locate(variable, address))) return 0;
        *variable.managed = reinterpret_cast<void *>(address);
    }
    return 1;
}

EXPORT void __cudaRegisterFunction(void **handle, const char *stub, char *, const char *symbol, int, void *, void *,
                                   void *, void *, int *) {
    Call call;
    auto &table = runtime().device.kernels;
    auto found = table.find(symbol);
    Kernel kernel = found == table.end() ? Kernel{} : found->second;
    kernel.symbol = symbol;
    kernel.module = module_of(handle);
    runtime().kernels[stub] = kernel;
}

EXPORT void __cudaRegisterVar(void **handle, char *shadow, char *, const char *symbol, int, size_t bytes, int, int) {
    Call call;
    runtime().variables[shadow] = Variable{module_of(handle), symbol, bytes, nullptr};
}

EXPORT void __cudaRegisterManagedVar(void **handle, void **pointer, char *shadow, const char *symbol, int, size_t bytes,
                                     int, int) {
    Call call;
    if (!call.backend()) return;
    if (call.backend()->records())
        call.backend()->unsupported("__managed__", "managed variables are not recorded");
    else
        runtime().variables[shadow] = Variable{module_of(handle), symbol, bytes, pointer};
}

EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
    pushed.push_back({grid, block, shared, stream});
    return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    if (pushed.empty()) return Call().end(cudaErrorMissingConfiguration);
    Configuration top = pushed.back();
    pushed.pop_back();
    *grid = top.grid;
    *block = top.block;
    *shared = top.shared;
    *static_cast<cudaStream_t *>(stream) = top.stream;
    return cudaSuccess;
}

Kernel *find_kernel(const void *function) {
    auto &kernels = runtime().kernels;
    Kernel *found = nullptr;
    if (auto place = kernels.find(function); place != kernels.end()) found = &place->second;
    for (auto &[stub, kernel] : kernels)
        if (&kernel == function) found = &kernel;
    if (found && !found->known && runtime().backend) runtime().backend->look_up(*found);
    return found;
}

EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *handle, const void *stub) {
    Call call;
    *handle = find_kernel(stub);
    return call.end(*handle ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

EXPORT cudaError_t cudaGetKernel(cudaKernel_t *handle, const void *stub) { return __cudaGetKernel(handle, stub); }

EXPORT cudaError_t cudaFuncGetName(const char **name, const void *function) {
    Call call;
    Kernel *kernel = find_kernel(function);
    if (!kernel) return call.end(cudaErrorInvalidDeviceFunction);
    *name = kernel->symbol.c_str();
    return cudaSuccess;
}

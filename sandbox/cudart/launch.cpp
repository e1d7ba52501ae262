// Launches, what a kernel needs, and how many blocks of it fit.
#include <algorithm>

#include "work.h"

namespace {

int64_t round_up(int64_t value, int64_t unit) { return unit ? (value + unit - 1) / unit * unit : value; }

int64_t warps(int64_t threads) { return (threads + 31) / 32; }

int64_t warps_by_registers(const Kernel &kernel) {
    const Device &device = runtime().device;
    int64_t per_warp = round_up(std::max(kernel.registers, 1) * 32, device["register_allocation_unit"]);
    int64_t granularity = std::max<int64_t>(device["warp_allocation_granularity"], 1);
    return device["registers_per_sm"] / per_warp / granularity * granularity;
}

int64_t dynamic_shared_limit(const Kernel &kernel) {
    const Device &device = runtime().device;
    if (kernel.dynamic_shared_allowed >= 0) return kernel.dynamic_shared_allowed;
    return std::max<int64_t>(device["default_shared_bytes_per_block"] - kernel.static_shared, 0);
}

std::string of(int64_t value, int64_t limit) { return std::to_string(value) + "; at most " + std::to_string(limit); }

// Why the device would refuse this launch; cudaSuccess when it would not. The errors are those of CUDA 13 on an
// H200, where a wrong configuration is an invalid value.
std::pair<cudaError_t, std::string> refusal(const Launch &launch) {
    const Kernel &kernel = *launch.kernel;
    const Device &device = runtime().device;
    const dim3 &grid = launch.grid, &block = launch.block;
    int64_t threads = int64_t{block.x} * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z) return {cudaErrorInvalidValue, "the grid is empty"};
    if (!block.x || !block.y || !block.z) return {cudaErrorInvalidValue, "the block is empty"};
    if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
        return {cudaErrorInvalidValue, "the grid is too large (at most 2147483647 x 65535 x 65535 blocks)"};
    if (block.x > 1024 || block.y > 1024 || block.z > 64)
        return {cudaErrorInvalidValue, "the block is too large (at most 1024 x 1024 x 64 threads)"};
    if (threads > device["max_threads_per_block"])
        return {cudaErrorInvalidValue, "threads per block: " + of(threads, device["max_threads_per_block"])};
    if (threads > kernel.max_threads)
        return {cudaErrorInvalidValue, "threads per block, as its __launch_bounds__ says: " + of(threads, kernel.max_threads)};
    if (warps(threads) > warps_by_registers(kernel))
        return {cudaErrorLaunchOutOfResources, "it needs " + std::to_string(kernel.registers) + " registers a thread for " +
                                                   std::to_string(threads) + " threads; a multiprocessor has " +
                                                   std::to_string(device["registers_per_sm"])};
    if (static_cast<int64_t>(launch.shared) > dynamic_shared_limit(kernel))
        return {cudaErrorInvalidValue, "dynamic shared bytes: " + of(launch.shared, dynamic_shared_limit(kernel)) +
                                           (kernel.dynamic_shared_allowed < 0 ? " without cudaFuncSetAttribute" : "")};
    if (launch.cooperative) {
        int64_t blocks = int64_t{grid.x} * grid.y * grid.z;
        int64_t fit = blocks_per_multiprocessor(kernel, threads, launch.shared) * device["sm_count"];
        if (blocks > fit) return {cudaErrorCooperativeLaunchTooLarge, "blocks of a cooperative launch: " + of(blocks, fit)};
    }
    return {cudaSuccess, ""};
}

cudaError_t start(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream,
                  bool cooperative) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    Launch launch;
    if (cudaError_t error = prepare_launch(function, grid, block, arguments, shared, stream, cooperative, launch))
        return call.end(error);
    return call.end(submit(stream, std::move(launch), "cudaLaunchKernel"));
}

}  // namespace

cudaError_t prepare_launch(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                           cudaStream_t stream, bool cooperative, Launch &launch) {
    Backend &backend = *runtime().backend;
    Kernel *kernel = find_kernel(function);
    Stream *found = find_stream(stream);
    if (!kernel) return backend.records() ? cudaErrorInvalidResourceHandle : cudaErrorInvalidDeviceFunction;
    if (!kernel->known)  // the backend that looks code up itself has said so
        return backend.records() ? backend.unsupported(kernel->symbol.c_str(), "the kernel is not in the PTX") : cudaErrorNotSupported;
    if (!found) return cudaErrorInvalidResourceHandle;
    launch = {kernel, grid, block, shared, cooperative, found->number, {}};
    if (auto [error, reason] = refusal(launch); error != cudaSuccess) {
        backend.dropped(launch, error, reason);
        return error;
    }
    int bytes = 0;
    for (auto [offset, size] : kernel->parameters) bytes = std::max(bytes, offset + size);
    launch.parameters.assign(bytes, '\0');
    for (size_t i = 0; i < kernel->parameters.size(); i++) {
        auto [offset, size] = kernel->parameters[i];
        launch.parameters.replace(offset, size, static_cast<const char *>(arguments[i]), size);
    }
    return cudaSuccess;
}

int blocks_per_multiprocessor(const Kernel &kernel, int threads, size_t dynamic_shared) {
    const Device &device = runtime().device;
    int64_t per_block = std::max<int64_t>(warps(threads), 1);
    int64_t shared = round_up(kernel.static_shared + dynamic_shared + device["reserved_shared_bytes_per_block"],
                              device["shared_allocation_unit"]);
    int64_t fit = std::min(device["max_blocks_per_sm"], device["max_warps_per_sm"] / per_block);
    fit = std::min(fit, warps_by_registers(kernel) / per_block);
    return static_cast<int>(std::min(fit, device["shared_bytes_per_sm"] / std::max<int64_t>(shared, 1)));
}

EXPORT cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                    cudaStream_t stream) {
    return start(function, grid, block, arguments, shared, stream, false);
}
ALSO(cudaLaunchKernel_ptsz, cudaLaunchKernel)

EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                      cudaStream_t stream) {
    return start(kernel, grid, block, arguments, shared, stream, false);
}
ALSO(__cudaLaunchKernel_ptsz, __cudaLaunchKernel)

EXPORT cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                                               size_t shared, cudaStream_t stream) {
    return start(function, grid, block, arguments, shared, stream, true);
}
ALSO(cudaLaunchCooperativeKernel_ptsz, cudaLaunchCooperativeKernel)

EXPORT cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    bool cooperative = false;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttribute &attribute = config->attrs[i];
        switch (attribute.id) {
        case cudaLaunchAttributeCooperative:
            cooperative = attribute.val.cooperative != 0;
            break;
        case cudaLaunchAttributeClusterDimension: {
            const dim3 &size = attribute.val.clusterDim;
            if (uint64_t blocks = uint64_t{size.x} * size.y * size.z; blocks > 1) {
                const Kernel *kernel = find_kernel(function);
                std::string why = "a cluster of " + std::to_string(blocks) + " blocks, by cudaLaunchKernelEx";
                return call.end(call.backend()->unsupported(kernel ? kernel->symbol.c_str() : "cudaLaunchKernelEx", why.c_str()));
            }
            break;
        }
        // Hints, and overlap that enqueue order is one legal outcome of.
        case cudaLaunchAttributeIgnore:
        case cudaLaunchAttributeAccessPolicyWindow:
        case cudaLaunchAttributeClusterSchedulingPolicyPreference:
        case cudaLaunchAttributeProgrammaticStreamSerialization:
        case cudaLaunchAttributePriority:
        case cudaLaunchAttributePreferredSharedMemoryCarveout:
            break;
        default:
            return call.end(call.backend()->unsupported(
                "cudaLaunchKernelEx", ("launch attribute " + std::to_string(static_cast<int>(attribute.id))).c_str()));
        }
    }
    return start(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream,
                 cooperative);
}
ALSO(cudaLaunchKernelExC_ptsz, cudaLaunchKernelExC)

EXPORT cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
    Call call;
    Kernel *kernel = find_kernel(function);
    if (!kernel) return call.end(cudaErrorInvalidDeviceFunction);
    int64_t room = runtime().device["max_shared_bytes_per_block"] - kernel->static_shared;
    switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
        if (value < 0 || value > room) return call.end(cudaErrorInvalidValue);
        kernel->dynamic_shared_allowed = value;
        return cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
        kernel->carveout = value;
        return cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
        return cudaSuccess;
    default:
        return call.end(cudaErrorInvalidValue);
    }
}

EXPORT cudaError_t cudaFuncSetCacheConfig(const void *, int) { return cudaSuccess; }
EXPORT cudaError_t cudaFuncSetSharedMemConfig(const void *, int) { return cudaSuccess; }

EXPORT cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
    Call call;
    Kernel *kernel = find_kernel(function);
    if (!kernel) return call.end(cudaErrorInvalidDeviceFunction);
    const Device &device = runtime().device;
    int architecture = static_cast<int>(device["major"] * 10 + device["minor"]);
    *attributes = cudaFuncAttributes{};
    attributes->sharedSizeBytes = kernel->static_shared;
    attributes->localSizeBytes = kernel->local_bytes;
    attributes->maxThreadsPerBlock =
        static_cast<int>(std::min<int64_t>(kernel->max_threads, warps_by_registers(*kernel) * 32));
    attributes->numRegs = kernel->registers;
    attributes->ptxVersion = attributes->binaryVersion = architecture;
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(dynamic_shared_limit(*kernel));
    attributes->preferredShmemCarveout = kernel->carveout;
    return cudaSuccess;
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                                 size_t dynamic_shared) {
    Call call;
    Kernel *kernel = find_kernel(function);
    if (!kernel) return call.end(cudaErrorInvalidDeviceFunction);
    if (threads <= 0) return call.end(cudaErrorInvalidValue);
    bool fits = threads <= runtime().device["max_threads_per_block"];
    *blocks = fits ? blocks_per_multiprocessor(*kernel, threads, dynamic_shared) : 0;
    return cudaSuccess;
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads,
                                                                          size_t dynamic_shared, unsigned) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamic_shared);
}

EXPORT cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks, int) {
    Call call;
    Kernel *kernel = find_kernel(function);
    if (!kernel) return call.end(cudaErrorInvalidDeviceFunction);
    const Device &device = runtime().device;
    if (blocks <= 0 || blocks > device["max_blocks_per_sm"]) return call.end(cudaErrorInvalidValue);
    int64_t unit = std::max<int64_t>(device["shared_allocation_unit"], 1);
    // The real one does not take the system's own kilobyte a block off either.
    int64_t room = device["shared_bytes_per_sm"] / blocks / unit * unit - kernel->static_shared;
    if (room < 0) return call.end(cudaErrorInvalidValue);
    *bytes = std::min(room, dynamic_shared_limit(*kernel));
    return cudaSuccess;
}

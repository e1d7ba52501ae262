// Names and texts of the errors this library gives.
#include "runtime.h"

namespace {

struct Entry {
    const char *name;
    const char *text;
};

const std::map<int, Entry> &entries() {
    static const auto *table = new std::map<int, Entry>{
        {0, {"cudaSuccess", "no error"}},
        {1, {"cudaErrorInvalidValue", "invalid argument"}},
        {2, {"cudaErrorMemoryAllocation", "out of memory"}},
        {3, {"cudaErrorInitializationError", "initialization error"}},
        {9, {"cudaErrorInvalidConfiguration", "invalid configuration argument"}},
        {12, {"cudaErrorInvalidPitchValue", "invalid pitch argument"}},
        {13, {"cudaErrorInvalidSymbol", "invalid device symbol"}},
        {17, {"cudaErrorInvalidDevicePointer", "invalid device pointer"}},
        {21, {"cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"}},
        {52, {"cudaErrorMissingConfiguration", "__global__ function call is not configured"}},
        {98, {"cudaErrorInvalidDeviceFunction", "invalid device function"}},
        {100, {"cudaErrorNoDevice", "no CUDA-capable device is detected"}},
        {101, {"cudaErrorInvalidDevice", "invalid device ordinal"}},
        {400, {"cudaErrorInvalidResourceHandle", "invalid resource handle"}},
        {500, {"cudaErrorSymbolNotFound", "named symbol not found"}},
        {600, {"cudaErrorNotReady", "device not ready"}},
        {700, {"cudaErrorIllegalAddress", "an illegal memory access was encountered"}},
        {701, {"cudaErrorLaunchOutOfResources", "too many resources requested for launch"}},
        {704, {"cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"}},
        {719, {"cudaErrorLaunchFailure", "unspecified launch failure"}},
        {720, {"cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"}},
        {800, {"cudaErrorNotPermitted", "operation not permitted"}},
        {801, {"cudaErrorNotSupported", "operation not supported"}},
        {999, {"cudaErrorUnknown", "unknown error"}},
    };
    return *table;
}

}  // namespace

const char *error_name(cudaError_t error) {
    auto found = entries().find(error);
    return found == entries().end() ? "unrecognized error code" : found->second.name;
}

const char *error_text(cudaError_t error) {
    auto found = entries().find(error);
    return found == entries().end() ? "unrecognized error code" : found->second.text;
}

// The door for CUDA's libraries, which are shared libraries of their own.
#include "library.h"

#include <new>

#include "graphs.h"
#include "work.h"

EXPORT cudaError_t kernelwright_library_call(cudaStream_t stream, const LibraryCall &call, bool waits) {
    Call entered;
    if (cudaError_t error = entered.refused_in_records(call.name.c_str())) return error;
    Stream *found = find_stream(stream);
    if (!found) return entered.end(cudaErrorInvalidResourceHandle);
    if (found->capture && waits) return entered.end(invalidate(*found->capture));
    return entered.end(submit(stream, call, call.name.c_str()));
}

EXPORT void kernelwright_library_refuses(const char *call, const char *why) {
    Call entered;
    if (entered.backend()) entered.backend()->unsupported(call, why);
}

EXPORT void kernelwright_library_note(const char *text) {
    Call entered;
    if (entered.backend()) entered.backend()->note(text);
}

EXPORT int kernelwright_library_threads() {
    Call entered;
    return entered.backend() ? entered.backend()->threads() : 1;
}

// Every other function of the CUDA runtime, so that a candidate that uses one links and hears why it fails.
#include "runtime.h"

namespace {

cudaError_t refuse(const char *name) {
    Call call;
    if (!call.backend()) return call.end(cudaErrorInitializationError);
    std::string_view plain = name;
    for (std::string_view suffix : {"_ptsz", "_ptds"})
        if (plain.ends_with(suffix)) plain.remove_suffix(suffix.size());
    return call.end(call.backend()->unsupported(std::string(plain).c_str(), call.backend()->records() ? "it is not recorded" : "it is not emulated"));
}

}  // namespace

#define UNSUPPORTED(name) \
    EXPORT cudaError_t name() { return refuse(#name); }
#include "unsupported_names.h"

#include "blas.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "library.h"

namespace {

void *open_blas() {
    const char *path = std::getenv("KERNELWRIGHT_BLAS");
    setenv("OPENBLAS_NUM_THREADS", std::to_string(kernelwright_library_threads()).c_str(), 0);
    if (void *opened = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr) return opened;
    std::fprintf(stderr, "kernelwright: cuBLAS computes with the OpenBLAS of NumPy, which cannot be loaded: %s\n",
                 path ? dlerror() : "start this program with `kernelwright exec`");
    std::_Exit(1);
}

}  // namespace

void *blas_routine(const std::string &name) {
    static void *library = open_blas();
    if (void *found = dlsym(library, ("scipy_" + name + "_64_").c_str())) return found;
    std::fprintf(stderr, "kernelwright: the OpenBLAS of NumPy has no %s\n", name.c_str());
    std::_Exit(1);
}

// cuRAND's host calls, by NVIDIA's own libcurand: its generators on the host give the numbers that its generators on a
// GPU give. What they write into device memory is ordered and checked here.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "library.h"

namespace {

enum Status : int {
    kSuccess = 0,
    kNotInitialized = 101,
    kAllocationFailed = 102,
    kLaunchFailure = 201,
    kInitializationFailed = 203,
};

extern "C" cudaError_t cudaFree(void *);

struct Generator {
    void *real;  // NVIDIA's
    bool on_device;
    cudaStream_t stream = nullptr;
};

struct Generators {
    std::mutex mutex;
    std::set<const Generator *> all;
};

Generators &generators() {
    static auto *kept = new Generators;
    return *kept;
}

bool known(const Generator *generator) {
    std::lock_guard lock(generators().mutex);
    return generators().all.count(generator);
}

void *open_real() {
    const char *path = std::getenv("KERNELWRIGHT_CURAND");
    // Its calls of itself must not come here.
    if (void *opened = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : nullptr) return opened;
    std::fprintf(stderr, "kernelwright: NVIDIA's libcurand, which makes the random numbers, cannot be loaded: %s\n",
                 path ? dlerror() : "pip install 'kernelwright[libraries]', or install CUDA 13's");
    std::_Exit(1);
}

template <class... Arguments>
int real(const char *name, Arguments... arguments) {
    static void *library = open_real();
    auto *function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
    if (function) return function(arguments...);
    std::fprintf(stderr, "kernelwright: NVIDIA's libcurand has no %s\n", name);
    std::_Exit(1);
}

int create(Generator **made, int type, bool on_device) {
    if (on_device && cudaFree(nullptr)) return kInitializationFailed;  // starts the runtime
    auto *generator = new Generator{nullptr, on_device};
    if (int failed = real("curandCreateGeneratorHost", &generator->real, type)) {
        delete generator;
        return failed;
    }
    std::lock_guard lock(generators().mutex);
    generators().all.insert(generator);
    *made = generator;
    return kSuccess;
}

template <class... Arguments>
int set(const char *name, Generator *generator, Arguments... arguments) {
    return known(generator) ? real(name, generator->real, arguments...) : kNotInitialized;
}

// `count` numbers into `to`, which lies on the device unless the generator was made for the host.
template <class T, class... Arguments>
int generate(const char *name, Generator *generator, T *to, size_t count, Arguments... arguments) {
    if (!known(generator)) return kNotInitialized;
    if (!generator->on_device) return real(name, generator->real, to, count, arguments...);
    auto status = std::make_shared<int>(kSuccess);  // a captured call outlives this one
    auto work = [=](DeviceMemory &memory) {
        if (!memory.writes("outputPtr", to, {sizeof(T) * count})) return;
        *status = real(name, generator->real, to, count, arguments...);
    };
    switch (kernelwright_library_call(generator->stream, {name, work}, false)) {
    case cudaSuccess:
        return *status;
    case cudaErrorInitializationError:
        return kInitializationFailed;
    case cudaErrorMemoryAllocation:
        return kAllocationFailed;
    default:
        return kLaunchFailure;
    }
}

}  // namespace

EXPORT int curandCreateGenerator(Generator **made, int type) { return create(made, type, true); }
EXPORT int curandCreateGeneratorHost(Generator **made, int type) { return create(made, type, false); }

EXPORT int curandDestroyGenerator(Generator *generator) {
    if (!known(generator)) return kNotInitialized;
    int status = real("curandDestroyGenerator", generator->real);
    std::lock_guard lock(generators().mutex);
    generators().all.erase(generator);
    delete generator;
    return status;
}

EXPORT int curandSetStream(Generator *generator, cudaStream_t stream) {
    if (!known(generator)) return kNotInitialized;
    generator->stream = stream;
    return kSuccess;
}

EXPORT int curandSetPseudoRandomGeneratorSeed(Generator *generator, unsigned long long seed) {
    return set("curandSetPseudoRandomGeneratorSeed", generator, seed);
}
EXPORT int curandSetGeneratorOffset(Generator *generator, unsigned long long offset) {
    return set("curandSetGeneratorOffset", generator, offset);
}
EXPORT int curandSetGeneratorOrdering(Generator *generator, int order) {
    constexpr int kDynamic = 104;
    if (known(generator) && generator->on_device && order == kDynamic) {
        kernelwright_library_refuses("curandSetGeneratorOrdering",
                                     "CURAND_ORDERING_PSEUDO_DYNAMIC depends on the GPU; the default order is used");
        return kSuccess;
    }
    return set("curandSetGeneratorOrdering", generator, order);
}
EXPORT int curandSetQuasiRandomGeneratorDimensions(Generator *generator, unsigned dimensions) {
    return set("curandSetQuasiRandomGeneratorDimensions", generator, dimensions);
}
EXPORT int curandGenerateSeeds(Generator *generator) { return set("curandGenerateSeeds", generator); }

EXPORT int curandGenerate(Generator *generator, unsigned *to, size_t count) {
    return generate("curandGenerate", generator, to, count);
}
EXPORT int curandGenerateLongLong(Generator *generator, unsigned long long *to, size_t count) {
    return generate("curandGenerateLongLong", generator, to, count);
}
EXPORT int curandGenerateUniform(Generator *generator, float *to, size_t count) {
    return generate("curandGenerateUniform", generator, to, count);
}
EXPORT int curandGenerateUniformDouble(Generator *generator, double *to, size_t count) {
    return generate("curandGenerateUniformDouble", generator, to, count);
}
EXPORT int curandGenerateNormal(Generator *generator, float *to, size_t count, float mean, float deviation) {
    return generate("curandGenerateNormal", generator, to, count, mean, deviation);
}
EXPORT int curandGenerateNormalDouble(Generator *generator, double *to, size_t count, double mean, double deviation) {
    return generate("curandGenerateNormalDouble", generator, to, count, mean, deviation);
}
EXPORT int curandGenerateLogNormal(Generator *generator, float *to, size_t count, float mean, float deviation) {
    return generate("curandGenerateLogNormal", generator, to, count, mean, deviation);
}
EXPORT int curandGenerateLogNormalDouble(Generator *generator, double *to, size_t count, double mean, double deviation) {
    return generate("curandGenerateLogNormalDouble", generator, to, count, mean, deviation);
}
EXPORT int curandGeneratePoisson(Generator *generator, unsigned *to, size_t count, double lambda) {
    return generate("curandGeneratePoisson", generator, to, count, lambda);
}
EXPORT int curandGeneratePoissonMethod(Generator *generator, unsigned *to, size_t count, double lambda, int method) {
    return generate("curandGeneratePoissonMethod", generator, to, count, lambda, method);
}
EXPORT int curandGenerateBinomial(Generator *generator, unsigned *to, size_t count, unsigned trials, double p) {
    return generate("curandGenerateBinomial", generator, to, count, trials, p);
}

EXPORT int curandGenerateBinomialMethod(Generator *generator, unsigned *to, size_t count, unsigned trials, double p,
                                        int method) {
    return generate("curandGenerateBinomialMethod", generator, to, count, trials, p, method);
}

EXPORT int curandGetVersion(int *version) { return real("curandGetVersion", version); }
EXPORT int curandGetProperty(int which, int *value) { return real("curandGetProperty", which, value); }
EXPORT int curandGetDirectionVectors32(void *vectors, int set) { return real("curandGetDirectionVectors32", vectors, set); }
EXPORT int curandGetDirectionVectors64(void *vectors, int set) { return real("curandGetDirectionVectors64", vectors, set); }
EXPORT int curandGetScrambleConstants32(unsigned **constants) { return real("curandGetScrambleConstants32", constants); }
EXPORT int curandGetScrambleConstants64(unsigned long long **constants) {
    return real("curandGetScrambleConstants64", constants);
}

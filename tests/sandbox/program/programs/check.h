// What the tests' programs check themselves with: the first line that is wrong ends them with its number.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(what)                                                              \
    do {                                                                         \
        if (!(what)) {                                                           \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

inline void expect(cudaError_t got, cudaError_t wanted, const char *call, int line) {
    if (got == wanted) return;
    std::fprintf(stderr, "line %d: %s gave %s (%s), not %s\n", line, call, cudaGetErrorName(got), cudaGetErrorString(got),
                 cudaGetErrorName(wanted));
    std::exit(1);
}

#define OK(call) expect((call), cudaSuccess, #call, __LINE__)
// A call that fails, and whose error is the last one afterwards.
#define FAILS(call, error)                                              \
    do {                                                                \
        expect((call), error, #call, __LINE__);                         \
        expect(cudaGetLastError(), error, "the last error after " #call, __LINE__); \
    } while (0)

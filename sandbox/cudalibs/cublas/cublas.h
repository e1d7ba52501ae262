// cuBLAS v2 on the CPU: what all its routines share. Names, numbers and meanings are those of NVIDIA's documentation.
//
// A routine checks its arguments at once. What it does is then done in the order of its stream: it says what it reads
// and writes, which is checked, and OpenBLAS, or a loop, computes.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <functional>
#include <utility>

#include "blas.h"
#include "library.h"

enum Status : int {
    kSuccess = 0,
    kNotInitialized = 1,
    kAllocationFailed = 3,
    kInvalidValue = 7,
    kMappingError = 11,
    kExecutionFailed = 13,
    kNotSupported = 15,
};

enum Operation : int { kPlain = 0, kTransposed = 1, kConjugated = 2 };
enum Fill : int { kLower = 0, kUpper = 1 };
enum Diagonal : int { kGiven = 0, kUnit = 1 };
enum Side : int { kLeft = 0, kRight = 1 };

struct Handle {
    cudaStream_t stream = nullptr;
    bool scalars_on_device = false;
    int math_mode = 0, atomics_mode = 0;
};

bool known(const Handle *handle);
Status status_of(cudaError_t error);
// Says why a call that real cuBLAS has cannot be done here.
Status refuse(const char *call, const char *why);

// Whether the host may use what `at` points to. On a GPU the program would die there; here a line says why it fails.
bool on_host(const char *what, const void *at);

template <class Work>
Status perform(const Handle *handle, const char *call, Work work, bool waits = false) {
    return status_of(kernelwright_library_call(handle->stream, {call, std::move(work)}, waits));
}

template <class T>
struct Real {
    using type = T;
};
template <class T>
struct Real<std::complex<T>> {
    using type = T;
};
template <class T>
using RealOf = typename Real<T>::type;
template <class T>
constexpr bool kComplex = !std::is_same_v<T, RealOf<T>>;

template <class T>
T conjugate(T value) {
    if constexpr (kComplex<T>)
        return std::conj(value);
    else
        return value;
}

// A number that a call is given: on the host, then it is taken at once, or on the device.
template <class T>
class Scalar {
  public:
    Scalar(const Handle *handle, const char *what, const T *at) : what_(what), at_(at), on_device_(handle->scalars_on_device) {
        if (!on_device_ && at) value_ = *at;
    }
    bool given() const { return at_ && (on_device_ || on_host(what_, at_)); }
    bool read(DeviceMemory &memory, T &value) const {
        if (on_device_ && !memory.reads(what_, at_, {sizeof(T)})) return false;
        value = on_device_ ? *at_ : value_;
        return true;
    }

  private:
    const char *what_;
    const T *at_;
    bool on_device_;
    T value_{};
};

// A number that a call gives back.
template <class T>
class Result {
  public:
    Result(const Handle *handle, T *at) : at_(at), on_device_(handle->scalars_on_device) {}
    bool given() const { return at_ && (on_device_ || on_host("the result", at_)); }
    bool waits() const { return !on_device_; }
    bool write(DeviceMemory &memory, T value) const {
        if (on_device_ && !memory.writes("the result", at_, {sizeof(T)})) return false;
        *at_ = value;
        return true;
    }

  private:
    T *at_;
    bool on_device_;
};

// Where operands lie.
template <class T>
Rows matrix(int64_t rows, int64_t columns, int64_t leading) {
    return {static_cast<size_t>(rows) * sizeof(T), static_cast<size_t>(columns),
            leading * static_cast<ptrdiff_t>(sizeof(T))};
}

template <class T>
Rows vector(int64_t count, int64_t step) {
    return {sizeof(T), static_cast<size_t>(count), std::abs(step) * static_cast<ptrdiff_t>(sizeof(T))};
}

// Half of a square matrix, without its diagonal where that is taken to be one.
template <class T>
struct Triangle {
    const T *from;
    Rows rows;
    Triangle(const T *at, int fill, int64_t size, int64_t leading, bool diagonal = true) {
        constexpr ptrdiff_t element = sizeof(T);
        int64_t columns = diagonal ? size : size - 1;
        from = diagonal ? at : fill == kLower ? at + 1 : at + leading;
        size_t longest = static_cast<size_t>(std::max<int64_t>(columns, 0)) * sizeof(T);
        if (fill == kLower)
            rows = {longest, static_cast<size_t>(std::max<int64_t>(columns, 0)), (leading + 1) * element, -element};
        else
            rows = {sizeof(T), static_cast<size_t>(std::max<int64_t>(columns, 0)), leading * element, element};
    }
};

// What Fortran calls them.
inline const char *letter(Operation operation) { return &"NTC"[operation]; }
inline const char *fill_letter(int fill) { return fill == kLower ? "L" : "U"; }
inline const char *diagonal_letter(int diagonal) { return diagonal == kUnit ? "U" : "N"; }
inline const char *side_letter(int side) { return side == kLeft ? "L" : "R"; }

inline bool valid(int operation) { return operation >= kPlain && operation <= kConjugated; }
inline bool valid_fill(int fill) { return fill == kLower || fill == kUpper; }
inline bool fits(int64_t rows, int64_t leading) { return leading >= std::max<int64_t>(rows, 1); }

// Does `work` for every number below `count`, of many on several threads.
void each(int64_t count, const std::function<void(int64_t)> &work);

// C = alpha op(A) op(B) + beta C; the operands' places are known by now.
template <class T>
struct Product {
    Operation transposed_a, transposed_b;
    int64_t m, n, k;
    int64_t lda, ldb, ldc;

    bool valid() const {
        return m >= 0 && n >= 0 && k >= 0 && fits(transposed_a == kPlain ? m : k, lda) &&
               fits(transposed_b == kPlain ? k : n, ldb) && fits(m, ldc);
    }
    bool check(DeviceMemory &memory, T alpha, const T *a, const T *b, T beta, T *c) const;
    void compute(T alpha, const T *a, const T *b, T beta, T *c) const;
};

#define FOR_REAL(MACRO) MACRO(S, float) MACRO(D, double)
#define FOR_COMPLEX(MACRO) MACRO(C, std::complex<float>) MACRO(Z, std::complex<double>)
#define FOR_ALL(MACRO) FOR_REAL(MACRO) FOR_COMPLEX(MACRO)

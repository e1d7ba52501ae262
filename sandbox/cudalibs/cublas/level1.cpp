// Vectors. Sums are made in double, and of doubles in the order of the elements.
#include <cmath>

#include "cublas.h"

namespace {

// The first of `count` elements `step` apart: with a negative step it is the last one in memory.
template <class T>
T *first(T *at, int64_t count, int64_t step) {
    return step < 0 ? at + (1 - count) * step : at;
}

template <class T>
RealOf<T> magnitude(T value) {  // as BLAS means it: no square root
    if constexpr (kComplex<T>)
        return std::abs(value.real()) + std::abs(value.imag());
    else
        return std::abs(value);
}

template <class T>
using Wide = std::conditional_t<kComplex<T>, std::complex<double>, double>;

template <class Work>
Status vector_call(const Handle *handle, const char *call, const void *x, int n, Work work, bool waits = false) {
    if (!known(handle)) return kNotInitialized;
    if (n > 0 && !x) return kInvalidValue;
    return perform(handle, call, std::move(work), waits);
}

template <class T, bool Largest>
Status extreme(const Handle *handle, const char *call, int n, const T *x, int step, int *at) {
    if (!known(handle)) return kNotInitialized;
    Result<int> result(handle, at);
    if (!result.given()) return kInvalidValue;
    auto work = [=](DeviceMemory &memory) {
        int best = 0;
        if (n > 0 && step > 0) {
            if (!memory.reads("x", x, vector<T>(n, step))) return;
            for (int64_t i = 1; i < n; i++) {
                auto value = magnitude(x[i * step]), other = magnitude(x[int64_t{best} * step]);
                if (Largest ? value > other : value < other) best = static_cast<int>(i);
            }
            best++;  // counted from one
        }
        result.write(memory, best);
    };
    return vector_call(handle, call, x, n, work, result.waits());
}

template <class T>
Status sum_of_magnitudes(const Handle *handle, const char *call, int n, const T *x, int step, RealOf<T> *at) {
    if (!known(handle)) return kNotInitialized;
    Result<RealOf<T>> result(handle, at);
    if (!result.given()) return kInvalidValue;
    auto work = [=](DeviceMemory &memory) {
        double sum = 0;
        if (n > 0 && step > 0) {
            if (!memory.reads("x", x, vector<T>(n, step))) return;
            for (int64_t i = 0; i < n; i++) sum += magnitude(x[i * step]);
        }
        result.write(memory, static_cast<RealOf<T>>(sum));
    };
    return vector_call(handle, call, x, n, work, result.waits());
}

template <class T>
Status norm(const Handle *handle, const char *call, int n, const T *x, int step, RealOf<T> *at) {
    if (!known(handle)) return kNotInitialized;
    // The squares of doubles fit into this one's range.
    using Sum = std::conditional_t<std::is_same_v<RealOf<T>, float>, double, long double>;
    Result<RealOf<T>> result(handle, at);
    if (!result.given()) return kInvalidValue;
    auto work = [=](DeviceMemory &memory) {
        Sum sum = 0;
        if (n > 0 && step > 0) {
            if (!memory.reads("x", x, vector<T>(n, step))) return;
            for (int64_t i = 0; i < n; i++) {
                std::complex<Sum> value(x[i * step]);
                sum += value.real() * value.real() + value.imag() * value.imag();
            }
        }
        result.write(memory, static_cast<RealOf<T>>(std::sqrt(sum)));
    };
    return vector_call(handle, call, x, n, work, result.waits());
}

template <class T, bool Conjugate = false>
Status dot(const Handle *handle, const char *call, int n, const T *x, int incx, const T *y, int incy, T *at) {
    if (!known(handle)) return kNotInitialized;
    Result<T> result(handle, at);
    if (!result.given() || (n > 0 && !y)) return kInvalidValue;
    auto work = [=](DeviceMemory &memory) {
        Wide<T> sum = 0;
        if (n > 0) {
            if (!memory.reads("x", x, vector<T>(n, incx)) || !memory.reads("y", y, vector<T>(n, incy))) return;
            const T *a = first(x, n, incx), *b = first(y, n, incy);
            for (int64_t i = 0; i < n; i++, a += incx, b += incy)
                sum += Wide<T>(Conjugate ? conjugate(*a) : *a) * Wide<T>(*b);
        }
        result.write(memory, static_cast<T>(sum));
    };
    return vector_call(handle, call, x, n, work, result.waits());
}

template <class T>
Status axpy(const Handle *handle, const char *call, int n, const T *alpha, const T *x, int incx, T *y, int incy) {
    if (!known(handle)) return kNotInitialized;
    Scalar<T> factor(handle, "alpha", alpha);
    if (!factor.given() || (n > 0 && !y)) return kInvalidValue;
    auto work = [=](DeviceMemory &memory) {
        T a;
        if (n <= 0 || !factor.read(memory, a) || a == T(0)) return;
        if (!memory.reads("x", x, vector<T>(n, incx)) || !memory.reads("y", y, vector<T>(n, incy))) return;
        if (!memory.writes("y", y, vector<T>(n, incy))) return;
        const T *from = first(x, n, incx);
        T *to = first(y, n, incy);
        for (int64_t i = 0; i < n; i++, from += incx, to += incy) *to += a * *from;
    };
    return vector_call(handle, call, x, n, work);
}

template <class T, class Factor>
Status scale(const Handle *handle, const char *call, int n, const Factor *alpha, T *x, int step) {
    if (!known(handle)) return kNotInitialized;
    Scalar<Factor> factor(handle, "alpha", alpha);
    if (!factor.given()) return kInvalidValue;
    auto work = [=](DeviceMemory &memory) {
        Factor a;
        if (n <= 0 || step <= 0 || !factor.read(memory, a)) return;
        if (!memory.reads("x", x, vector<T>(n, step)) || !memory.writes("x", x, vector<T>(n, step))) return;
        for (int64_t i = 0; i < n; i++) x[i * step] *= a;
    };
    return vector_call(handle, call, x, n, work);
}

template <class T>
Status copy(const Handle *handle, const char *call, int n, const T *x, int incx, T *y, int incy) {
    if (n > 0 && !y) return kInvalidValue;
    auto work = [=](DeviceMemory &memory) {
        if (n <= 0 || !memory.reads("x", x, vector<T>(n, incx)) || !memory.writes("y", y, vector<T>(n, incy))) return;
        const T *from = first(x, n, incx);
        T *to = first(y, n, incy);
        for (int64_t i = 0; i < n; i++, from += incx, to += incy) *to = *from;
    };
    return vector_call(handle, call, x, n, work);
}

// Reads and writes both vectors; `change` is given an element of each.
template <class T, class Change>
void change_both(DeviceMemory &memory, int n, T *x, int incx, T *y, int incy, Change change) {
    if (n <= 0) return;
    if (!memory.reads("x", x, vector<T>(n, incx)) || !memory.reads("y", y, vector<T>(n, incy))) return;
    if (!memory.writes("x", x, vector<T>(n, incx)) || !memory.writes("y", y, vector<T>(n, incy))) return;
    T *a = first(x, n, incx), *b = first(y, n, incy);
    for (int64_t i = 0; i < n; i++, a += incx, b += incy) change(*a, *b);
}

template <class T>
Status exchange(const Handle *handle, const char *call, int n, T *x, int incx, T *y, int incy) {
    if (n > 0 && !y) return kInvalidValue;
    auto work = [=](DeviceMemory &memory) {
        change_both(memory, n, x, incx, y, incy, [](T &a, T &b) { std::swap(a, b); });
    };
    return vector_call(handle, call, x, n, work);
}

template <class T, class Sine>
Status rotate(const Handle *handle, const char *call, int n, T *x, int incx, T *y, int incy, const RealOf<T> *c,
              const Sine *s) {
    if (!known(handle)) return kNotInitialized;
    Scalar<RealOf<T>> cosine(handle, "c", c);
    Scalar<Sine> sine(handle, "s", s);
    if (!cosine.given() || !sine.given() || (n > 0 && !y)) return kInvalidValue;
    auto work = [=](DeviceMemory &memory) {
        RealOf<T> c = 0;
        Sine s = 0;
        if (n <= 0 || !cosine.read(memory, c) || !sine.read(memory, s)) return;
        change_both(memory, n, x, incx, y, incy, [&](T &a, T &b) {
            T before = a;
            a = c * a + s * b;
            b = c * b - conjugate(s) * before;
        });
    };
    return vector_call(handle, call, x, n, work);
}

}  // namespace

#define LEVEL1(L, T)                                                                                                 \
    EXPORT int cublasI##L##amax_v2(Handle *h, int n, const T *x, int incx, int *result) {                            \
        return extreme<T, true>(h, "cublasI" #L "amax", n, x, incx, result);                                         \
    }                                                                                                                \
    EXPORT int cublasI##L##amin_v2(Handle *h, int n, const T *x, int incx, int *result) {                            \
        return extreme<T, false>(h, "cublasI" #L "amin", n, x, incx, result);                                        \
    }
LEVEL1(s, float)
LEVEL1(d, double)
LEVEL1(c, std::complex<float>)
LEVEL1(z, std::complex<double>)

#define SUMS(L, T)                                                                                                   \
    EXPORT int cublas##L##asum_v2(Handle *h, int n, const T *x, int incx, RealOf<T> *result) {                       \
        return sum_of_magnitudes<T>(h, "cublas" #L "asum", n, x, incx, result);                                      \
    }                                                                                                                \
    EXPORT int cublas##L##nrm2_v2(Handle *h, int n, const T *x, int incx, RealOf<T> *result) {                       \
        return norm<T>(h, "cublas" #L "nrm2", n, x, incx, result);                                                   \
    }
SUMS(S, float)
SUMS(D, double)
SUMS(Sc, std::complex<float>)
SUMS(Dz, std::complex<double>)

#define MOVES(L, T)                                                                                                  \
    EXPORT int cublas##L##axpy_v2(Handle *h, int n, const T *alpha, const T *x, int incx, T *y, int incy) {          \
        return axpy<T>(h, "cublas" #L "axpy", n, alpha, x, incx, y, incy);                                           \
    }                                                                                                                \
    EXPORT int cublas##L##copy_v2(Handle *h, int n, const T *x, int incx, T *y, int incy) {                          \
        return copy<T>(h, "cublas" #L "copy", n, x, incx, y, incy);                                                  \
    }                                                                                                                \
    EXPORT int cublas##L##swap_v2(Handle *h, int n, T *x, int incx, T *y, int incy) {                                \
        return exchange<T>(h, "cublas" #L "swap", n, x, incx, y, incy);                                              \
    }                                                                                                                \
    EXPORT int cublas##L##scal_v2(Handle *h, int n, const T *alpha, T *x, int incx) {                                \
        return scale<T>(h, "cublas" #L "scal", n, alpha, x, incx);                                                   \
    }                                                                                                                \
    EXPORT int cublas##L##rot_v2(Handle *h, int n, T *x, int incx, T *y, int incy, const RealOf<T> *c, const T *s) { \
        return rotate<T>(h, "cublas" #L "rot", n, x, incx, y, incy, c, s);                                           \
    }
FOR_ALL(MOVES)

#define REAL_DOT(L, T)                                                                                               \
    EXPORT int cublas##L##dot_v2(Handle *h, int n, const T *x, int incx, const T *y, int incy, T *result) {          \
        return dot<T>(h, "cublas" #L "dot", n, x, incx, y, incy, result);                                            \
    }
FOR_REAL(REAL_DOT)

#define COMPLEX_DOT(L, T)                                                                                            \
    EXPORT int cublas##L##dotu_v2(Handle *h, int n, const T *x, int incx, const T *y, int incy, T *result) {         \
        return dot<T>(h, "cublas" #L "dotu", n, x, incx, y, incy, result);                                           \
    }                                                                                                                \
    EXPORT int cublas##L##dotc_v2(Handle *h, int n, const T *x, int incx, const T *y, int incy, T *result) {         \
        return dot<T, true>(h, "cublas" #L "dotc", n, x, incx, y, incy, result);                                     \
    }
FOR_COMPLEX(COMPLEX_DOT)

#define BY_REAL(SCALE, ROTATE, T)                                                                                    \
    EXPORT int cublas##SCALE##_v2(Handle *h, int n, const RealOf<T> *alpha, T *x, int incx) {                        \
        return scale<T>(h, "cublas" #SCALE, n, alpha, x, incx);                                                      \
    }                                                                                                                \
    EXPORT int cublas##ROTATE##_v2(Handle *h, int n, T *x, int incx, T *y, int incy, const RealOf<T> *c,             \
                                   const RealOf<T> *s) {                                                             \
        return rotate<T>(h, "cublas" #ROTATE, n, x, incx, y, incy, c, s);                                            \
    }
BY_REAL(Csscal, Csrot, std::complex<float>)
BY_REAL(Zdscal, Zdrot, std::complex<double>)

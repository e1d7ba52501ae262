// A matrix and vectors.
#include <vector>

#include "cublas.h"

namespace {

// With beta 0 what `y` held does not count, were it a NaN.
template <class T>
bool ready_to_add(DeviceMemory &memory, const char *what, T beta, T *y, int64_t count, int64_t step) {
    if (beta != T(0) && !memory.reads(what, y, vector<T>(count, step))) return false;
    if (!memory.writes(what, y, vector<T>(count, step))) return false;
    for (int64_t i = 0; beta == T(0) && i < count; i++) y[i * std::abs(step)] = 0;
    return true;
}

template <class T>
Status gemv(const Handle *handle, const char *call, int operation, int64_t m, int64_t n, const T *alpha, const T *a,
            int64_t lda, const T *x, int64_t incx, const T *beta, T *y, int64_t incy) {
    if (!known(handle)) return kNotInitialized;
    Scalar<T> factor(handle, "alpha", alpha), old(handle, "beta", beta);
    if (!valid(operation) || m < 0 || n < 0 || !fits(m, lda) || !incx || !incy || !factor.given() || !old.given())
        return kInvalidValue;
    auto op = static_cast<Operation>(operation);
    return perform(handle, call, [=](DeviceMemory &memory) {
        int64_t rows = op == kPlain ? m : n, columns = op == kPlain ? n : m;
        T a_factor, b_factor;
        if (!m || !n || !factor.read(memory, a_factor) || !old.read(memory, b_factor)) return;
        if (a_factor != T(0) && (!memory.reads("A", a, matrix<T>(m, n, lda)) || !memory.reads("x", x, vector<T>(columns, incx))))
            return;
        if (!ready_to_add(memory, "y", b_factor, y, rows, incy)) return;
        blas<T>("gemv", letter(op), &m, &n, &a_factor, a, &lda, x, &incx, &b_factor, y, &incy);
    });
}

// y = alpha A x + beta y of a symmetric or Hermitian matrix, of which one triangle is given.
template <class T>
Status symv(const Handle *handle, const char *call, const char *routine, int fill, int64_t n, const T *alpha, const T *a,
            int64_t lda, const T *x, int64_t incx, const T *beta, T *y, int64_t incy) {
    if (!known(handle)) return kNotInitialized;
    Scalar<T> factor(handle, "alpha", alpha), old(handle, "beta", beta);
    if (!valid_fill(fill) || n < 0 || !fits(n, lda) || !incx || !incy || !factor.given() || !old.given())
        return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        T a_factor, b_factor;
        if (!n || !factor.read(memory, a_factor) || !old.read(memory, b_factor)) return;
        Triangle<T> half(a, fill, n, lda);
        if (a_factor != T(0) && (!memory.reads("A", half.from, half.rows) || !memory.reads("x", x, vector<T>(n, incx)))) return;
        if (!ready_to_add(memory, "y", b_factor, y, n, incy)) return;
        blas<T>(routine, fill_letter(fill), &n, &a_factor, a, &lda, x, &incx, &b_factor, y, &incy);
    });
}

// A += alpha x y^T, or y^H.
template <class T>
Status ger(const Handle *handle, const char *call, const char *routine, int64_t m, int64_t n, const T *alpha, const T *x,
           int64_t incx, const T *y, int64_t incy, T *a, int64_t lda) {
    if (!known(handle)) return kNotInitialized;
    Scalar<T> factor(handle, "alpha", alpha);
    if (m < 0 || n < 0 || !fits(m, lda) || !incx || !incy || !factor.given()) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        T a_factor;
        if (!m || !n || !factor.read(memory, a_factor) || a_factor == T(0)) return;
        Rows all = matrix<T>(m, n, lda);
        if (!memory.reads("x", x, vector<T>(m, incx)) || !memory.reads("y", y, vector<T>(n, incy))) return;
        if (!memory.reads("A", a, all) || !memory.writes("A", a, all)) return;
        blas<T>(routine, &m, &n, &a_factor, x, &incx, y, &incy, a, &lda);
    });
}

// A += alpha x x^T, or of two vectors alpha x y^T + alpha y x^T: one triangle of it. Of Hermitian matrices: A += alpha x
// x^H, or alpha x y^H + conj(alpha) y x^H. The loop is ours: OpenBLAS (0.3.31) gets csyr2 wrong for steps below zero.
template <class T, bool Hermitian, class Factor>
Status syr(const Handle *handle, const char *call, int fill, int64_t n, const Factor *alpha, const T *x, int64_t incx,
           const T *y, int64_t incy, T *a, int64_t lda) {
    if (!known(handle)) return kNotInitialized;
    Scalar<Factor> factor(handle, "alpha", alpha);
    if (!valid_fill(fill) || n < 0 || !fits(n, lda) || !incx || !incy || !factor.given()) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        Factor by;
        if (!n || !factor.read(memory, by) || by == Factor(0)) return;
        Triangle<T> half(a, fill, n, lda);
        if (!memory.reads("x", x, vector<T>(n, incx)) || (y && !memory.reads("y", y, vector<T>(n, incy)))) return;
        if (!memory.reads("A", half.from, half.rows) || !memory.writes("A", half.from, half.rows)) return;
        auto at = [&](const T *v, int64_t step, int64_t i) { return v[(step < 0 ? i - (n - 1) : i) * step]; };
        auto turned = [](auto value) { return Hermitian ? conjugate(value) : value; };
        for (int64_t j = 0; j < n; j++) {
            T right_x = turned(at(x, incx, j)), right_y = y ? turned(at(y, incy, j)) : T(0);
            for (int64_t i = fill == kLower ? j : 0; i < (fill == kLower ? n : j + 1); i++) {
                T &one = a[i + j * lda];
                one += y ? by * at(x, incx, i) * right_y + turned(by) * at(y, incy, i) * right_x : by * at(x, incx, i) * right_x;
                if constexpr (Hermitian)
                    if (i == j) one = one.real();
            }
        }
    });
}

// x = op(A) x, or the x that op(A) makes to what x was, of a triangular matrix.
template <class T>
Status triangular(const Handle *handle, const char *call, const char *routine, int fill, int operation, int diagonal,
                  int64_t n, const T *a, int64_t lda, T *x, int64_t incx) {
    if (!known(handle)) return kNotInitialized;
    if (!valid_fill(fill) || !valid(operation) || (diagonal != kGiven && diagonal != kUnit)) return kInvalidValue;
    if (n < 0 || !fits(n, lda) || !incx) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        if (!n) return;
        Triangle<T> half(a, fill, n, lda, diagonal == kGiven);
        Rows all = vector<T>(n, incx);
        if (!memory.reads("A", half.from, half.rows) || !memory.reads("x", x, all) || !memory.writes("x", x, all)) return;
        blas<T>(routine, fill_letter(fill), letter(static_cast<Operation>(operation)), diagonal_letter(diagonal), &n, a, &lda,
                x, &incx);
    });
}

// Batches: places in an array of pointers, or the same distance apart.
template <class T>
Status gemv_batch(const Handle *handle, const char *call, int operation, int64_t m, int64_t n, const T *alpha,
                  const T *const *as, const T *a, int64_t stride_a, int64_t lda, const T *const *xs, const T *x,
                  int64_t stride_x, int64_t incx, const T *beta, T *const *ys, T *y, int64_t stride_y, int64_t incy,
                  int64_t count) {
    if (!known(handle)) return kNotInitialized;
    Scalar<T> factor(handle, "alpha", alpha), old(handle, "beta", beta);
    if (!valid(operation) || m < 0 || n < 0 || count < 0 || !fits(m, lda) || !incx || !incy) return kInvalidValue;
    if (!factor.given() || !old.given()) return kInvalidValue;
    auto op = static_cast<Operation>(operation);
    return perform(handle, call, [=](DeviceMemory &memory) {
        T a_factor, b_factor;
        if (!m || !n || !factor.read(memory, a_factor) || !old.read(memory, b_factor)) return;
        Rows places{sizeof(T *) * static_cast<size_t>(count)};
        if (as && (!memory.reads("Aarray", as, places) || !memory.reads("xarray", xs, places) || !memory.reads("yarray", ys, places)))
            return;
        int64_t rows = op == kPlain ? m : n, columns = op == kPlain ? n : m;
        for (int64_t i = 0; i < count; i++) {
            const T *from = as ? as[i] : a + i * stride_a, *by = as ? xs[i] : x + i * stride_x;
            T *to = as ? ys[i] : y + i * stride_y;
            if (!memory.reads("A", from, matrix<T>(m, n, lda)) || !memory.reads("x", by, vector<T>(columns, incx))) return;
            if (!ready_to_add(memory, "y", b_factor, to, rows, incy)) return;
            blas<T>("gemv", letter(op), &m, &n, &a_factor, from, &lda, by, &incx, &b_factor, to, &incy);
        }
    });
}

}  // namespace

#define GENERAL(L, T)                                                                                                  \
    EXPORT int cublas##L##gemv_v2(Handle *h, int op, int m, int n, const T *alpha, const T *a, int lda, const T *x,    \
                                  int incx, const T *beta, T *y, int incy) {                                           \
        return gemv<T>(h, "cublas" #L "gemv", op, m, n, alpha, a, lda, x, incx, beta, y, incy);                        \
    }                                                                                                                  \
    EXPORT int cublas##L##gemvBatched(Handle *h, int op, int m, int n, const T *alpha, const T *const *a, int lda,     \
                                      const T *const *x, int incx, const T *beta, T *const *y, int incy, int count) {  \
        return gemv_batch<T>(h, "cublas" #L "gemvBatched", op, m, n, alpha, a, nullptr, 0, lda, x, nullptr, 0, incx,   \
                             beta, y, nullptr, 0, incy, count);                                                        \
    }                                                                                                                  \
    EXPORT int cublas##L##gemvStridedBatched(Handle *h, int op, int m, int n, const T *alpha, const T *a, int lda,     \
                                             long long stride_a, const T *x, int incx, long long stride_x,             \
                                             const T *beta, T *y, int incy, long long stride_y, int count) {           \
        return gemv_batch<T>(h, "cublas" #L "gemvStridedBatched", op, m, n, alpha, nullptr, a, stride_a, lda, nullptr, \
                             x, stride_x, incx, beta, nullptr, y, stride_y, incy, count);                              \
    }                                                                                                                  \
    EXPORT int cublas##L##symv_v2(Handle *h, int fill, int n, const T *alpha, const T *a, int lda, const T *x,         \
                                  int incx, const T *beta, T *y, int incy) {                                           \
        return symv<T>(h, "cublas" #L "symv", "symv", fill, n, alpha, a, lda, x, incx, beta, y, incy);                 \
    }                                                                                                                  \
    EXPORT int cublas##L##syr_v2(Handle *h, int fill, int n, const T *alpha, const T *x, int incx, T *a, int lda) {    \
        const T *none = nullptr;                                                                                       \
        return syr<T, false>(h, "cublas" #L "syr", fill, n, alpha, x, incx, none, 1, a, lda);                          \
    }                                                                                                                  \
    EXPORT int cublas##L##syr2_v2(Handle *h, int fill, int n, const T *alpha, const T *x, int incx, const T *y,        \
                                  int incy, T *a, int lda) {                                                           \
        return syr<T, false>(h, "cublas" #L "syr2", fill, n, alpha, x, incx, y, incy, a, lda);                        \
    }                                                                                                                  \
    EXPORT int cublas##L##trmv_v2(Handle *h, int fill, int op, int diagonal, int n, const T *a, int lda, T *x,         \
                                  int incx) {                                                                          \
        return triangular<T>(h, "cublas" #L "trmv", "trmv", fill, op, diagonal, n, a, lda, x, incx);                   \
    }                                                                                                                  \
    EXPORT int cublas##L##trsv_v2(Handle *h, int fill, int op, int diagonal, int n, const T *a, int lda, T *x,         \
                                  int incx) {                                                                          \
        return triangular<T>(h, "cublas" #L "trsv", "trsv", fill, op, diagonal, n, a, lda, x, incx);                   \
    }
FOR_ALL(GENERAL)

#define GER(NAME, ROUTINE, T)                                                                                          \
    EXPORT int cublas##NAME##_v2(Handle *h, int m, int n, const T *alpha, const T *x, int incx, const T *y, int incy,  \
                                 T *a, int lda) {                                                                      \
        return ger<T>(h, "cublas" #NAME, ROUTINE, m, n, alpha, x, incx, y, incy, a, lda);                              \
    }
GER(Sger, "ger", float)
GER(Dger, "ger", double)
GER(Cgeru, "geru", std::complex<float>)
GER(Zgeru, "geru", std::complex<double>)
GER(Cgerc, "gerc", std::complex<float>)
GER(Zgerc, "gerc", std::complex<double>)

#define HERMITIAN(L, T)                                                                                                \
    EXPORT int cublas##L##hemv_v2(Handle *h, int fill, int n, const T *alpha, const T *a, int lda, const T *x,         \
                                  int incx, const T *beta, T *y, int incy) {                                           \
        return symv<T>(h, "cublas" #L "hemv", "hemv", fill, n, alpha, a, lda, x, incx, beta, y, incy);                 \
    }                                                                                                                  \
    EXPORT int cublas##L##her_v2(Handle *h, int fill, int n, const RealOf<T> *alpha, const T *x, int incx, T *a,       \
                                 int lda) {                                                                            \
        const T *none = nullptr;                                                                                       \
        return syr<T, true>(h, "cublas" #L "her", fill, n, alpha, x, incx, none, 1, a, lda);                          \
    }                                                                                                                  \
    EXPORT int cublas##L##her2_v2(Handle *h, int fill, int n, const T *alpha, const T *x, int incx, const T *y,        \
                                  int incy, T *a, int lda) {                                                           \
        return syr<T, true>(h, "cublas" #L "her2", fill, n, alpha, x, incx, y, incy, a, lda);                        \
    }
FOR_COMPLEX(HERMITIAN)

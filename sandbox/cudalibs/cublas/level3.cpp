// Matrices: all products but the general one, and sums.
#include <vector>

#include "cublas.h"

namespace {

template <class T>
void clear(T *c, int64_t rows, int64_t columns, int64_t leading) {
    for (int64_t j = 0; j < columns; j++) std::fill_n(c + j * leading, rows, T(0));
}

template <class T>
bool ready_to_add(DeviceMemory &memory, T beta, T *c, int64_t m, int64_t n, int64_t ldc) {
    Rows all = matrix<T>(m, n, ldc);
    if ((beta != T(0) && !memory.reads("C", c, all)) || !memory.writes("C", c, all)) return false;
    if (beta == T(0)) clear(c, m, n, ldc);
    return true;
}

// C = alpha A B + beta C, or B A, of a symmetric or Hermitian A of which one triangle is given.
template <class T>
Status symm(const Handle *handle, const char *call, const char *routine, int side, int fill, int64_t m, int64_t n,
            const T *alpha, const T *a, int64_t lda, const T *b, int64_t ldb, const T *beta, T *c, int64_t ldc) {
    if (!known(handle)) return kNotInitialized;
    Scalar<T> factor(handle, "alpha", alpha), old(handle, "beta", beta);
    int64_t size = side == kLeft ? m : n;
    if ((side != kLeft && side != kRight) || !valid_fill(fill) || m < 0 || n < 0) return kInvalidValue;
    if (!fits(size, lda) || !fits(m, ldb) || !fits(m, ldc) || !factor.given() || !old.given()) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        T a_factor, c_factor;
        if (!m || !n || !factor.read(memory, a_factor) || !old.read(memory, c_factor)) return;
        Triangle<T> half(a, fill, size, lda);
        if (a_factor != T(0) && (!memory.reads("A", half.from, half.rows) || !memory.reads("B", b, matrix<T>(m, n, ldb)))) return;
        if (!ready_to_add(memory, c_factor, c, m, n, ldc)) return;
        blas<T>(routine, side_letter(side), fill_letter(fill), &m, &n, &a_factor, a, &lda, b, &ldb, &c_factor, c, &ldc);
    });
}

// C = alpha op(A) op(A)^T + beta C, or with a second matrix alpha op(A) op(B)^T + ...: one triangle of it.
template <class T, class Alpha, class Beta>
Status syrk(const Handle *handle, const char *call, const char *routine, int fill, int operation, int64_t n, int64_t k,
            const Alpha *alpha, const T *a, int64_t lda, const T *b, int64_t ldb, const Beta *beta, T *c, int64_t ldc) {
    if (!known(handle)) return kNotInitialized;
    Scalar<Alpha> factor(handle, "alpha", alpha);
    Scalar<Beta> old(handle, "beta", beta);
    int64_t rows = operation == kPlain ? n : k, columns = operation == kPlain ? k : n;
    if (!valid_fill(fill) || !valid(operation) || n < 0 || k < 0 || !fits(rows, lda) || !fits(rows, ldb) || !fits(n, ldc))
        return kInvalidValue;
    // A symmetric product of complex numbers has no conjugate form, a Hermitian one no other transposed form.
    if (kComplex<T> && operation != kPlain && (operation == kConjugated) != (routine[0] == 'h')) return kInvalidValue;
    if (!factor.given() || !old.given()) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        Alpha a_factor;
        Beta c_factor;
        if (!n || !factor.read(memory, a_factor) || !old.read(memory, c_factor)) return;
        Triangle<T> half(c, fill, n, ldc);
        if (a_factor != Alpha(0) && k) {
            if (!memory.reads("A", a, matrix<T>(rows, columns, lda))) return;
            if (b && !memory.reads("B", b, matrix<T>(rows, columns, ldb))) return;
        }
        if (c_factor != Beta(0) && !memory.reads("C", half.from, half.rows)) return;
        if (!memory.writes("C", half.from, half.rows)) return;
        for (int64_t j = 0; c_factor == Beta(0) && j < n; j++) {
            int64_t from = fill == kLower ? j : 0;
            std::fill_n(c + j * ldc + from, fill == kLower ? n - j : j + 1, T(0));
        }
        const char *op = letter(static_cast<Operation>(operation));
        if (b)
            blas<T>(routine, fill_letter(fill), op, &n, &k, &a_factor, a, &lda, b, &ldb, &c_factor, c, &ldc);
        else
            blas<T>(routine, fill_letter(fill), op, &n, &k, &a_factor, a, &lda, &c_factor, c, &ldc);
    });
}

struct Shape {
    int side, fill, operation, diagonal;
    int64_t m, n, lda;

    bool valid() const {
        return (side == kLeft || side == kRight) && valid_fill(fill) && ::valid(operation) &&
               (diagonal == kGiven || diagonal == kUnit) && m >= 0 && n >= 0 && fits(size(), lda);
    }
    int64_t size() const { return side == kLeft ? m : n; }
};

// B = alpha op(A) B, or what op(A) makes to alpha B, in place; A is triangular.
template <class T>
bool triangular(DeviceMemory &memory, const char *routine, const Shape &shape, T alpha, const T *a, T *b, int64_t ldb) {
    Triangle<T> half(a, shape.fill, shape.size(), shape.lda, shape.diagonal == kGiven);
    if (alpha != T(0) && !memory.reads("A", half.from, half.rows)) return false;
    blas<T>(routine, side_letter(shape.side), fill_letter(shape.fill), letter(static_cast<Operation>(shape.operation)),
            diagonal_letter(shape.diagonal), &shape.m, &shape.n, &alpha, a, &shape.lda, b, &ldb);
    return true;
}

template <class T>
Status trsm(const Handle *handle, const char *call, const Shape &shape, const T *alpha, const T *const *as, const T *a,
            T *const *bs, T *b, int64_t ldb, int64_t count) {
    if (!known(handle)) return kNotInitialized;
    Scalar<T> factor(handle, "alpha", alpha);
    if (!shape.valid() || !fits(shape.m, ldb) || count < 0 || !factor.given()) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        T a_factor;
        if (!shape.m || !shape.n || !factor.read(memory, a_factor)) return;
        Rows places{sizeof(T *) * static_cast<size_t>(count)}, all = matrix<T>(shape.m, shape.n, ldb);
        if (as && (!memory.reads("A", as, places) || !memory.reads("B", bs, places))) return;
        for (int64_t i = 0; i < count; i++) {
            T *one = bs ? bs[i] : b;
            if (a_factor != T(0) && !memory.reads("B", one, all)) return;
            if (!memory.writes("B", one, all)) return;
            if (a_factor == T(0)) clear(one, shape.m, shape.n, ldb);
            if (!triangular(memory, "trsm", shape, a_factor, as ? as[i] : a, one, ldb)) return;
        }
    });
}

template <class T>
Status trmm(const Handle *handle, const char *call, const Shape &shape, const T *alpha, const T *a, const T *b, int64_t ldb,
            T *c, int64_t ldc) {
    if (!known(handle)) return kNotInitialized;
    Scalar<T> factor(handle, "alpha", alpha);
    if (!shape.valid() || !fits(shape.m, ldb) || !fits(shape.m, ldc) || !factor.given()) return kInvalidValue;
    if (b == c && ldb != ldc) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        T a_factor;
        if (!shape.m || !shape.n || !factor.read(memory, a_factor)) return;
        if (a_factor != T(0) && !memory.reads("B", b, matrix<T>(shape.m, shape.n, ldb))) return;
        if (!memory.writes("C", c, matrix<T>(shape.m, shape.n, ldc))) return;
        for (int64_t j = 0; b != c && a_factor != T(0) && j < shape.n; j++) std::copy_n(b + j * ldb, shape.m, c + j * ldc);
        if (a_factor == T(0)) clear(c, shape.m, shape.n, ldc);
        triangular(memory, "trmm", shape, a_factor, a, c, ldc);
    });
}

// An element of op(A).
template <class T>
T element(Operation operation, const T *a, int64_t lda, int64_t i, int64_t j) {
    T value = operation == kPlain ? a[i + j * lda] : a[j + i * lda];
    return operation == kConjugated ? conjugate(value) : value;
}

// C = alpha op(A) + beta op(B). C may be A or B where that one is not transposed.
template <class T>
Status geam(const Handle *handle, const char *call, int operation_a, int operation_b, int64_t m, int64_t n, const T *alpha,
            const T *a, int64_t lda, const T *beta, const T *b, int64_t ldb, T *c, int64_t ldc) {
    if (!known(handle)) return kNotInitialized;
    Scalar<T> factor_a(handle, "alpha", alpha), factor_b(handle, "beta", beta);
    if (!valid(operation_a) || !valid(operation_b) || m < 0 || n < 0 || !factor_a.given() || !factor_b.given()) return kInvalidValue;
    auto op_a = static_cast<Operation>(operation_a), op_b = static_cast<Operation>(operation_b);
    if (!fits(op_a == kPlain ? m : n, lda) || !fits(op_b == kPlain ? m : n, ldb) || !fits(m, ldc)) return kInvalidValue;
    if ((c == a && (op_a != kPlain || lda != ldc)) || (c == b && (op_b != kPlain || ldb != ldc))) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        T by_a, by_b;
        if (!m || !n || !factor_a.read(memory, by_a) || !factor_b.read(memory, by_b)) return;
        auto given = [&](Operation op, int64_t leading) {
            return op == kPlain ? matrix<T>(m, n, leading) : matrix<T>(n, m, leading);
        };
        if (by_a != T(0) && !memory.reads("A", a, given(op_a, lda))) return;
        if (by_b != T(0) && !memory.reads("B", b, given(op_b, ldb))) return;
        if (!memory.writes("C", c, matrix<T>(m, n, ldc))) return;
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < m; i++) {
                T sum = by_a != T(0) ? by_a * element(op_a, a, lda, i, j) : T(0);
                if (by_b != T(0)) sum += by_b * element(op_b, b, ldb, i, j);
                c[i + j * ldc] = sum;
            }
    });
}

// C = A diag(x), or diag(x) A.
template <class T>
Status dgmm(const Handle *handle, const char *call, int side, int64_t m, int64_t n, const T *a, int64_t lda, const T *x,
            int64_t step, T *c, int64_t ldc) {
    if (!known(handle)) return kNotInitialized;
    if ((side != kLeft && side != kRight) || m < 0 || n < 0 || !fits(m, lda) || !fits(m, ldc)) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        int64_t count = side == kLeft ? m : n;
        if (!m || !n || !memory.reads("A", a, matrix<T>(m, n, lda)) || !memory.reads("x", x, vector<T>(count, step))) return;
        if (!memory.writes("C", c, matrix<T>(m, n, ldc))) return;
        const T *from = step < 0 ? x + (1 - count) * step : x;
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < m; i++) c[i + j * ldc] = a[i + j * lda] * from[(side == kLeft ? i : j) * step];
    });
}

}  // namespace

#define MATRICES(L, T)                                                                                                 \
    EXPORT int cublas##L##symm_v2(Handle *h, int side, int fill, int m, int n, const T *alpha, const T *a, int lda,    \
                                  const T *b, int ldb, const T *beta, T *c, int ldc) {                                 \
        return symm<T>(h, "cublas" #L "symm", "symm", side, fill, m, n, alpha, a, lda, b, ldb, beta, c, ldc);          \
    }                                                                                                                  \
    EXPORT int cublas##L##syrk_v2(Handle *h, int fill, int op, int n, int k, const T *alpha, const T *a, int lda,      \
                                  const T *beta, T *c, int ldc) {                                                      \
        const T *none = nullptr;                                                                                       \
        return syrk<T>(h, "cublas" #L "syrk", "syrk", fill, op, n, k, alpha, a, lda, none, lda, beta, c, ldc);         \
    }                                                                                                                  \
    EXPORT int cublas##L##syr2k_v2(Handle *h, int fill, int op, int n, int k, const T *alpha, const T *a, int lda,     \
                                   const T *b, int ldb, const T *beta, T *c, int ldc) {                                \
        return syrk<T>(h, "cublas" #L "syr2k", "syr2k", fill, op, n, k, alpha, a, lda, b, ldb, beta, c, ldc);          \
    }                                                                                                                  \
    EXPORT int cublas##L##trsm_v2(Handle *h, int side, int fill, int op, int diagonal, int m, int n, const T *alpha,   \
                                  const T *a, int lda, T *b, int ldb) {                                                \
        return trsm<T>(h, "cublas" #L "trsm", {side, fill, op, diagonal, m, n, lda}, alpha, nullptr, a, nullptr, b,    \
                       ldb, 1);                                                                                        \
    }                                                                                                                  \
    EXPORT int cublas##L##trsmBatched(Handle *h, int side, int fill, int op, int diagonal, int m, int n,               \
                                      const T *alpha, const T *const *a, int lda, T *const *b, int ldb, int count) {   \
        return trsm<T>(h, "cublas" #L "trsmBatched", {side, fill, op, diagonal, m, n, lda}, alpha, a, nullptr, b,      \
                       nullptr, ldb, count);                                                                           \
    }                                                                                                                  \
    EXPORT int cublas##L##trmm_v2(Handle *h, int side, int fill, int op, int diagonal, int m, int n, const T *alpha,   \
                                  const T *a, int lda, const T *b, int ldb, T *c, int ldc) {                           \
        return trmm<T>(h, "cublas" #L "trmm", {side, fill, op, diagonal, m, n, lda}, alpha, a, b, ldb, c, ldc);        \
    }                                                                                                                  \
    EXPORT int cublas##L##geam(Handle *h, int op_a, int op_b, int m, int n, const T *alpha, const T *a, int lda,       \
                               const T *beta, const T *b, int ldb, T *c, int ldc) {                                    \
        return geam<T>(h, "cublas" #L "geam", op_a, op_b, m, n, alpha, a, lda, beta, b, ldb, c, ldc);                  \
    }                                                                                                                  \
    EXPORT int cublas##L##dgmm(Handle *h, int side, int m, int n, const T *a, int lda, const T *x, int incx, T *c,     \
                               int ldc) {                                                                              \
        return dgmm<T>(h, "cublas" #L "dgmm", side, m, n, a, lda, x, incx, c, ldc);                                    \
    }
FOR_ALL(MATRICES)

#define HERMITIAN(L, T)                                                                                                \
    EXPORT int cublas##L##hemm_v2(Handle *h, int side, int fill, int m, int n, const T *alpha, const T *a, int lda,    \
                                  const T *b, int ldb, const T *beta, T *c, int ldc) {                                 \
        return symm<T>(h, "cublas" #L "hemm", "hemm", side, fill, m, n, alpha, a, lda, b, ldb, beta, c, ldc);          \
    }                                                                                                                  \
    EXPORT int cublas##L##herk_v2(Handle *h, int fill, int op, int n, int k, const RealOf<T> *alpha, const T *a,       \
                                  int lda, const RealOf<T> *beta, T *c, int ldc) {                                     \
        const T *none = nullptr;                                                                                       \
        return syrk<T>(h, "cublas" #L "herk", "herk", fill, op, n, k, alpha, a, lda, none, lda, beta, c, ldc);         \
    }                                                                                                                  \
    EXPORT int cublas##L##her2k_v2(Handle *h, int fill, int op, int n, int k, const T *alpha, const T *a, int lda,     \
                                   const T *b, int ldb, const RealOf<T> *beta, T *c, int ldc) {                        \
        return syrk<T>(h, "cublas" #L "her2k", "her2k", fill, op, n, k, alpha, a, lda, b, ldb, beta, c, ldc);          \
    }
FOR_COMPLEX(HERMITIAN)

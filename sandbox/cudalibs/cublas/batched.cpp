// Batches of small systems of equations: triangular factors, solutions, inverses. OpenBLAS has LAPACK's routines.
#include <vector>

#include "cublas.h"

namespace {

struct Pivots {
    std::vector<int64_t> rows;  // counted from one

    Pivots(const int *given, int64_t n) : rows(static_cast<size_t>(n)) {
        for (int64_t i = 0; i < n; i++) rows[static_cast<size_t>(i)] = given ? given[i] : i + 1;
    }
};

// L U in place without exchanging rows. Returns what LAPACK does: 0, or the place of the first pivot that is 0.
template <class T>
int factor_without_pivots(T *a, int64_t n, int64_t lda) {
    int failed = 0;
    for (int64_t k = 0; k < n; k++) {
        T pivot = a[k + k * lda];
        if (pivot == T(0)) {
            if (!failed) failed = static_cast<int>(k + 1);
            continue;
        }
        for (int64_t i = k + 1; i < n; i++) a[i + k * lda] /= pivot;
        for (int64_t j = k + 1; j < n; j++)
            for (int64_t i = k + 1; i < n; i++) a[i + j * lda] -= a[i + k * lda] * a[k + j * lda];
    }
    return failed;
}

template <class T>
int factor(T *a, int64_t n, int64_t lda, int *pivots) {
    if (!pivots) return factor_without_pivots(a, n, lda);
    Pivots exchanged(nullptr, n);
    int64_t info = 0;
    blas<T>("getrf", &n, &n, a, &lda, exchanged.rows.data(), &info);
    for (int64_t i = 0; i < n; i++) pivots[i] = static_cast<int>(exchanged.rows[static_cast<size_t>(i)]);
    return static_cast<int>(info);
}

// The inverse of what `factor` left, in place.
template <class T>
int invert(T *a, int64_t n, int64_t lda, const int *pivots) {
    Pivots exchanged(pivots, n);
    int64_t info = 0, room = std::max<int64_t>(n, 1) * 64;
    std::vector<T> work(static_cast<size_t>(room));
    blas<T>("getri", &n, a, &lda, exchanged.rows.data(), work.data(), &room, &info);
    return static_cast<int>(info);
}

template <class T>
Rows list(int64_t count) {
    return {sizeof(T) * static_cast<size_t>(count)};
}

template <class T>
bool changes(DeviceMemory &memory, const char *what, T *at, const Rows &rows) {
    return memory.reads(what, at, rows) && memory.writes(what, at, rows);
}

template <class T>
Status getrf(const Handle *handle, const char *call, int64_t n, T *const *as, int64_t lda, int *pivots, int *infos, int64_t count) {
    if (!known(handle)) return kNotInitialized;
    if (n < 0 || count < 0 || !fits(n, lda)) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        if (!count || !n || !memory.reads("Aarray", as, list<T *>(count)) || !memory.writes("infoArray", infos, list<int>(count)))
            return;
        if (pivots && !memory.writes("PivotArray", pivots, list<int>(n * count))) return;
        for (int64_t i = 0; i < count; i++) {
            if (!changes(memory, "A", as[i], matrix<T>(n, n, lda))) return;
            infos[i] = factor(as[i], n, lda, pivots ? pivots + i * n : nullptr);
        }
    });
}

template <class T>
Status getri(const Handle *handle, const char *call, int64_t n, const T *const *as, int64_t lda, const int *pivots, T *const *cs,
             int64_t ldc, int *infos, int64_t count) {
    if (!known(handle)) return kNotInitialized;
    if (n < 0 || count < 0 || !fits(n, lda) || !fits(n, ldc)) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        if (!count || !n || !memory.reads("Aarray", as, list<T *>(count)) || !memory.reads("Carray", cs, list<T *>(count))) return;
        if (pivots && !memory.reads("PivotArray", pivots, list<int>(n * count))) return;
        if (!memory.writes("infoArray", infos, list<int>(count))) return;
        for (int64_t i = 0; i < count; i++) {
            if (!memory.reads("A", as[i], matrix<T>(n, n, lda)) || !memory.writes("C", cs[i], matrix<T>(n, n, ldc))) return;
            for (int64_t j = 0; j < n; j++) std::copy_n(as[i] + j * lda, n, cs[i] + j * ldc);
            infos[i] = invert(cs[i], n, ldc, pivots ? pivots + i * n : nullptr);
        }
    });
}

template <class T>
Status getrs(const Handle *handle, const char *call, int operation, int64_t n, int64_t sides, const T *const *as, int64_t lda,
             const int *pivots, T *const *bs, int64_t ldb, int *info, int64_t count) {
    if (!known(handle)) return kNotInitialized;
    if (!info) return kInvalidValue;
    int wrong = !valid(operation) ? -1 : n < 0 ? -2 : sides < 0 ? -3 : !fits(n, lda) ? -5 : !fits(n, ldb) ? -8 : count < 0 ? -10 : 0;
    *info = wrong;  // it lies on the host, and tells of wrong arguments alone
    if (wrong) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        if (!count || !n || !sides || !memory.reads("Aarray", as, list<T *>(count)) || !memory.reads("Barray", bs, list<T *>(count)))
            return;
        if (pivots && !memory.reads("devIpiv", pivots, list<int>(n * count))) return;
        for (int64_t i = 0; i < count; i++) {
            if (!memory.reads("A", as[i], matrix<T>(n, n, lda)) || !changes(memory, "B", bs[i], matrix<T>(n, sides, ldb))) return;
            Pivots exchanged(pivots ? pivots + i * n : nullptr, n);
            int64_t failed = 0;
            blas<T>("getrs", letter(static_cast<Operation>(operation)), &n, &sides, as[i], &lda, exchanged.rows.data(), bs[i],
                    &ldb, &failed);
        }
    });
}

template <class T>
Status matinv(const Handle *handle, const char *call, int64_t n, const T *const *as, int64_t lda, T *const *cs, int64_t ldc,
              int *infos, int64_t count) {
    constexpr int64_t kMost = 32;  // real cuBLAS has no larger ones either
    if (!known(handle)) return kNotInitialized;
    if (n < 0 || n > kMost || count < 0 || !fits(n, lda) || !fits(n, ldc)) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        if (!count || !n || !memory.reads("A", as, list<T *>(count)) || !memory.reads("Ainv", cs, list<T *>(count))) return;
        if (!memory.writes("info", infos, list<int>(count))) return;
        std::vector<int> pivots(static_cast<size_t>(n));
        for (int64_t i = 0; i < count; i++) {
            if (!memory.reads("A", as[i], matrix<T>(n, n, lda)) || !memory.writes("Ainv", cs[i], matrix<T>(n, n, ldc))) return;
            for (int64_t j = 0; j < n; j++) std::copy_n(as[i] + j * lda, n, cs[i] + j * ldc);
            infos[i] = factor(cs[i], n, ldc, pivots.data());
            if (!infos[i]) infos[i] = invert(cs[i], n, ldc, pivots.data());
        }
    });
}

}  // namespace

#define SYSTEMS(L, T)                                                                                                  \
    EXPORT int cublas##L##getrfBatched(Handle *h, int n, T *const *a, int lda, int *pivots, int *info, int count) {    \
        return getrf<T>(h, "cublas" #L "getrfBatched", n, a, lda, pivots, info, count);                                \
    }                                                                                                                  \
    EXPORT int cublas##L##getriBatched(Handle *h, int n, const T *const *a, int lda, const int *pivots, T *const *c,   \
                                       int ldc, int *info, int count) {                                                \
        return getri<T>(h, "cublas" #L "getriBatched", n, a, lda, pivots, c, ldc, info, count);                        \
    }                                                                                                                  \
    EXPORT int cublas##L##getrsBatched(Handle *h, int op, int n, int sides, const T *const *a, int lda,                \
                                       const int *pivots, T *const *b, int ldb, int *info, int count) {                \
        return getrs<T>(h, "cublas" #L "getrsBatched", op, n, sides, a, lda, pivots, b, ldb, info, count);             \
    }                                                                                                                  \
    EXPORT int cublas##L##matinvBatched(Handle *h, int n, const T *const *a, int lda, T *const *c, int ldc, int *info, \
                                        int count) {                                                                   \
        return matinv<T>(h, "cublas" #L "matinvBatched", n, a, lda, c, ldc, info, count);                              \
    }
FOR_ALL(SYSTEMS)

// The general product, alone and in batches, of one type or of narrow ones that are widened for it.
#include <string>
#include <thread>
#include <vector>

#include "any_type.h"

void each(int64_t count, const std::function<void(int64_t)> &work) {
    constexpr int64_t kPiece = 64;  // fewer are done sooner than a thread starts
    int64_t threads = std::clamp<int64_t>(count / kPiece, 1, kernelwright_library_threads());
    auto part = [&](int64_t thread) {
        for (int64_t i = count * thread / threads; i < count * (thread + 1) / threads; i++) work(i);
    };
    std::vector<std::jthread> helpers;
    for (int64_t thread = 1; thread < threads; thread++) helpers.emplace_back(part, thread);
    part(0);
}

template <class T>
bool Product<T>::check(DeviceMemory &memory, T alpha, const T *a, const T *b, T beta, T *c) const {
    if (!m || !n) return true;
    if (alpha != T(0) && k) {
        if (!memory.reads("A", a, transposed_a == kPlain ? matrix<T>(m, k, lda) : matrix<T>(k, m, lda))) return false;
        if (!memory.reads("B", b, transposed_b == kPlain ? matrix<T>(k, n, ldb) : matrix<T>(n, k, ldb))) return false;
    }
    if (beta != T(0) && !memory.reads("C", c, matrix<T>(m, n, ldc))) return false;
    return memory.writes("C", c, matrix<T>(m, n, ldc));
}

template <class T>
void Product<T>::compute(T alpha, const T *a, const T *b, T beta, T *c) const {
    bool multiplies = alpha != T(0) && k;
    for (int64_t j = 0; j < n; j++) {
        // With beta 0 what C held does not count, were it a NaN. Without a product nothing is asked of OpenBLAS.
        if (beta == T(0)) std::fill_n(c + j * ldc, m, T(0));
        for (int64_t i = 0; !multiplies && beta != T(0) && i < m; i++) c[i + j * ldc] *= beta;
    }
    if (!multiplies || !m || !n) return;
    blas<T>("gemm", letter(transposed_a), letter(transposed_b), &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

namespace {

// A batch of matrices: in an array of pointers on the device, or the same distance apart.
template <class T>
struct Places {
    T *const *list = nullptr;
    T *first = nullptr;
    int64_t stride = 0;
    T *operator[](int64_t i) const { return list ? list[i] : first + i * stride; }
    bool known(DeviceMemory &memory, const char *what, int64_t count) const {
        return !list || memory.reads(what, list, {sizeof(T *) * static_cast<size_t>(count)});
    }
};

template <class T>
Status gemm(const Handle *handle, const char *call, int op_a, int op_b, int64_t m, int64_t n, int64_t k, const T *alpha,
            Places<const T> a, int64_t lda, Places<const T> b, int64_t ldb, const T *beta, Places<T> c, int64_t ldc,
            int64_t count = 1) {
    if (!known(handle)) return kNotInitialized;
    if (!valid(op_a) || !valid(op_b) || count < 0) return kInvalidValue;
    Product<T> product{static_cast<Operation>(op_a), static_cast<Operation>(op_b), m, n, k, lda, ldb, ldc};
    Scalar<T> factor(handle, "alpha", alpha), old(handle, "beta", beta);
    if (!product.valid() || !factor.given() || !old.given()) return kInvalidValue;
    return perform(handle, call, [=](DeviceMemory &memory) {
        T by, keep;
        if (!factor.read(memory, by) || !old.read(memory, keep)) return;
        if (!a.known(memory, "Aarray", count) || !b.known(memory, "Barray", count) || !c.known(memory, "Carray", count)) return;
        for (int64_t i = 0; i < count; i++)
            if (!product.check(memory, by, a[i], b[i], keep, c[i])) return;
        each(count, [&](int64_t i) { product.compute(by, a[i], b[i], keep, c[i]); });
    });
}

enum class Sum { half, single, twice, whole, unknown };

Sum sum_of(int compute) {  // cublasComputeType_t; the faster forms are computed like the plain ones
    switch (compute) {
    case 64:
    case 65:
        return Sum::half;
    case 68:
    case 69:
    case 74:
    case 75:
    case 77:
    case 78:
        return Sum::single;
    case 70:
    case 71:
        return Sum::twice;
    case 72:
    case 73:
        return Sum::whole;
    default:
        return Sum::unknown;
    }
}

// The dense columns of a matrix of `type`.
template <class T>
std::vector<T> widened(int type, const char *from, int64_t rows, int64_t columns, int64_t leading) {
    std::vector<T> all(static_cast<size_t>(rows * columns));
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            all[static_cast<size_t>(i + j * rows)] = static_cast<T>(load(type, from + (i + j * leading) * size_of(type)).real());
    return all;
}

// A product of narrow numbers. T: what sums are made in; double for whole numbers, which it holds exactly.
template <class T>
struct Narrow {
    Product<T> product;
    int type, type_c;

    int64_t rows_a() const { return product.transposed_a == kPlain ? product.m : product.k; }
    int64_t rows_b() const { return product.transposed_b == kPlain ? product.k : product.n; }
    int64_t columns_a() const { return product.transposed_a == kPlain ? product.k : product.m; }
    int64_t columns_b() const { return product.transposed_b == kPlain ? product.n : product.k; }

    bool check(DeviceMemory &memory, double alpha, const char *a, const char *b, double beta, char *c) const {
        if (!product.m || !product.n) return true;
        auto rows = [](int64_t rows, int64_t columns, int64_t leading, int64_t bytes) {
            return Rows{static_cast<size_t>(rows * bytes), static_cast<size_t>(columns), leading * bytes};
        };
        bool multiplies = alpha != 0 && product.k;
        if (multiplies && !memory.reads("A", a, rows(rows_a(), columns_a(), product.lda, size_of(type)))) return false;
        if (multiplies && !memory.reads("B", b, rows(rows_b(), columns_b(), product.ldb, size_of(type)))) return false;
        Rows all = rows(product.m, product.n, product.ldc, size_of(type_c));
        return (beta == 0 || memory.reads("C", c, all)) && memory.writes("C", c, all);
    }

    void compute(double alpha, const char *a, const char *b, double beta, char *c) const {
        const auto &[op_a, op_b, m, n, k, lda, ldb, ldc] = product;
        std::vector<T> sums(static_cast<size_t>(m * n));
        if (alpha != 0 && k && !sums.empty()) {
            std::vector<T> wide_a = widened<T>(type, a, rows_a(), columns_a(), lda);
            std::vector<T> wide_b = widened<T>(type, b, rows_b(), columns_b(), ldb);
            Product<T>{op_a, op_b, m, n, k, rows_a(), rows_b(), m}.compute(static_cast<T>(alpha), wide_a.data(), wide_b.data(),
                                                                         T(0), sums.data());
        }
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < m; i++) {
                char *to = c + (i + j * ldc) * size_of(type_c);
                T sum = sums[static_cast<size_t>(i + j * m)];
                if (beta != 0) sum += static_cast<T>(beta) * static_cast<T>(load(type_c, to).real());
                store(type_c, sum, to);
            }
    }
};

struct Extended {
    int op_a, op_b;
    int64_t m, n, k;
    const void *alpha;
    const void *a;
    int type_a;
    int64_t lda, stride_a;
    const void *b;
    int type_b;
    int64_t ldb, stride_b;
    const void *beta;
    void *c;
    int type_c;
    int64_t ldc, stride_c;
    int64_t count;
    int compute;
    bool listed = false;  // a, b, c are arrays of pointers

    template <class P>
    auto places(P *at, int64_t stride) const {
        if (listed) return Places<P>{reinterpret_cast<P *const *>(reinterpret_cast<uintptr_t>(at)), nullptr, 0};
        return Places<P>{nullptr, at, stride};
    }

    template <class T>
    Status whole(const Handle *handle, const char *call) const {
        return gemm<T>(handle, call, op_a, op_b, m, n, k, static_cast<const T *>(alpha),
                       places(static_cast<const T *>(a), stride_a), lda, places(static_cast<const T *>(b), stride_b), ldb,
                       static_cast<const T *>(beta), places(static_cast<T *>(c), stride_c), ldc, count);
    }

    template <class T>
    Status narrow(const Handle *handle, const char *call, int scale) const {
        AnyScalar factor(handle, "alpha", scale, alpha), old(handle, "beta", scale, beta);
        if (!valid(op_a) || !valid(op_b) || count < 0 || !factor.given() || !old.given()) return kInvalidValue;
        Narrow<T> one{{static_cast<Operation>(op_a), static_cast<Operation>(op_b), m, n, k, lda, ldb, ldc}, type_a, type_c};
        if (!one.product.valid()) return kInvalidValue;
        auto from_a = places(static_cast<const char *>(a), stride_a * size_of(type_a));
        auto from_b = places(static_cast<const char *>(b), stride_b * size_of(type_b));
        auto to = places(static_cast<char *>(c), stride_c * size_of(type_c));
        int64_t times = count;
        return perform(handle, call, [=](DeviceMemory &memory) {
            auto by = factor.read(memory), keep = old.read(memory);
            if (!by || !keep) return;
            if (!from_a.known(memory, "Aarray", times) || !from_b.known(memory, "Barray", times)) return;
            if (!to.known(memory, "Carray", times)) return;
            for (int64_t i = 0; i < times; i++)
                if (!one.check(memory, by->real(), from_a[i], from_b[i], keep->real(), to[i])) return;
            each(times, [&](int64_t i) { one.compute(by->real(), from_a[i], from_b[i], keep->real(), to[i]); });
        });
    }

    Status start(const Handle *handle, const char *call) const {
        if (!known(handle)) return kNotInitialized;
        Sum sum = sum_of(compute);
        if (type_a == type_b && type_a == type_c) {
            if (sum == Sum::single && type_a == kR32F) return whole<float>(handle, call);
            if (sum == Sum::single && type_a == kC32F) return whole<std::complex<float>>(handle, call);
            if (sum == Sum::twice && type_a == kR64F) return whole<double>(handle, call);
            if (sum == Sum::twice && type_a == kC64F) return whole<std::complex<double>>(handle, call);
        }
        bool into_single = type_c == kR32F && (type_a == kR16F || type_a == kR16BF || type_a == kR8I);
        bool same_half = type_c == type_a && (type_a == kR16F || type_a == kR16BF);
        if (type_a == type_b) {
            if (sum == Sum::single && (into_single || same_half)) return narrow<float>(handle, call, kR32F);
            if (sum == Sum::half && type_a == kR16F && type_c == kR16F) return narrow<float>(handle, call, kR16F);
            if (sum == Sum::whole && type_a == kR8I && type_c == kR32I) return narrow<double>(handle, call, kR32I);
        }
        std::string why = "a product of the types (cudaDataType) " + std::to_string(type_a) + " and " + std::to_string(type_b) +
                          " into " + std::to_string(type_c) + ", computed in cublasComputeType_t " + std::to_string(compute) +
                          ", is not offered";
        return refuse(call, why.c_str());
    }
};

constexpr int kHalf = 64, kSingle = 68;

}  // namespace

#define PRODUCTS(L, T)                                                                                                 \
    EXPORT int cublas##L##gemm_v2(Handle *h, int op_a, int op_b, int m, int n, int k, const T *alpha, const T *a,      \
                                  int lda, const T *b, int ldb, const T *beta, T *c, int ldc) {                        \
        return gemm<T>(h, "cublas" #L "gemm", op_a, op_b, m, n, k, alpha, {nullptr, a, 0}, lda, {nullptr, b, 0}, ldb,  \
                       beta, {nullptr, c, 0}, ldc);                                                                    \
    }                                                                                                                  \
    EXPORT int cublas##L##gemmBatched(Handle *h, int op_a, int op_b, int m, int n, int k, const T *alpha,              \
                                      const T *const *a, int lda, const T *const *b, int ldb, const T *beta,           \
                                      T *const *c, int ldc, int count) {                                               \
        return gemm<T>(h, "cublas" #L "gemmBatched", op_a, op_b, m, n, k, alpha, {a, nullptr, 0}, lda,                 \
                       {b, nullptr, 0}, ldb, beta, {c, nullptr, 0}, ldc, count);                                       \
    }                                                                                                                  \
    EXPORT int cublas##L##gemmStridedBatched(Handle *h, int op_a, int op_b, int m, int n, int k, const T *alpha,       \
                                             const T *a, int lda, long long stride_a, const T *b, int ldb,             \
                                             long long stride_b, const T *beta, T *c, int ldc, long long stride_c,     \
                                             int count) {                                                              \
        return gemm<T>(h, "cublas" #L "gemmStridedBatched", op_a, op_b, m, n, k, alpha, {nullptr, a, stride_a}, lda,   \
                       {nullptr, b, stride_b}, ldb, beta, {nullptr, c, stride_c}, ldc, count);                         \
    }
FOR_ALL(PRODUCTS)

EXPORT int cublasGemmEx(Handle *h, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a,
                        int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
                        int compute, int) {
    Extended product{op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c, type_c, ldc, 0, 1, compute};
    return product.start(h, "cublasGemmEx");
}

EXPORT int cublasGemmStridedBatchedEx(Handle *h, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a,
                                      int type_a, int lda, long long stride_a, const void *b, int type_b, int ldb,
                                      long long stride_b, const void *beta, void *c, int type_c, int ldc,
                                      long long stride_c, int count, int compute, int) {
    Extended product{op_a, op_b,     m,    n, k,      alpha, a,        type_a, lda,   stride_a, b,
                     type_b, ldb, stride_b, beta, c, type_c, ldc,   stride_c, count, compute};
    return product.start(h, "cublasGemmStridedBatchedEx");
}

EXPORT int cublasGemmBatchedEx(Handle *h, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *const *a,
                               int type_a, int lda, const void *const *b, int type_b, int ldb, const void *beta,
                               void *const *c, int type_c, int ldc, int count, int compute, int) {
    Extended product{op_a, op_b, m, n,    k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, const_cast<void **>(c), type_c,
                     ldc,  0,    count, compute, true};
    return product.start(h, "cublasGemmBatchedEx");
}

EXPORT int cublasSgemmEx(Handle *h, int op_a, int op_b, int m, int n, int k, const float *alpha, const void *a, int type_a,
                         int lda, const void *b, int type_b, int ldb, const float *beta, void *c, int type_c, int ldc) {
    Extended product{op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c, type_c, ldc, 0, 1, kSingle};
    return product.start(h, "cublasSgemmEx");
}

EXPORT int cublasHgemm(Handle *h, int op_a, int op_b, int m, int n, int k, const uint16_t *alpha, const uint16_t *a, int lda,
                       const uint16_t *b, int ldb, const uint16_t *beta, uint16_t *c, int ldc) {
    Extended product{op_a, op_b, m, n, k, alpha, a, kR16F, lda, 0, b, kR16F, ldb, 0, beta, c, kR16F, ldc, 0, 1, kHalf};
    return product.start(h, "cublasHgemm");
}

EXPORT int cublasHgemmStridedBatched(Handle *h, int op_a, int op_b, int m, int n, int k, const uint16_t *alpha,
                                     const uint16_t *a, int lda, long long stride_a, const uint16_t *b, int ldb,
                                     long long stride_b, const uint16_t *beta, uint16_t *c, int ldc, long long stride_c,
                                     int count) {
    Extended product{op_a,  op_b, m,        n,    k, alpha, a,   kR16F,    lda,   stride_a, b,
                     kR16F, ldb,  stride_b, beta, c, kR16F, ldc, stride_c, count, kHalf};
    return product.start(h, "cublasHgemmStridedBatched");
}

EXPORT int cublasHgemmBatched(Handle *h, int op_a, int op_b, int m, int n, int k, const uint16_t *alpha,
                              const uint16_t *const *a, int lda, const uint16_t *const *b, int ldb, const uint16_t *beta,
                              uint16_t *const *c, int ldc, int count) {
    Extended product{op_a, op_b, m, n,     k,    alpha, a, kR16F, lda, 0, b, kR16F, ldb, 0, beta, const_cast<uint16_t **>(c),
                     kR16F, ldc, 0, count, kHalf, true};
    return product.start(h, "cublasHgemmBatched");
}

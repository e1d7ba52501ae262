// Vectors of any type: the calls whose names end in Ex. Sums are made in double.
#include "any_type.h"

#include <string>

namespace {

// What is computed in: float for the short types, else the type itself.
int computed_in(int type) { return type == kR16F || type == kR16BF ? kR32F : type; }

bool has_vectors(int type) {
    for (int one : {kR16F, kR16BF, kR32F, kR64F, kC32F, kC64F})
        if (type == one) return true;
    return false;
}

int real_of(int type) { return type == kC32F ? kR32F : type == kC64F ? kR64F : type; }

Status refuse_types(const char *call, std::initializer_list<int> types) {
    std::string why = "vectors of the types (cudaDataType)";
    for (int type : types) why += " " + std::to_string(type);
    return refuse(call, (why + " are not offered").c_str());
}

// Elements of a vector, `step` apart; with a negative step the first one is the last in memory.
struct Vector {
    const void *at;
    int type;
    int64_t count, step;

    Rows rows() const {
        return {static_cast<size_t>(size_of(type)), static_cast<size_t>(count), std::abs(step) * size_of(type)};
    }
    char *place(int64_t i) const {
        int64_t number = step < 0 ? (i - (count - 1)) * step : i * step;
        return const_cast<char *>(static_cast<const char *>(at)) + number * size_of(type);
    }
    std::complex<double> operator[](int64_t i) const { return load(type, place(i)); }
};

bool give(DeviceMemory &memory, bool on_device, int type, std::complex<double> value, void *to) {
    if (on_device && !memory.writes("the result", to, {static_cast<size_t>(size_of(type))})) return false;
    store(type, value, to);
    return true;
}

bool given(const Handle *handle, const void *result) {
    return result && (handle->scalars_on_device || on_host("the result", result));
}

Status dot(const Handle *handle, const char *call, bool conjugates, int n, const void *x, int x_type, int incx, const void *y,
           int y_type, int incy, void *result, int result_type, int compute) {
    if (!known(handle)) return kNotInitialized;
    if (!given(handle, result) || (n > 0 && (!x || !y))) return kInvalidValue;
    if (!has_vectors(x_type) || y_type != x_type || result_type != x_type || compute != computed_in(x_type))
        return refuse_types(call, {x_type, y_type, result_type, compute});
    Vector a{x, x_type, std::max(n, 0), incx}, b{y, y_type, std::max(n, 0), incy};
    bool on_device = handle->scalars_on_device;
    auto work = [=](DeviceMemory &memory) {
        if (!memory.reads("x", x, a.rows()) || !memory.reads("y", y, b.rows())) return;
        std::complex<double> sum = 0;
        for (int64_t i = 0; i < a.count; i++) sum += (conjugates ? std::conj(a[i]) : a[i]) * b[i];
        give(memory, on_device, result_type, sum, result);
    };
    return perform(handle, call, work, !on_device);
}

}  // namespace

EXPORT int cublasDotEx(Handle *h, int n, const void *x, int x_type, int incx, const void *y, int y_type, int incy, void *result,
                       int result_type, int compute) {
    return dot(h, "cublasDotEx", false, n, x, x_type, incx, y, y_type, incy, result, result_type, compute);
}

EXPORT int cublasDotcEx(Handle *h, int n, const void *x, int x_type, int incx, const void *y, int y_type, int incy,
                        void *result, int result_type, int compute) {
    return dot(h, "cublasDotcEx", true, n, x, x_type, incx, y, y_type, incy, result, result_type, compute);
}

EXPORT int cublasNrm2Ex(Handle *handle, int n, const void *x, int type, int step, void *result, int result_type, int compute) {
    if (!known(handle)) return kNotInitialized;
    if (!given(handle, result) || (n > 0 && !x)) return kInvalidValue;
    if (!has_vectors(type) || result_type != real_of(type) || compute != computed_in(real_of(type)))
        return refuse_types("cublasNrm2Ex", {type, result_type, compute});
    Vector all{x, type, step > 0 ? std::max(n, 0) : 0, step};
    bool on_device = handle->scalars_on_device;
    auto work = [=](DeviceMemory &memory) {
        if (!memory.reads("x", x, all.rows())) return;
        long double sum = 0;  // the squares of doubles fit into its range
        for (int64_t i = 0; i < all.count; i++) sum += std::norm(std::complex<long double>(all[i]));
        give(memory, on_device, result_type, static_cast<double>(std::sqrt(sum)), result);
    };
    return perform(handle, "cublasNrm2Ex", work, !on_device);
}

EXPORT int cublasAxpyEx(Handle *handle, int n, const void *alpha, int alpha_type, const void *x, int x_type, int incx, void *y,
                        int y_type, int incy, int compute) {
    if (!known(handle)) return kNotInitialized;
    AnyScalar factor(handle, "alpha", alpha_type, alpha);
    if (!factor.given() || (n > 0 && (!x || !y))) return kInvalidValue;
    if (!has_vectors(x_type) || y_type != x_type || alpha_type != computed_in(x_type) || compute != alpha_type)
        return refuse_types("cublasAxpyEx", {alpha_type, x_type, y_type, compute});
    Vector from{x, x_type, std::max(n, 0), incx}, to{y, y_type, std::max(n, 0), incy};
    return perform(handle, "cublasAxpyEx", [=](DeviceMemory &memory) {
        auto by = factor.read(memory);
        if (!by || !memory.reads("x", x, from.rows()) || !memory.reads("y", y, to.rows()) || !memory.writes("y", y, to.rows())) return;
        for (int64_t i = 0; i < to.count; i++) store(y_type, to[i] + *by * from[i], to.place(i));
    });
}

EXPORT int cublasScalEx(Handle *handle, int n, const void *alpha, int alpha_type, void *x, int type, int step, int compute) {
    if (!known(handle)) return kNotInitialized;
    AnyScalar factor(handle, "alpha", alpha_type, alpha);
    if (!factor.given() || (n > 0 && !x)) return kInvalidValue;
    if (!has_vectors(type) || alpha_type != computed_in(type) || compute != alpha_type)
        return refuse_types("cublasScalEx", {alpha_type, type, compute});
    Vector all{x, type, step > 0 ? std::max(n, 0) : 0, step};
    return perform(handle, "cublasScalEx", [=](DeviceMemory &memory) {
        auto by = factor.read(memory);
        if (!by || !memory.reads("x", x, all.rows()) || !memory.writes("x", x, all.rows())) return;
        for (int64_t i = 0; i < all.count; i++) store(type, *by * all[i], all.place(i));
    });
}

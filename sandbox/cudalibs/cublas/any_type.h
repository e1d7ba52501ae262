// Numbers of a type that is known only when a call is made.
#pragma once

#include <cstring>
#include <optional>

#include "cublas.h"
#include "narrow.h"

// As cudaDataType numbers them.
enum Type : int { kR32F = 0, kR64F = 1, kR16F = 2, kR8I = 3, kC32F = 4, kC64F = 5, kR32I = 10, kR16BF = 14 };

inline int64_t size_of(int type) {
    switch (type) {
    case kR8I:
        return 1;
    case kR16F:
    case kR16BF:
        return 2;
    case kR64F:
    case kC32F:
        return 8;
    case kC64F:
        return 16;
    default:
        return 4;
    }
}

// A half or a bfloat16 in memory.
template <class Format>
struct Short {
    uint16_t bits;
    double wide() const { return Format::wide(bits); }
    static Short narrow(double value) { return {Format::narrow(static_cast<float>(value))}; }
};

inline std::complex<double> load(int type, const void *from) {
    switch (type) {
    case kR64F:
        return *static_cast<const double *>(from);
    case kC32F:
        return std::complex<double>(*static_cast<const std::complex<float> *>(from));
    case kC64F:
        return *static_cast<const std::complex<double> *>(from);
    case kR16F:
        return static_cast<const Short<kw::Half> *>(from)->wide();
    case kR16BF:
        return static_cast<const Short<kw::Bfloat> *>(from)->wide();
    case kR8I:
        return *static_cast<const int8_t *>(from);
    case kR32I:
        return *static_cast<const int32_t *>(from);
    default:
        return static_cast<double>(*static_cast<const float *>(from));
    }
}

inline void store(int type, std::complex<double> value, void *to) {
    switch (type) {
    case kR64F:
        *static_cast<double *>(to) = value.real();
        break;
    case kC32F:
        *static_cast<std::complex<float> *>(to) = std::complex<float>(value);
        break;
    case kC64F:
        *static_cast<std::complex<double> *>(to) = value;
        break;
    case kR16F:
        *static_cast<Short<kw::Half> *>(to) = Short<kw::Half>::narrow(value.real());
        break;
    case kR16BF:
        *static_cast<Short<kw::Bfloat> *>(to) = Short<kw::Bfloat>::narrow(value.real());
        break;
    case kR32I:
        *static_cast<int32_t *>(to) = static_cast<int32_t>(static_cast<int64_t>(value.real()));
        break;
    default:
        *static_cast<float *>(to) = static_cast<float>(value.real());
    }
}

// A number that a call is given: on the host, then it is taken at once, or on the device.
class AnyScalar {
  public:
    AnyScalar(const Handle *handle, const char *what, int type, const void *at)
        : what_(what), type_(type), at_(at), on_device_(handle->scalars_on_device) {
        if (!on_device_ && at) value_ = load(type, at);
    }
    bool given() const { return at_ && (on_device_ || on_host(what_, at_)); }
    std::optional<std::complex<double>> read(DeviceMemory &memory) const {
        if (on_device_ && !memory.reads(what_, at_, {static_cast<size_t>(size_of(type_))})) return std::nullopt;
        return on_device_ ? load(type_, at_) : value_;
    }

  private:
    const char *what_;
    int type_;
    const void *at_;
    bool on_device_;
    std::complex<double> value_;
};

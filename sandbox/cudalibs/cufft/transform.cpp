// Stockham's form of the fast Fourier transform with mixed radices; Bluestein's where a prime factor is large.
#include "transform.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace {

constexpr size_t kLargestRadix = 31;

Complex root(size_t numerator, size_t denominator) {
    double part = static_cast<double>(numerator % denominator) / static_cast<double>(denominator);
    return std::polar(1.0, -2 * std::numbers::pi * part);
}

std::vector<size_t> factors_of(size_t length) {
    std::vector<size_t> factors;
    for (size_t radix : {size_t{4}, size_t{2}, size_t{3}, size_t{5}})
        for (; length % radix == 0; length /= radix) factors.push_back(radix);
    for (size_t radix = 7; radix * radix <= length; radix += 2)
        for (; length % radix == 0; length /= radix) factors.push_back(radix);
    if (length > 1) factors.push_back(length);
    return factors;
}

Complex times_minus_i(Complex value) { return {value.imag(), -value.real()}; }

// The transform of R numbers that lie `step` apart, into `out`.
template <size_t R>
void butterfly(const Complex *in, size_t step, Complex (&out)[R]) {
    if constexpr (R == 2) {
        out[0] = in[0] + in[step], out[1] = in[0] - in[step];
    } else if constexpr (R == 4) {
        Complex even = in[0] + in[2 * step], odd = in[step] + in[3 * step];
        Complex difference = in[0] - in[2 * step], turned = times_minus_i(in[step] - in[3 * step]);
        out[0] = even + odd, out[1] = difference + turned, out[2] = even - odd, out[3] = difference - turned;
    } else {
        // Pairs of numbers that share a root, up to its conjugate.
        static const auto roots = [] {
            std::vector<Complex> all(R);
            for (size_t k = 0; k < R; k++) all[k] = root(k, R);
            return all;
        }();
        Complex sum = in[0];
        Complex plus[R / 2], minus[R / 2];
        for (size_t r = 1; r <= R / 2; r++) {
            plus[r - 1] = in[r * step] + in[(R - r) * step], minus[r - 1] = in[r * step] - in[(R - r) * step];
            sum += plus[r - 1];
        }
        out[0] = sum;
        for (size_t k = 1; k <= R / 2; k++) {
            Complex along = in[0], across = 0;
            for (size_t r = 1; r <= R / 2; r++) {
                along += roots[r * k % R].real() * plus[r - 1];
                across += roots[r * k % R].imag() * minus[r - 1];
            }
            Complex turned{-across.imag(), across.real()};
            out[k] = along + turned, out[R - k] = along - turned;
        }
    }
}

// One step: `count` groups of `stride` transforms of R numbers each.
template <size_t R>
void step(const Complex *in, Complex *out, size_t count, size_t stride, const std::vector<Complex> &roots) {
    for (size_t p = 0; p < count; p++) {
        Complex turn[R];
        for (size_t k = 0; k < R; k++) turn[k] = roots[stride * p * k];
        for (size_t q = 0; q < stride; q++) {
            Complex made[R];
            butterfly<R>(in + q + stride * p, stride * count, made);
            for (size_t k = 0; k < R; k++) out[q + stride * (R * p + k)] = made[k] * turn[k];
        }
    }
}

void step_of_any(const Complex *in, Complex *out, size_t radix, size_t count, size_t stride, const std::vector<Complex> &roots) {
    size_t length = roots.size();
    for (size_t p = 0; p < count; p++)
        for (size_t k = 0; k < radix; k++)
            for (size_t q = 0; q < stride; q++) {
                Complex sum = 0;
                for (size_t r = 0; r < radix; r++)
                    sum += in[q + stride * (p + count * r)] * roots[length / radix * (r * k % radix)];
                out[q + stride * (radix * p + k)] = sum * roots[stride * p * k];
            }
}

}  // namespace

// x[k] = conj(w[k]) sum over j of (x[j] conj(w[j])) w[k - j], with w[k] = exp(pi i k^2 / n): a convolution, which
// transforms of a power of two compute.
class Transform::Chirp {
  public:
    explicit Chirp(size_t length)
        : length_(length), inner_(std::bit_ceil(2 * length - 1)), chirp_(length), response_(inner_.length()) {
        for (size_t k = 0; k < length; k++) chirp_[k] = root(k * k % (2 * length), 2 * length);
        for (size_t k = 0; k < length; k++) response_[k] = response_[(inner_.length() - k) % inner_.length()] = std::conj(chirp_[k]);
        std::vector<Complex> scratch(inner_.scratch_length());
        inner_.run(response_.data(), scratch.data());
        for (Complex &value : response_) value /= static_cast<double>(inner_.length());
    }

    size_t scratch_length() const { return inner_.length() + inner_.scratch_length(); }

    void run(Complex *data, Complex *scratch) const {
        Complex *wide = scratch, *rest = scratch + inner_.length();
        for (size_t k = 0; k < length_; k++) wide[k] = data[k] * chirp_[k];
        std::fill(wide + length_, wide + inner_.length(), Complex(0));
        inner_.run(wide, rest);
        // The way back is the way there of the conjugates.
        for (size_t k = 0; k < inner_.length(); k++) wide[k] = std::conj(wide[k] * response_[k]);
        inner_.run(wide, rest);
        for (size_t k = 0; k < length_; k++) data[k] = std::conj(wide[k]) * chirp_[k];
    }

  private:
    size_t length_;
    Transform inner_;
    std::vector<Complex> chirp_, response_;
};

Transform::Transform(size_t length) : length_(length), factors_(factors_of(length)) {
    if (!factors_.empty() && *std::max_element(factors_.begin(), factors_.end()) > kLargestRadix) {
        chirp_ = std::make_unique<Chirp>(length);
        return;
    }
    roots_.resize(length);
    for (size_t k = 0; k < length; k++) roots_[k] = root(k, length);
}

Transform::~Transform() = default;

size_t Transform::scratch_length() const { return chirp_ ? chirp_->scratch_length() : length_; }

void Transform::run(Complex *data, Complex *scratch) const {
    if (chirp_)
        chirp_->run(data, scratch);
    else
        run_factors(data, scratch);
}

void Transform::run_factors(Complex *data, Complex *scratch) const {
    Complex *in = data, *out = scratch;
    size_t left = length_, stride = 1;
    for (size_t radix : factors_) {
        left /= radix;
        switch (radix) {
        case 2:
            step<2>(in, out, left, stride, roots_);
            break;
        case 3:
            step<3>(in, out, left, stride, roots_);
            break;
        case 4:
            step<4>(in, out, left, stride, roots_);
            break;
        case 5:
            step<5>(in, out, left, stride, roots_);
            break;
        default:
            step_of_any(in, out, radix, left, stride, roots_);
        }
        std::swap(in, out);
        stride *= radix;
    }
    if (in != data) std::copy(in, in + length_, data);
}

// Discrete Fourier transforms of any length, in double precision, unnormalised.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <vector>

using Complex = std::complex<double>;

// Of one length, forward. Safe to use from several threads.
class Transform {
  public:
    explicit Transform(size_t length);
    ~Transform();
    size_t length() const { return length_; }
    // Transforms `data` in place; `scratch` has room for as many numbers as `scratch_length` says.
    void run(Complex *data, Complex *scratch) const;
    size_t scratch_length() const;

  private:
    class Chirp;

    void run_factors(Complex *data, Complex *scratch) const;

    size_t length_;
    std::vector<size_t> factors_;
    std::vector<Complex> roots_;     // exp(-2 pi i k / length)
    std::unique_ptr<Chirp> chirp_;  // for lengths with a large prime factor
};

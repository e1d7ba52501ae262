// OpenBLAS, which NumPy brings along, by the names and conventions of Fortran: every argument is a pointer, integers
// have 64 bits, matrices lie by columns as in cuBLAS.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>

template <class T>
constexpr char kLetter = '?';
template <>
inline constexpr char kLetter<float> = 's';
template <>
inline constexpr char kLetter<double> = 'd';
template <>
inline constexpr char kLetter<std::complex<float>> = 'c';
template <>
inline constexpr char kLetter<std::complex<double>> = 'z';

// The address of a routine, "sgemm". Ends the program with a sentence where there is no OpenBLAS.
void *blas_routine(const std::string &name);

// Calls `routine` ("gemm") of the type's. The names of options are single characters; Fortran wants their lengths last.
template <class T, class... Arguments>
void blas(const char *routine, Arguments... arguments) {
    using Function = void (*)(Arguments..., size_t, size_t, size_t, size_t);
    static thread_local std::string last;
    static thread_local void *found = nullptr;
    if (last != routine) found = blas_routine(kLetter<T> + std::string(routine)), last = routine;
    reinterpret_cast<Function>(found)(arguments..., 1, 1, 1, 1);
}

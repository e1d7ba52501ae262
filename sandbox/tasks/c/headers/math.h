/* What pycparser needs of <math.h>; compilations use the system's own. */
#ifndef KERNELWRIGHT_MATH_H
#define KERNELWRIGHT_MATH_H
#define INFINITY (__builtin_inff())
#define HUGE_VALF (__builtin_inff())
#define HUGE_VAL (__builtin_inf())
#define NAN (__builtin_nanf(""))
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define KERNELWRIGHT_1(name) double name(double x); float name##f(float x);
#define KERNELWRIGHT_2(name) double name(double x, double y); float name##f(float x, float y);
KERNELWRIGHT_1(acos) KERNELWRIGHT_1(asin) KERNELWRIGHT_1(atan) KERNELWRIGHT_1(cos) KERNELWRIGHT_1(sin)
KERNELWRIGHT_1(tan) KERNELWRIGHT_1(acosh) KERNELWRIGHT_1(asinh) KERNELWRIGHT_1(atanh) KERNELWRIGHT_1(cosh)
KERNELWRIGHT_1(sinh) KERNELWRIGHT_1(tanh) KERNELWRIGHT_1(exp) KERNELWRIGHT_1(exp2) KERNELWRIGHT_1(expm1)
KERNELWRIGHT_1(log) KERNELWRIGHT_1(log10) KERNELWRIGHT_1(log1p) KERNELWRIGHT_1(log2) KERNELWRIGHT_1(logb)
KERNELWRIGHT_1(cbrt) KERNELWRIGHT_1(fabs) KERNELWRIGHT_1(sqrt) KERNELWRIGHT_1(erf) KERNELWRIGHT_1(erfc)
KERNELWRIGHT_1(lgamma) KERNELWRIGHT_1(tgamma) KERNELWRIGHT_1(ceil) KERNELWRIGHT_1(floor) KERNELWRIGHT_1(nearbyint)
KERNELWRIGHT_1(rint) KERNELWRIGHT_1(round) KERNELWRIGHT_1(trunc)
KERNELWRIGHT_2(atan2) KERNELWRIGHT_2(pow) KERNELWRIGHT_2(hypot) KERNELWRIGHT_2(fmod) KERNELWRIGHT_2(remainder)
KERNELWRIGHT_2(copysign) KERNELWRIGHT_2(nextafter) KERNELWRIGHT_2(fdim) KERNELWRIGHT_2(fmax) KERNELWRIGHT_2(fmin)
#undef KERNELWRIGHT_1
#undef KERNELWRIGHT_2
double fma(double x, double y, double z);
float fmaf(float x, float y, float z);
double ldexp(double x, int exponent);
float ldexpf(float x, int exponent);
double frexp(double x, int *exponent);
float frexpf(float x, int *exponent);
double modf(double x, double *whole);
float modff(float x, float *whole);
long lround(double x);
long lroundf(float x);
long lrint(double x);
long lrintf(float x);
long long llround(double x);
long long llroundf(float x);
int ilogb(double x);
int ilogbf(float x);
int isnan(double x);
int isinf(double x);
int isfinite(double x);
int isnormal(double x);
int signbit(double x);
#endif

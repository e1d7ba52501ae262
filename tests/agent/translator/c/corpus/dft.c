#include <math.h>
void dft(int n, const double *re, const double *im, double *outr, double *outi) { const double w = -2.0 * M_PI / n; for (int k = 0; k < n; k++) { double sr = 0, si = 0; for (int t = 0; t < n; t++) { double a = w * k * t; sr += re[t]*cos(a) - im[t]*sin(a); si += re[t]*sin(a) + im[t]*cos(a); } outr[k] = sr; outi[k] = si; } }

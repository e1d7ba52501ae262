#include <math.h>
static double cdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
void black_scholes(int n, double r, double sigma, const double *s, const double *k, const double *t, double *call,
                   double *put) {
    for (int i = 0; i < n; i++) {
        double root = sqrt(t[i]);
        double d1 = (log(s[i] / k[i]) + (r + 0.5 * sigma * sigma) * t[i]) / (sigma * root);
        double d2 = d1 - sigma * root;
        double discount = k[i] * exp(-r * t[i]);
        call[i] = s[i] * cdf(d1) - discount * cdf(d2);
        put[i] = discount * cdf(-d2) - s[i] * cdf(-d1);
    }
}

#include <math.h>
double log_likelihood(int n, int d, const double *x, const double *mu, const double *var) {
    double total = 0.0;
    for (int i = 0; i < n; i++) {
        double q = 0.0;
        for (int k = 0; k < d; k++) {
            double t = x[i * d + k] - mu[k];
            q += t * t / var[k] + log(2.0 * M_PI * var[k]);
        }
        total -= 0.5 * q;
    }
    return total;
}

#include <math.h>
double power_iteration(int n, int iters, const double *A, double *v, double *w) {
    double lambda = 0.0;
    for (int it = 0; it < iters; it++) {
        for (int i = 0; i < n; i++) {
            double s = 0.0;
            for (int j = 0; j < n; j++) s += A[i * n + j] * v[j];
            w[i] = s;
        }
        double norm = 0.0;
        for (int i = 0; i < n; i++) norm += w[i] * w[i];
        norm = sqrt(norm);
        for (int i = 0; i < n; i++) v[i] = w[i] / norm;
        lambda = norm;
    }
    return lambda;
}

#include <stdlib.h>
int conjugate_gradient(int n, const double *A, const double *b, double *x, double tol, int maxit) {
    double *r = malloc(n * sizeof(double)), *p = malloc(n * sizeof(double)), *q = malloc(sizeof(double) * n);
    double rho = 0;
    int it;
    for (int i = 0; i < n; i++) {
        x[i] = 0;
        r[i] = b[i];
        p[i] = r[i];
        rho += r[i] * r[i];
    }
    for (it = 0; it < maxit && rho > tol * tol; it++) {
        double pq = 0;
        for (int i = 0; i < n; i++) {
            double s = 0;
            for (int j = 0; j < n; j++) s += A[i * n + j] * p[j];
            q[i] = s;
        }
        for (int i = 0; i < n; i++) pq += p[i] * q[i];
        double alpha = rho / pq, next = 0;
        for (int i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            next += r[i] * r[i];
        }
        for (int i = 0; i < n; i++) p[i] = r[i] + next / rho * p[i];
        rho = next;
    }
    free(r);
    free(p);
    free(q);
    return it;
}

/* One tridiagonal system per row, solved in place. */
void thomas_batch(int batch, int n, const double *lo, const double *di, const double *up, double *rhs, double *work) {
    for (int b = 0; b < batch; b++) {
        const double *l = lo + (long)b * n, *d = di + (long)b * n, *u = up + (long)b * n;
        double *x = rhs + (long)b * n, *c = work + (long)b * n;
        c[0] = u[0] / d[0];
        x[0] = x[0] / d[0];
        for (int i = 1; i < n; i++) {
            double w = 1.0 / (d[i] - l[i] * c[i - 1]);
            c[i] = u[i] * w;
            x[i] = (x[i] - l[i] * x[i - 1]) * w;
        }
        for (int i = n - 2; i >= 0; i--) x[i] -= c[i] * x[i + 1];
    }
}

double polyval_one(const double *c, int degree, double x) {
    double r = c[degree];
    int k;
    for (k = degree - 1; k >= 0; k--) r = r * x + c[k];
    return r;
}
void polyval(int n, int degree, const double *c, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = polyval_one(c, degree, x[i]);
}

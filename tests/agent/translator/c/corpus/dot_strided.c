/* Reference BLAS style: strides, negative increments. */
double dot_strided(int n, const double *x, int incx, const double *y, int incy) {
    double sum = 0.0;
    int i, ix = 0, iy = 0;
    if (n <= 0) return 0.0;
    for (i = 0; i < n; i++) {
        sum += x[ix] * y[iy];
        ix += incx;
        iy += incy;
    }
    return sum;
}

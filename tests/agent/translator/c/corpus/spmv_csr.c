void spmv_csr(int rows, const int *ptr, const int *col, const double *val, const double *x, double *y) {
    for (int r = 0; r < rows; r++) {
        double s = 0.0;
        for (int k = ptr[r]; k < ptr[r + 1]; k++) s += val[k] * x[col[k]];
        y[r] = s;
    }
}

void gauss_jordan(int n, double *a, double *b) {
    for (int k = 0; k < n; k++) {
        double pivot = a[k * n + k];
        for (int j = 0; j < n; j++) a[k * n + j] /= pivot;
        b[k] /= pivot;
        for (int i = 0; i < n; i++) {
            if (i == k) continue;
            double f = a[i * n + k];
            for (int j = 0; j < n; j++) a[i * n + j] -= f * a[k * n + j];
            b[i] -= f * b[k];
        }
    }
}

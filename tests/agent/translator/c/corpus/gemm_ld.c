void gemm_ld(int m, int n, int k, const double *a, int lda, const double *b, int ldb, double *c, int ldc) {
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double acc = 0.0;
            for (int l = 0; l < k; l++) acc += a[i + l * lda] * b[l + j * ldb];
            c[i + j * ldc] = acc;
        }
}

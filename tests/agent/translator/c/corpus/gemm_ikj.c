void gemm_ikj(int m, int n, int k, float alpha, const float *A, const float *B, float beta, float *C) {
    int i, j, p;
    for (i = 0; i < m; i++) {
        for (j = 0; j < n; j++) C[i * n + j] *= beta;
        for (p = 0; p < k; p++) {
            float a = alpha * A[i * k + p];
            for (j = 0; j < n; j++) C[i * n + j] += a * B[p * n + j];
        }
    }
}

void gemm_vla(int n, int m, int k, double A[n][k], double B[k][m], double C[n][m]) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            C[i][j] = 0.0;
            for (int p = 0; p < k; p++) C[i][j] += A[i][p] * B[p][j];
        }
}

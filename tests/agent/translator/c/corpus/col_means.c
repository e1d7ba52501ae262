void col_means(int n, int m, const double *data, double *mean) {
    int i, j;
    for (j = 0; j < m; j++) mean[j] = 0.0;
    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++) mean[j] += data[i * m + j];
    for (j = 0; j < m; j++) mean[j] /= n;
}

void covariance(int n, int m, double *data, double *cov, double *mean) {
    for (int j = 0; j < m; j++) {
        mean[j] = 0.0;
        for (int i = 0; i < n; i++) mean[j] += data[i * m + j];
        mean[j] /= n;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) data[i * m + j] -= mean[j];
    for (int a = 0; a < m; a++)
        for (int b = a; b < m; b++) {
            double s = 0.0;
            for (int i = 0; i < n; i++) s += data[i * m + a] * data[i * m + b];
            cov[a * m + b] = s / (n - 1.0);
            cov[b * m + a] = cov[a * m + b];
        }
}

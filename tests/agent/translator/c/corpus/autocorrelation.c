void autocorrelation(int n, int lags, const float *x, float *r) {
    for (int lag = 0; lag < lags; lag++) {
        float s = 0.0f;
        for (int i = 0; i < n - lag; i++) s += x[i] * x[i + lag];
        r[lag] = s / n;
    }
}

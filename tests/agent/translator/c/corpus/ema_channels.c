void ema_channels(int channels, int n, float alpha, const float *x, float *y) {
    for (int c = 0; c < channels; c++) {
        float s = x[c];
        for (int t = 0; t < n; t++) {
            s += alpha * (x[t * channels + c] - s);
            y[t * channels + c] = s;
        }
    }
}

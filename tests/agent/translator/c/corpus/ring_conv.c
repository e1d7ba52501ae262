void ring_conv(int n, int k, const float *x, const float *w, float *y) { for (int i = 0; i < n; i++) { y[i] = 0.0f; for (int j = 0; j < k; j++) y[i] += w[j] * x[(i + j) % n]; } }

void cumprod2d(int n, int m, const float *x, float *y) { for (int j = 0; j < m; j++) { float p = 1; for (int i = 0; i < n; i++) { p *= x[i*m+j]; y[i*m+j] = p; } } }

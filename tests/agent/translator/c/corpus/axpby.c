void axpby(int n, float a, const float *x, float b, float *y) {
    for (int i = 0; i < n; i++)
        y[i] = a * x[i] + b * y[i];
}

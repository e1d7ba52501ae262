static void sort2(float *a, float *b) {
    if (*a > *b) {
        float t = *a;
        *a = *b;
        *b = t;
    }
}
void median3(int n, const float *x, float *y) {
    for (int i = 0; i < n; i++) {
        float a = x[i > 0 ? i - 1 : 0], b = x[i], c = x[i < n - 1 ? i + 1 : n - 1];
        sort2(&a, &b);
        sort2(&b, &c);
        sort2(&a, &b);
        y[i] = b;
    }
}

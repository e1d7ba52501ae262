void sum_into(int n, const float *x, float *total, float *biggest) {
    *total = 0;
    *biggest = x[0];
    for (int i = 0; i < n; i++) {
        *total += x[i];
        if (x[i] > *biggest) *biggest = x[i];
    }
}

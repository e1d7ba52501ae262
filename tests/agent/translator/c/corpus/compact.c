int compact(int n, const float *x, float threshold, float *kept) {
    int count = 0;
    for (int i = 0; i < n; i++)
        if (x[i] > threshold) kept[count++] = x[i];
    return count;
}

int is_sorted(int n, const int *a) {
    int ok = 1;
    for (int i = 0; i + 1 < n; i++) {
        if (a[i] > a[i + 1]) ok = 0;
    }
    return ok;
}

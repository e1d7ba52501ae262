void prefix_sum(int n, const int *in, int *out) {
    int running = 0;
    for (int i = 0; i < n; i++) {
        running += in[i];
        out[i] = running;
    }
}

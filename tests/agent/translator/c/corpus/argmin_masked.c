int argmin_masked(int n, const float *cost, const unsigned char *allowed) {
    int best = -1;
    float lowest = 1e30f;
    for (int i = 0; i < n; i++) {
        if (!allowed[i]) continue;
        if (cost[i] < lowest) {
            lowest = cost[i];
            best = i;
        }
    }
    return best;
}

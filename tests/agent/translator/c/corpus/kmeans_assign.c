void kmeans_assign(int n, int k, int d, const float *pts, const float *centres, int *label, float *sums, int *counts) {
    for (int i = 0; i < n; i++) {
        int best = 0;
        float best_d = 1e30f;
        for (int c = 0; c < k; c++) {
            float dist = 0;
            for (int f = 0; f < d; f++) {
                float t = pts[i * d + f] - centres[c * d + f];
                dist += t * t;
            }
            if (dist < best_d) {
                best_d = dist;
                best = c;
            }
        }
        label[i] = best;
        counts[best] += 1;
        for (int f = 0; f < d; f++) sums[best * d + f] += pts[i * d + f];
    }
}

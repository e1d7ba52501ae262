void maxpool2(int c, int h, int w, const float *in, float *out, int *where) {
    for (int k = 0; k < c; k++)
        for (int i = 0; i < h / 2; i++)
            for (int j = 0; j < w / 2; j++) {
                int at = k * h * w + 2 * i * w + 2 * j;
                float best = in[at];
                for (int di = 0; di < 2; di++)
                    for (int dj = 0; dj < 2; dj++) {
                        int p = k * h * w + (2 * i + di) * w + 2 * j + dj;
                        if (in[p] > best) {
                            best = in[p];
                            at = p;
                        }
                    }
                out[(k * (h / 2) + i) * (w / 2) + j] = best;
                where[(k * (h / 2) + i) * (w / 2) + j] = at;
            }
}

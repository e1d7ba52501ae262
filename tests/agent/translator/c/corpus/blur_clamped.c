#define RADIUS 2
static const float weights[2 * RADIUS + 1] = {0.06f, 0.24f, 0.4f, 0.24f, 0.06f};
static int clamp(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }
void blur_clamped(int h, int w, const float *src, float *dst) {
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float acc = 0.0f;
            for (int dy = -RADIUS; dy <= RADIUS; dy++)
                for (int dx = -RADIUS; dx <= RADIUS; dx++) {
                    int yy = clamp(y + dy, 0, h - 1), xx = clamp(x + dx, 0, w - 1);
                    acc += weights[dy + RADIUS] * weights[dx + RADIUS] * src[yy * w + xx];
                }
            dst[y * w + x] = acc;
        }
}

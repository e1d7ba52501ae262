void bilinear(int sh, int sw, int dh, int dw, const float *src, float *dst) {
    const float ry = dh > 1 ? (float)(sh - 1) / (dh - 1) : 0.0f;
    const float rx = dw > 1 ? (float)(sw - 1) / (dw - 1) : 0.0f;
    for (int y = 0; y < dh; ++y) {
        const float fy = y * ry;
        const int y0 = (int)fy;
        const int y1 = y0 + 1 < sh ? y0 + 1 : sh - 1;
        const float wy = fy - y0;
        for (int x = 0; x < dw; ++x) {
            const float fx = x * rx;
            const int x0 = (int)fx, x1 = x0 + 1 < sw ? x0 + 1 : sw - 1;
            const float wx = fx - x0;
            const float top = src[y0 * sw + x0] * (1 - wx) + src[y0 * sw + x1] * wx;
            const float bottom = src[y1 * sw + x0] * (1 - wx) + src[y1 * sw + x1] * wx;
            dst[y * dw + x] = top * (1 - wy) + bottom * wy;
        }
    }
}

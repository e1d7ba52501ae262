#include <math.h>
void layernorm(int rows, int cols, const float x[rows][cols], const float *g, const float *b, float y[rows][cols], float eps) {
    for (int r = 0; r < rows; ++r) {
        float mean = 0.f, var = 0.f;
        for (int c = 0; c < cols; ++c) mean += x[r][c];
        mean /= cols;
        for (int c = 0; c < cols; ++c) var += (x[r][c] - mean) * (x[r][c] - mean);
        var /= cols;
        const float scale = 1.f / sqrtf(var + eps);
        for (int c = 0; c < cols; ++c) y[r][c] = (x[r][c] - mean) * scale * g[c] + b[c];
    }
}

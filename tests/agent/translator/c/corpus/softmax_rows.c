#include <math.h>
void softmax_rows(int rows, int cols, const float *in, float *out) {
    for (int r = 0; r < rows; r++) {
        const float *src = in + r * cols;
        float *dst = out + r * cols;
        float biggest = src[0];
        for (int c = 1; c < cols; c++)
            if (src[c] > biggest) biggest = src[c];
        float total = 0.0f;
        for (int c = 0; c < cols; c++) {
            dst[c] = expf(src[c] - biggest);
            total += dst[c];
        }
        for (int c = 0; c < cols; c++) dst[c] /= total;
    }
}

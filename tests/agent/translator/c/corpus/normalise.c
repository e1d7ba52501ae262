#include <math.h>
void normalise(int n, const float *x, float *y) {
    float sum = 0.0f, sq = 0.0f;
    int i;
    for (i = 0; i < n; i++) sum += x[i];
    float mean = sum / n;
    for (i = 0; i < n; i++) {
        float d = x[i] - mean;
        sq += d * d;
    }
    float sd = sqrtf(sq / n + 1e-6f);
    for (i = 0; i < n; i++) y[i] = (x[i] - mean) / sd;
}

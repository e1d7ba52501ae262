#include <stdint.h>
#include <math.h>
void quant(int n, const float *x, float scale, int8_t *q) { for (int i = 0; i < n; i++) { float v = roundf(x[i] / scale); if (v > 127.0f) v = 127.0f; if (v < -128.0f) v = -128.0f; q[i] = (int8_t)v; } }

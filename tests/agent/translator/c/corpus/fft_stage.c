#include <math.h>
void fft_stage(int n, int half, const float *re, const float *im, float *ore, float *oim) {
    for (int start = 0; start < n; start += 2 * half)
        for (int k = 0; k < half; k++) {
            float ang = -(float)M_PI * k / half;
            float wr = cosf(ang), wi = sinf(ang);
            float tr = wr * re[start + k + half] - wi * im[start + k + half];
            float ti = wr * im[start + k + half] + wi * re[start + k + half];
            ore[start + k] = re[start + k] + tr;
            oim[start + k] = im[start + k] + ti;
            ore[start + k + half] = re[start + k] - tr;
            oim[start + k + half] = im[start + k] - ti;
        }
}

#include <math.h>
void nbody_forces(int n, const float *x, const float *y, const float *z, const float *m, float *fx, float *fy, float *fz) {
    for (int i = 0; i < n; i++) {
        float ax = 0, ay = 0, az = 0;
        for (int j = 0; j < n; j++) {
            if (j == i) continue;
            float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            float d2 = dx * dx + dy * dy + dz * dz + 1e-4f;
            float inv = 1.0f / sqrtf(d2);
            float f = m[j] * inv * inv * inv;
            ax += f * dx;
            ay += f * dy;
            az += f * dz;
        }
        fx[i] = m[i] * ax;
        fy[i] = m[i] * ay;
        fz[i] = m[i] * az;
    }
}

#include <math.h>

/* Gravitational acceleration of n bodies, all pairs: the sum over j of m[j] * (r[j] - r[i]) / |r[j] - r[i]|^3.
 *
 * Positions and accelerations are stored as x y z x y z ... The softening keeps close encounters, and the pair of a
 * body with itself, finite. Twenty operations for every sixteen bytes read: this one is bound by arithmetic. */
void nbody(int n, float softening, const float *position, const float *mass, float *acceleration)
{
    for (int i = 0; i < n; i++) {
        float ax = 0.0f, ay = 0.0f, az = 0.0f;
        for (int j = 0; j < n; j++) {
            float dx = position[3 * j + 0] - position[3 * i + 0];
            float dy = position[3 * j + 1] - position[3 * i + 1];
            float dz = position[3 * j + 2] - position[3 * i + 2];
            float distance2 = dx * dx + dy * dy + dz * dz + softening * softening;
            float inverse = 1.0f / sqrtf(distance2);
            float strength = mass[j] * inverse * inverse * inverse;
            ax += strength * dx;
            ay += strength * dy;
            az += strength * dz;
        }
        acceleration[3 * i + 0] = ax;
        acceleration[3 * i + 1] = ay;
        acceleration[3 * i + 2] = az;
    }
}

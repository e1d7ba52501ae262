#include <stdint.h>
void lcg_fill(int n, uint32_t seed, uint32_t *out) {
    for (int i = 0; i < n; i++) {
        uint32_t s = seed + 747796405u * (uint32_t)i;
        s ^= s >> 16;
        s *= 0x7feb352dU;
        s ^= s >> 15;
        s *= 0x846ca68bU;
        s ^= s >> 16;
        out[i] = s;
    }
}

#include <stdint.h>
void histogram256(int n, const uint8_t *pixels, unsigned int *bins) {
    for (int b = 0; b < 256; b++) bins[b] = 0;
    for (int i = 0; i < n; i++) bins[pixels[i]]++;
}

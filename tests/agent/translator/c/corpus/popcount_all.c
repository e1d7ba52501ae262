#include <stdint.h>
#include <stddef.h>
unsigned popcount_all(size_t n, const uint32_t *x) { unsigned total = 0; for (size_t i = 0; i < n; i++) { uint32_t v = x[i]; while (v) { v &= v - 1; total++; } } return total; }

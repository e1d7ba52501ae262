#include <stddef.h>
void triad_unsigned(size_t n, const double *b, const double *c, double s, double *a) {
    size_t i;
    for (i = n; i-- > 0;) a[i] = b[i] + s * c[i];
}

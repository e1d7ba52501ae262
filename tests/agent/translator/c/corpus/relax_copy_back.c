#include <stdlib.h>
#include <string.h>
void relax_copy_back(int n, int steps, const double *start, double *out) {
    double *other = malloc(n * sizeof *other);
    double *now = out, *next = other;
    memcpy(out, start, n * sizeof(double));
    for (int t = 0; t < steps; t++) {
        next[0] = now[0];
        next[n - 1] = now[n - 1];
        for (int i = 1; i < n - 1; i++) next[i] = 0.25 * now[i - 1] + 0.5 * now[i] + 0.25 * now[i + 1];
        double *swap = now;
        now = next;
        next = swap;
    }
    if (now != out) memcpy(out, now, n * sizeof(double));
    free(other);
}

#include <math.h>
void newton_roots(int n, const double *a, double *root) {
    for (int i = 0; i < n; i++) {
        double x = a[i] > 1.0 ? a[i] : 1.0;
        int it = 0;
        do {
            double next = x - (x * x * x - fabs(a[i])) / (3.0 * x * x);
            if (fabs(next - x) < 1e-12) {
                x = next;
                break;
            }
            x = next;
        } while (++it < 60);
        root[i] = x;
    }
}

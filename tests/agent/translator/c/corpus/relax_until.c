#include <math.h>
void relax_until(int n, double *u, double *v, double tol) {
    for (int sweep = 0; sweep < 50; sweep++) {
        double change = 0;
        for (int i = 1; i < n - 1; i++) {
            v[i] = 0.5 * (u[i - 1] + u[i + 1]);
            change = fmax(change, fabs(v[i] - u[i]));
        }
        for (int i = 1; i < n - 1; i++) u[i] = v[i];
        if (change < tol) break;
    }
}

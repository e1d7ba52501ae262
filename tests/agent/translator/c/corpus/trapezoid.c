#include <math.h>
static double g(double x) { return exp(-x * x) * cos(3.0 * x); }
double trapezoid(double a, double b, int n) {
    double h = (b - a) / n;
    double s = 0.5 * (g(a) + g(b));
    for (int i = 1; i < n; i++) s += g(a + i * h);
    return s * h;
}

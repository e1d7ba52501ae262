/* One step of the heat equation on an n by m grid: each inner point moves towards the mean of its four neighbours.
 *
 * `rate` is the diffusion number, dt * kappa / h^2. The rim of the plate is held at its temperature: it is copied. */
void stencil5(int n, int m, float rate, const float *u, float *next)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++) {
            float here = u[i * m + j];
            if (i > 0 && i < n - 1 && j > 0 && j < m - 1) {
                float around = u[(i - 1) * m + j] + u[(i + 1) * m + j] + u[i * m + j - 1] + u[i * m + j + 1];
                next[i * m + j] = here + rate * (around - 4.0f * here);
            } else {
                next[i * m + j] = here;
            }
        }
    }
}

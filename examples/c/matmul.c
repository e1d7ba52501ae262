/* C <- A * B for row-major matrices: A is n by k, B is k by m, C is n by m.
 *
 * Every element of A is used m times and every element of B n times: how often they are fetched from memory is
 * what separates a slow kernel from a fast one. */
void matmul(int n, int m, int k, const float *a, const float *b, float *c)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++) {
            float sum = 0.0f;
            for (int p = 0; p < k; p++)
                sum += a[i * k + p] * b[p * m + j];
            c[i * m + j] = sum;
        }
    }
}

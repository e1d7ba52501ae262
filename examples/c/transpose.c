/* B <- A transposed: A is n by m, B is m by n, both row-major.
 *
 * Not one floating-point operation. Rows are read and columns are written: either the loads or the stores of a
 * simple kernel jump through memory. */
void transpose(int n, int m, const float *a, float *b)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            b[j * n + i] = a[i * m + j];
}

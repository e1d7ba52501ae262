/* y <- a * x + y, the first routine of every linear algebra library.
 *
 * Two loads, one store and two operations per element: as fast as memory, and no faster. */
void saxpy(int n, float a, const float *x, float *y)
{
    for (int i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}

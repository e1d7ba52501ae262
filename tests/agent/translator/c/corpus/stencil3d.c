#define IDX(i, j, k) (((i) * ny + (j)) * nz + (k))
void stencil3d(int nx, int ny, int nz, float c0, float c1, const float *a, float *b) {
    int i, j, k;
    for (i = 1; i < nx - 1; i++)
        for (j = 1; j < ny - 1; j++)
            for (k = 1; k < nz - 1; k++)
                b[IDX(i, j, k)] = c1 * (a[IDX(i + 1, j, k)] + a[IDX(i - 1, j, k)] + a[IDX(i, j + 1, k)] + a[IDX(i, j - 1, k)]
                                  + a[IDX(i, j, k + 1)] + a[IDX(i, j, k - 1)]) - c0 * a[IDX(i, j, k)];
}

void seidel(int steps, int n, double *a) {
    for (int t = 0; t < steps; t++)
        for (int i = 1; i <= n - 2; i++)
            for (int j = 1; j <= n - 2; j++)
                a[i * n + j] = (a[(i - 1) * n + j] + a[i * n + j - 1] + a[i * n + j] + a[i * n + j + 1] + a[(i + 1) * n + j]) / 5.0;
}

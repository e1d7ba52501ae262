void floyd_warshall(int n, int *d) {
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                int via = d[i * n + k] + d[k * n + j];
                if (via < d[i * n + j]) d[i * n + j] = via;
            }
}

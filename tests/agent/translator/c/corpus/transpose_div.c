void transpose_div(int rows, int cols, const float *a, float *t) {
    for (int e = 0; e < rows * cols; e++) {
        int r = e / cols;
        int c = e % cols;
        t[c * rows + r] = a[e];
    }
}

enum { COLD, MILD, HOT };
void classify(int n, const int *t, int *out) {
    for (int i = 0; i < n; i++) {
        switch (t[i] / 10) {
        case 0:
            out[i] = COLD;
            break;
        case 1:
        case 2:
            out[i] = MILD;
            break;
        default:
            out[i] = t[i] < 0 ? COLD : HOT;
        }
    }
}

void copy_walk(const float *src, float *dst, int n) {
    while (n-- > 0) *dst++ = *src++;
}

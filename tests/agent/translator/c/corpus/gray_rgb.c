void gray_rgb(int width, int height, const unsigned char *rgb, unsigned char *gray) {
    int x, y;
    for (y = 0; y < height; ++y)
        for (x = 0; x < width; ++x) {
            const unsigned char *p = &rgb[(y * width + x) * 3];
            gray[y * width + x] = (unsigned char)((77 * p[0] + 150 * p[1] + 29 * p[2]) >> 8);
        }
}

void mandel(int w, int h, int limit, double x0, double y0, double step, int *out) {
    for (int py = 0; py < h; py++) {
        for (int px = 0; px < w; px++) {
            double cr = x0 + px * step, ci = y0 + py * step, zr = 0, zi = 0;
            int it = 0;
            while (zr * zr + zi * zi < 4.0 && it < limit) {
                double t = zr * zr - zi * zi + cr;
                zi = 2 * zr * zi + ci;
                zr = t;
                it++;
            }
            out[py * w + px] = it;
        }
    }
}

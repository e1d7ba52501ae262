void life(int h, int w, const unsigned char *now, unsigned char *next) {
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            int alive = 0;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++) {
                    if (dx == 0 && dy == 0) continue;
                    alive += now[((y + dy + h) % h) * w + (x + dx + w) % w];
                }
            next[y * w + x] = alive == 3 || (alive == 2 && now[y * w + x]) ? 1 : 0;
        }
}

/* The work of kernels.cu as ordinary C, in the same order of loops. Prints "name seconds" lines: CPU time of one run,
   the least of three. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TILE 32
#define BINS 256

static void product_naive(const float *a, const float *b, float *c, int n) {
  for (int row = 0; row < n; row++)
    for (int column = 0; column < n; column++) {
      float sum = 0;
      for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
      c[row * n + column] = sum;
    }
}

static void product_tiled(const float *a, const float *b, float *c, int n) {
  memset(c, 0, sizeof(float) * n * n);
  for (int top = 0; top < n; top += TILE)
    for (int start = 0; start < n; start += TILE)
      for (int side = 0; side < n; side += TILE)
        for (int y = top; y < top + TILE; y++)
          for (int k = start; k < start + TILE; k++)
            for (int x = side; x < side + TILE; x++) c[y * n + x] += a[y * n + k] * b[k * n + x];
}

static float reduce(const float *x, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += x[i];
  return sum;
}

static void histogram(const unsigned *x, unsigned *bins, int n) {
  memset(bins, 0, BINS * sizeof *bins);
  for (int i = 0; i < n; i++) bins[x[i] % BINS]++;
}

static void stencil(const float *in, float *out, int width, int height) {
  for (int y = 1; y < height - 1; y++)
    for (int x = 1; x < width - 1; x++) {
      int i = y * width + x;
      out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
    }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

#define TIMED(NAME, CALL)                          \
  do {                                             \
    double least = 1e30;                           \
    for (int run = 0; run < 3; run++) {            \
      double began = now();                        \
      CALL;                                        \
      double took = now() - began;                 \
      if (took < least) least = took;              \
    }                                              \
    printf("%s %.9f\n", NAME, least);              \
  } while (0)

int main(int count, char **arguments) {
  if (count != 4) return 2;
  int n = atoi(arguments[1]), items = atoi(arguments[2]), side = atoi(arguments[3]);
  size_t most = (size_t)n * n;
  if ((size_t)items > most) most = items;
  if ((size_t)side * side > most) most = (size_t)side * side;
  float *a = malloc(4 * most), *b = malloc(4 * most), *c = malloc(4 * most);
  unsigned *x = malloc(4 * most), bins[BINS];
  if (!a || !b || !c || !x) return 1;
  unsigned state = 1;
  for (size_t i = 0; i < most; i++) {
    state = state * 1664525u + 1013904223u;
    x[i] = state >> 2;
    a[i] = (state >> 8) / 16777216.0f;
    b[i] = 1.0f - a[i];
    c[i] = 0;
  }
  volatile float kept = 0;
  TIMED("product_tiled", product_tiled(a, b, c, n));
  kept += c[most / 2 % ((size_t)n * n)];
  TIMED("product_naive", product_naive(a, b, c, n));
  kept += c[1];
  TIMED("reduce", kept += reduce(a, items));
  TIMED("histogram", histogram(x, bins, items));
  kept += bins[3];
  TIMED("stencil", stencil(a, c, side, side));
  kept += c[side + 1];
  return kept == 12345.0f;
}

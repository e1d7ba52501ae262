#include <math.h>

/* Softmax of each row of an n by m matrix: exp(x) over the row's sum of exp(x).
 *
 * The row's largest value is taken off first, so that no exponential can overflow. Three passes over each row:
 * find the maximum, exponentiate and sum, scale. */
void row_softmax(int n, int m, const float *x, float *y)
{
    for (int i = 0; i < n; i++) {
        const float *in = x + i * m;
        float *out = y + i * m;

        float largest = in[0];
        for (int j = 1; j < m; j++)
            if (in[j] > largest)
                largest = in[j];

        float sum = 0.0f;
        for (int j = 0; j < m; j++) {
            out[j] = expf(in[j] - largest);
            sum += out[j];
        }

        for (int j = 0; j < m; j++)
            out[j] /= sum;
    }
}

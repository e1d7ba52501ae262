/* How often each value from 0 to bins - 1 occurs among n samples.
 *
 * Samples that fall into the same bin at the same time must not lose a count: atomics, and how many threads fight
 * over one address, decide the speed. Samples outside the range are dropped. */
void histogram(int n, int bins, const int *samples, int *counts)
{
    for (int b = 0; b < bins; b++)
        counts[b] = 0;

    for (int i = 0; i < n; i++) {
        int bin = samples[i];
        if (bin >= 0 && bin < bins)
            counts[bin]++;
    }
}

/* The inner product of two vectors.
 *
 * One long chain of additions: on a GPU it becomes a tree, and the order of the additions changes. */
float dot(int n, const float *x, const float *y)
{
    float sum = 0.0f;
    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

#include <math.h>
float frobenius(int n, int m, float a[n][m]) {
    float s = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) s += a[i][j] * a[i][j];
    return sqrtf(s);
}

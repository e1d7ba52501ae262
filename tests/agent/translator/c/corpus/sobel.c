#include <math.h>
void sobel(int rows, int cols, const float *img, float *mag) {
    for (int i = 1; i < rows - 1; i++) {
        for (int j = 1; j < cols - 1; j++) {
            float gx = img[(i - 1) * cols + j + 1] + 2 * img[i * cols + j + 1] + img[(i + 1) * cols + j + 1]
                     - img[(i - 1) * cols + j - 1] - 2 * img[i * cols + j - 1] - img[(i + 1) * cols + j - 1];
            float gy = img[(i + 1) * cols + j - 1] + 2 * img[(i + 1) * cols + j] + img[(i + 1) * cols + j + 1]
                     - img[(i - 1) * cols + j - 1] - 2 * img[(i - 1) * cols + j] - img[(i - 1) * cols + j + 1];
            mag[i * cols + j] = sqrtf(gx * gx + gy * gy);
        }
    }
}

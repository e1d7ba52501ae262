// Puts the even numbers in a row, and believes that blocks get their places in order. No access is a race.
#include <cstdio>

__global__ void pick(const int *from, int *to, int *filled) {
    int value = from[blockIdx.x];
    if (value % 2 == 0) to[atomicAdd(filled, 1)] = value;
}

int main() {
    constexpr int count = 64;
    int numbers[count], picked[count / 2], *from, *to, *filled;
    for (int i = 0; i < count; i++) numbers[i] = i;
    cudaMalloc(&from, sizeof numbers);
    cudaMalloc(&to, sizeof picked);
    cudaMalloc(&filled, sizeof(int));
    cudaMemcpy(from, numbers, sizeof numbers, cudaMemcpyHostToDevice);
    cudaMemset(filled, 0, sizeof(int));
    pick<<<count, 1>>>(from, to, filled);
    cudaMemcpy(picked, to, sizeof picked, cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < count / 2; i++) wrong += picked[i] != 2 * i;
    std::printf("%d of %d are not in their place\n", wrong, count / 2);
    return wrong ? 1 : 0;
}

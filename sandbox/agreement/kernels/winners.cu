// Lanes of one store that meet at one address: which value stays. A race by the language's rules, but the
// hardware always decides the same way.

#define WINNER(name, T, VALUE)                                                  \
  extern "C" __global__ void name(T *y, const int *place, unsigned active) {    \
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32; \
    if (active >> lane & 1) y[i / 32 * 32 + place[lane]] = VALUE;               \
  }
WINNER(winner_1_byte, unsigned char, static_cast<unsigned char>(lane + 1))
WINNER(winner_2_bytes, unsigned short, static_cast<unsigned short>(lane + 1))
WINNER(winner_4_bytes, unsigned, lane + 1)
WINNER(winner_8_bytes, uint2, (make_uint2(lane + 1, ~lane)))
WINNER(winner_16_bytes, uint4, (make_uint4(lane + 1, ~lane, lane * 3, i)))

// The same in shared memory, where the words of wide elements may be decided one by one.
#define WINNER_SHARED(name, T, VALUE)                                           \
  extern "C" __global__ void name(T *y, const int *place, unsigned active) {    \
    __shared__ T tile[32];                                                      \
    unsigned i = threadIdx.x, lane = threadIdx.x;                               \
    tile[lane] = T{};                                                           \
    __syncwarp();                                                               \
    if (active >> lane & 1) tile[place[lane]] = VALUE;                          \
    __syncwarp();                                                               \
    y[i] = tile[lane];                                                          \
  }
WINNER_SHARED(winner_shared_4_bytes, unsigned, lane + 1)
WINNER_SHARED(winner_shared_8_bytes, uint2, (make_uint2(lane + 1, ~lane)))
WINNER_SHARED(winner_shared_16_bytes, uint4, (make_uint4(lane + 1, ~lane, lane * 3, i)))

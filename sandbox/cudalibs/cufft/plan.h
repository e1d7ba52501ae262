// What a plan describes: shapes and layouts, and doing it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "library.h"
#include "transform.h"

enum Type : int { kR2C = 0x2a, kC2R = 0x2c, kC2C = 0x29, kD2Z = 0x6a, kZ2D = 0x6c, kZ2Z = 0x69 };

// How the numbers of one side lie: number (x, y, z) of batch b is b * distance + ((x * embed[1] + y) * embed[2] + z) *
// stride numbers from the start.
struct Layout {
    std::array<int64_t, 3> embed{1, 1, 1};
    int64_t stride = 1;
    int64_t distance = 0;
    int64_t place(int64_t batch, int64_t x, int64_t y, int64_t z) const {
        return batch * distance + ((x * embed[1] + y) * embed[2] + z) * stride;
    }
};

struct Plan {
    Type type = kC2C;
    std::array<int64_t, 3> size{1, 1, 1};  // shorter ones have leading 1s
    int64_t batch = 1;
    bool advanced = false;  // the layouts are the program's; else they follow from the shape
    Layout input, output;
    std::map<int64_t, std::shared_ptr<const Transform>> transforms;  // by length

    bool single() const { return type == kR2C || type == kC2R || type == kC2C; }
    bool from_real() const { return type == kR2C || type == kD2Z; }
    bool to_real() const { return type == kC2R || type == kZ2D; }
    void prepare();
    // Of `from` into `to`, which may be the same. `direction`: -1 forward, 1 back.
    void run(DeviceMemory &memory, const void *from, void *to, int direction, int threads) const;

  private:
    // Real numbers of a transform in place lie where the complex ones have room for them.
    Layout layout(const Layout &given, bool real, bool in_place) const;
};

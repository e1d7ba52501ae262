#include "plan.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace {

constexpr int64_t kLinesForThreads = 64;  // fewer of them are done sooner than threads start

void in_parallel(int64_t count, int threads, const std::function<void(int64_t)> &work) {
    std::atomic<int64_t> next{0};
    auto go = [&] {
        for (int64_t i; (i = next++) < count;) work(i);
    };
    std::vector<std::jthread> helpers;
    for (int64_t i = 1; i < std::min<int64_t>(threads, count); i++) helpers.emplace_back(go);
    go();
}

// One batch, dense, in double precision.
class Volume {
  public:
    explicit Volume(const Plan &plan) : plan_(plan), values_(static_cast<size_t>(count())) {}

    Complex &at(int64_t x, int64_t y, int64_t z) {
        return values_[static_cast<size_t>((x * plan_.size[1] + y) * plan_.size[2] + z)];
    }

    void transform(int threads) {
        for (int axis = 0; axis < 3; axis++)
            if (plan_.size[axis] > 1) along(axis, threads);
    }

    template <class Visit>
    void each(int64_t depth, Visit visit) {
        for (int64_t x = 0; x < plan_.size[0]; x++)
            for (int64_t y = 0; y < plan_.size[1]; y++)
                for (int64_t z = 0; z < depth; z++) visit(at(x, y, z), x, y, z);
    }

    // Fills the half that real results leave out.
    void complete() {
        auto [nx, ny, nz] = plan_.size;
        for (int64_t x = 0; x < nx; x++)
            for (int64_t y = 0; y < ny; y++)
                for (int64_t z = nz / 2 + 1; z < nz; z++) at(x, y, z) = std::conj(at((nx - x) % nx, (ny - y) % ny, nz - z));
    }

  private:
    int64_t count() const { return plan_.size[0] * plan_.size[1] * plan_.size[2]; }

    void along(int axis, int threads) {
        const Transform &transform = *plan_.transforms.at(plan_.size[axis]);
        int64_t length = plan_.size[axis], step = 1;
        for (int other = axis + 1; other < 3; other++) step *= plan_.size[other];
        int64_t lines = count() / length, groups = std::min<int64_t>(lines, lines < kLinesForThreads ? 1 : 8 * threads);
        in_parallel(groups, threads, [&](int64_t group) {
            std::vector<Complex> line(static_cast<size_t>(length)), scratch(transform.scratch_length());
            for (int64_t i = lines * group / groups; i < lines * (group + 1) / groups; i++) {
                Complex *from = values_.data() + (i / step) * step * length + i % step;
                if (step == 1) {
                    transform.run(from, scratch.data());
                    continue;
                }
                for (int64_t k = 0; k < length; k++) line[static_cast<size_t>(k)] = from[k * step];
                transform.run(line.data(), scratch.data());
                for (int64_t k = 0; k < length; k++) from[k * step] = line[static_cast<size_t>(k)];
            }
        });
    }

    const Plan &plan_;
    std::vector<Complex> values_;
};

// All numbers of one side, row by row.
template <class Touch>
bool touched(const Plan &plan, const Layout &layout, int64_t depth, int64_t bytes, Touch touch) {
    bool dense = layout.stride == 1;
    for (int64_t batch = 0; batch < plan.batch; batch++)
        for (int64_t x = 0; x < plan.size[0]; x++) {
            if (dense) {
                Rows rows{static_cast<size_t>(depth * bytes), static_cast<size_t>(plan.size[1]), layout.embed[2] * bytes};
                if (!touch(layout.place(batch, x, 0, 0) * bytes, rows)) return false;
                continue;
            }
            for (int64_t y = 0; y < plan.size[1]; y++) {
                Rows numbers{static_cast<size_t>(bytes), static_cast<size_t>(depth), layout.stride * bytes};
                if (!touch(layout.place(batch, x, y, 0) * bytes, numbers)) return false;
            }
        }
    return true;
}

template <class T>
void run_batch(const Plan &plan, int64_t batch, const void *from, const Layout &input, void *to, const Layout &output,
               bool back, int threads) {
    using Number = std::complex<T>;
    int64_t nz = plan.size[2];
    Volume volume(plan);
    auto turned = [&](Complex value) { return back ? std::conj(value) : value; };
    if (plan.from_real()) {
        auto *numbers = static_cast<const T *>(from);
        volume.each(nz, [&](Complex &one, int64_t x, int64_t y, int64_t z) { one = numbers[input.place(batch, x, y, z)]; });
    } else {
        auto *numbers = static_cast<const Number *>(from);
        volume.each(plan.to_real() ? nz / 2 + 1 : nz, [&](Complex &one, int64_t x, int64_t y, int64_t z) {
            one = Complex(numbers[input.place(batch, x, y, z)]);
        });
        if (plan.to_real()) volume.complete();
        if (back) volume.each(nz, [](Complex &one, int64_t, int64_t, int64_t) { one = std::conj(one); });
    }
    volume.transform(threads);
    if (plan.to_real()) {
        auto *numbers = static_cast<T *>(to);
        volume.each(nz, [&](Complex &one, int64_t x, int64_t y, int64_t z) {
            numbers[output.place(batch, x, y, z)] = static_cast<T>(one.real());
        });
    } else {
        auto *numbers = static_cast<Number *>(to);
        volume.each(plan.from_real() ? nz / 2 + 1 : nz, [&](Complex &one, int64_t x, int64_t y, int64_t z) {
            numbers[output.place(batch, x, y, z)] = Number(turned(one));
        });
    }
}

}  // namespace

void Plan::prepare() {
    for (int64_t length : size)
        if (!transforms.count(length)) transforms[length] = std::make_shared<Transform>(static_cast<size_t>(length));
}

Layout Plan::layout(const Layout &given, bool real, bool in_place) const {
    if (advanced) return given;
    bool has_real = from_real() || to_real();
    int64_t half = size[2] / 2 + 1, depth = !has_real ? size[2] : !real ? half : in_place ? 2 * half : size[2];
    return {{size[0], size[1], depth}, 1, size[0] * size[1] * depth};
}

void Plan::run(DeviceMemory &memory, const void *from, void *to, int direction, int threads) const {
    bool in_place = from == to;
    Layout in = layout(input, from_real(), in_place), out = layout(output, to_real(), in_place);
    int64_t number = single() ? 4 : 8, half = size[2] / 2 + 1;
    int64_t in_depth = to_real() ? half : size[2], out_depth = from_real() ? half : size[2];
    int64_t in_bytes = from_real() ? number : 2 * number, out_bytes = to_real() ? number : 2 * number;
    auto reads = [&](int64_t offset, const Rows &rows) { return memory.reads("idata", static_cast<const char *>(from) + offset, rows); };
    auto writes = [&](int64_t offset, const Rows &rows) { return memory.writes("odata", static_cast<char *>(to) + offset, rows); };
    if (!touched(*this, in, in_depth, in_bytes, reads) || !touched(*this, out, out_depth, out_bytes, writes)) return;
    // A batch is whole in memory of its own before it is written: its places may be those that it came from.
    bool alone = batch < threads;
    in_parallel(batch, alone || in_place ? 1 : threads, [&](int64_t one) {
        auto go = single() ? run_batch<float> : run_batch<double>;
        go(*this, one, from, in, to, out, direction > 0, alone || in_place ? threads : 1);
    });
}

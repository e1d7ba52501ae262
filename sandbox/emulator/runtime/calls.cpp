// What lowered code asks of the runtime about calls: parameter blocks, local frames, targets in registers.

#include <bit>
#include <cstring>

#include "access.h"
#include "fiber.h"

using namespace kw;

namespace {

constexpr size_t FRAME_BYTES = STACK_BYTES / 4;  // of this machine's stack, that the next functions may need
constexpr u8 UNDEFINED = 0xFF;  // in every byte of a local variable at first: as a float not a number

template <class Each>
void for_lanes(u32 mask, Each&& each) {
  for (; mask; mask &= mask - 1) each(std::countr_zero(mask));
}

u64 local_bytes(const Warp* warp) { return warp->worker->launch.request->kernel->local_bytes; }

u8* local(const Warp* warp, int lane, u64 at) { return warp->locals + static_cast<u64>(lane) * local_bytes(warp) + at; }

void mark_local(const Warp* warp, int lane, u64 at, u64 size, u8 written) {
  if (warp->local_marks) std::memset(warp->local_marks + static_cast<u64>(lane) * local_bytes(warp) + at, written, size);
}

void undefine(const Warp* warp, int lane, u64 at, u64 size) {
  std::memset(local(warp, lane, at), UNDEFINED, size);
  mark_local(warp, lane, at, size, 0);
}

[[noreturn]] void overflow(Warp* warp, u32 lane, u32 line, const std::string& what) {
  fail(warp, lane, line, "stack overflow", what, {}, "local");
}

void require_room(Warp* warp, u32 lane, u32 line, u64 end, const char* what) {
  if (end <= local_bytes(warp)) return;
  overflow(warp, lane, line,
           std::string(what) + " more local memory than a thread has here (" + with_commas(local_bytes(warp)) + " bytes)");
}

template <u32 Bytes>
void read_block(const u8* block, u32 size, u32 offset, u8* out) {
  for (u32 lane = 0; lane < LANES; ++lane) std::memcpy(out + lane * Bytes, block + lane * size + offset, Bytes);
}

template <u32 Bytes>
void write_block(u8* block, u32 size, u32 offset, u32 mask, const u8* data) {
  for_lanes(mask, [&](int lane) { std::memcpy(block + static_cast<u32>(lane) * size + offset, data + lane * int{Bytes}, Bytes); });
}

}  // namespace

extern "C" {

// Parameters of device functions: a block of `size` bytes a lane.
#define PARAMETER(BYTES)                                                                                  \
  void kw_parameter_read_##BYTES(const u8* block, u32 size, u32 offset, u8* out) {                        \
    read_block<BYTES>(block, size, offset, out);                                                          \
  }                                                                                                       \
  void kw_parameter_write_##BYTES(u8* block, u32 size, u32 offset, u32 mask, const u8* data) {            \
    write_block<BYTES>(block, size, offset, mask, data);                                                  \
  }
PARAMETER(1)
PARAMETER(2)
PARAMETER(4)
PARAMETER(8)

// A copy in local memory of a parameter whose address the function takes.
void kw_parameter_copy(Warp* warp, u32 lanes, u64 at, u32 size, const u8* block) {
  for_lanes(lanes, [&](int lane) {
    std::memcpy(local(warp, lane, at), block + static_cast<u32>(lane) * size, size);
    mark_local(warp, lane, at, size, 1);
  });
}

// The local memory of a function that some lanes enter: [locals, locals + bytes).
void kw_frame(Warp* warp, u32 line, u32 lanes, u64 locals, u64 bytes) {
  if (!lanes) return;
  u32 first = static_cast<u32>(std::countr_zero(lanes));
  require_room(warp, first, line, locals + bytes, "calls nest too deep: their variables need");
  auto* here = static_cast<const u8*>(__builtin_frame_address(0));
  if (static_cast<size_t>(warp->stack_end - here) > STACK_BYTES - FRAME_BYTES)
    overflow(warp, first, line,
             "calls nest too deep: does a function call itself without end? A warp's calls have " +
                 with_commas(STACK_BYTES - FRAME_BYTES) + " bytes for their registers here, whatever cudaLimitStackSize is");
  for_lanes(lanes, [&](int lane) { undefine(warp, lane, locals, bytes); });
}

// Local memory of a size known when it runs: where each lane's free part starts.
void kw_start_tops(u64* tops, u64 start) {
  for (int lane = 0; lane < LANES; ++lane) tops[lane] = start;
}

void kw_alloca(Warp* warp, u32 line, u32 mask, u64* tops, const u64* sizes, u64 align, u64* out) {
  align = std::has_single_bit(align) ? std::max<u64>(align, 16) : 16;
  for_lanes(mask, [&](int lane) {
    u64 at = (tops[lane] + align - 1) & ~(align - 1);
    u64 size = std::min(sizes[lane], WINDOW_BYTES);
    require_room(warp, static_cast<u32>(lane), line, at + size, "an allocation on the stack needs");
    undefine(warp, lane, at, size);
    out[lane] = at;
    tops[lane] = at + size;
  });
}

u64 kw_top(u32 mask, const u64* tops) {
  u64 top = 0;
  for_lanes(mask, [&](int lane) { top = std::max(top, tops[lane]); });
  return (top + 15) & ~u64{15};
}

// Of a call through a register: the target of the first lane left; `lanes` get all that go there with it.
u64 kw_call_target(u32* rest, const u64* targets, u32* lanes) {
  u64 target = targets[std::countr_zero(*rest)];
  u32 same = 0;
  for_lanes(*rest, [&](int lane) { same |= u32{targets[lane] == target} << lane; });
  *lanes = same;
  *rest &= ~same;
  return target;
}

void kw_bad_call(Warp* warp, u32 line, u32 mask, u64 target) {
  u32 lane = static_cast<u32>(std::countr_zero(mask));
  if (target == 0) fail(warp, lane, line, "null", "a call through a null function pointer", target);
  if (target - FUNCTION_BASE < WINDOW_BYTES && target % 16 == 0)
    fail(warp, lane, line, "bad call", "a call of a function that has other parameters than the call gives", target);
  fail(warp, lane, line, "bad call", "a call through a pointer to " + hexadecimal(target) + ", where no function is", target);
}

// Of a branch by index: the block that all running lanes go to; -1 where they part, and then they wait there.
i32 kw_branch_by_index(Warp* warp, u32 line, State* state, u32 mask, u32 next, const u32* choice, const u32* table, u32 count) {
  for_lanes(mask, [&](int lane) {
    if (choice[lane] >= count)
      fail(warp, static_cast<u32>(lane), line, "bad call",
           "a branch to target " + std::to_string(choice[lane]) + " of " + std::to_string(count));
  });
  if (mask && mask == state->mask) {
    u32 target = table[choice[std::countr_zero(mask)]];
    bool same = true;
    for_lanes(mask, [&](int lane) { same = same && table[choice[lane]] == target; });
    if (same) return static_cast<i32>(target);
  }
  for_lanes(mask, [&](int lane) { state->waiting[table[choice[lane]]] |= u32{1} << lane; });
  if (next < state->blocks) state->waiting[next] |= state->mask & ~mask;
  return -1;
}

// malloc and free of kernels. A result that nobody wants has no place.
void kw_malloc(Warp* warp, u32 line, u32 mask, u8* results, const u8* sizes) {
  for_lanes(mask, [&](int lane) {
    u64 size, address;
    std::memcpy(&size, sizes + lane * 8, 8);
    address = warp->worker->launch.device->heap.allocate(size, *warp->module, warp->block->kernel->name, line);
    if (results) std::memcpy(results + lane * 8, &address, 8);
  });
}

void kw_free(Warp* warp, u32 line, u32 mask, const u8* addresses) {
  for_lanes(mask, [&](int lane) {
    u64 address;
    std::memcpy(&address, addresses + lane * 8, 8);
    if (!address) return;
    Heap::Release result = warp->worker->launch.device->heap.release(address);
    if (result == Heap::Release::done) return;
    fail(warp, static_cast<u32>(lane), line, "bad free",
         result == Heap::Release::twice ? "a second free of " + hexadecimal(address)
                                        : "a free of " + hexadecimal(address) + ", which malloc did not give",
         address, "global");
  });
}
}

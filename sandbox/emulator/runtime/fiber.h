// Each warp runs on a stack of its own: a barrier is a switch to the next warp.
#pragma once

#include <cstddef>
#include <stdexcept>

#include "abi.h"

namespace kw {

constexpr size_t STACK_BYTES = 4 << 20;

struct OutOfStacks : std::runtime_error {
  using std::runtime_error::runtime_error;
};

u8* make_stack();  // throws OutOfStacks; a guard page lies below
void* start_fiber(u8* stack, void (*function)(void*), void* argument);  // stack pointer to switch to
void drop_stack(u8* stack);  // kept for the next

// From now on a warp that overflows its stack in this thread ends the process, with STACK_EXIT and a sentence.
void watch_stacks();
// What becomes of an access of a fiber's to memory that is not there: called on that fiber, with the address, and must
// not return. Null: the process dies of it.
extern thread_local void (*wild_access)(u64 address);
constexpr int STACK_EXIT = 4;

}  // namespace kw

// Saves the stack pointer of what runs in *save and goes on at `next`.
extern "C" void kw_switch_stack(void** save, void* next);

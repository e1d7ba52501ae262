#include "fiber.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>


#include <mutex>
#include <stdexcept>
#include <vector>

#if !defined(__x86_64__)
#error "fibers are written for x86-64"
#endif

// Callee-saved registers only: everything else is the caller's by the System V calling convention.
asm(R"(
.text
.globl kw_switch_stack
.type kw_switch_stack, @function
kw_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kw_switch_stack, .-kw_switch_stack
.globl kw_begin_fiber
.type kw_begin_fiber, @function
kw_begin_fiber:
  movq %r12, %rdi
  call *%r13
  ud2
.size kw_begin_fiber, .-kw_begin_fiber
)");

extern "C" void kw_begin_fiber();

namespace kw {

constexpr size_t GUARD = 4096;

namespace {
// Stacks are handed on from launch to launch: mapping and faulting them in costs more than a small launch.
std::mutex pool_mutex;
std::vector<u8*> pool;
std::vector<u8*> all;  // grows only between launches, so that a signal handler may read it

void on_fault(int, siginfo_t* info, void*) {
  auto* at = static_cast<u8*>(info->si_addr);
  for (u8* stack : all) {
    if (at < stack || at >= stack + GUARD) continue;
    const char text[] = "kw-emulate: unsupported: a kernel whose variables need more stack than a warp has here\n";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(STACK_EXIT);
  }
  signal(SIGSEGV, SIG_DFL);
}
}  // namespace

void watch_stacks() {
  static thread_local char own[1 << 14];
  stack_t alternative{};
  alternative.ss_sp = own;
  alternative.ss_size = sizeof own;
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

u8* make_stack() {
  {
    std::lock_guard lock(pool_mutex);
    if (!pool.empty()) {
      u8* stack = pool.back();
      pool.pop_back();
      return stack;
    }
  }
  void* memory = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for the stacks of warps");
  mprotect(memory, GUARD, PROT_NONE);
  std::lock_guard lock(pool_mutex);
  all.push_back(static_cast<u8*>(memory));
  return all.back();
}

void drop_stack(u8* stack) {
  std::lock_guard lock(pool_mutex);
  pool.push_back(stack);
}

void* start_fiber(u8* stack, void (*function)(void*), void* argument) {
  auto* top = reinterpret_cast<void**>(stack + STACK_BYTES - 64);
  *--top = nullptr;  // keeps the stack aligned as after a call
  *--top = reinterpret_cast<void*>(&kw_begin_fiber);
  *--top = nullptr;   // rbp
  *--top = nullptr;   // rbx
  *--top = argument;  // r12
  *--top = reinterpret_cast<void*>(function);  // r13
  *--top = nullptr;   // r14
  *--top = nullptr;   // r15
  return top;
}

}  // namespace kw

#include "fiber.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
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

namespace {

constexpr size_t GUARD = 4096;
constexpr size_t MOST_STACKS = 1 << 14;  // twice the warps of the largest GPU

// Stacks are handed on from launch to launch: mapping and faulting them in costs more than a small launch.
std::mutex pool_mutex;
std::vector<u8*> pool;
std::atomic<u8*> area{nullptr};  // all stacks, one behind the other, each above a guard page
size_t made = 0;

// Goes on on the stack at hand, as if what runs there had called `function`.
void divert(ucontext_t& context, void (*function)(u64), u64 argument) {
  constexpr greg_t BELOW = 256;  // the red zone, and more
  greg_t* registers = context.uc_mcontext.gregs;
  registers[REG_RSP] = ((registers[REG_RSP] - BELOW) & ~greg_t{15}) - 8;
  registers[REG_RIP] = reinterpret_cast<greg_t>(function);
  registers[REG_RDI] = static_cast<greg_t>(argument);
}

void on_fault(int, siginfo_t* info, void* context) {
  u8* first = area.load();
  auto* at = static_cast<u8*>(info->si_addr);
  if (first && at >= first && at < first + MOST_STACKS * STACK_BYTES && static_cast<size_t>(at - first) % STACK_BYTES < GUARD) {
    const char text[] = "kw-emulate: unsupported: a kernel whose variables need more stack than a warp has here\n";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(STACK_EXIT);
  }
  if (wild_access) {
    divert(*static_cast<ucontext_t*>(context), wild_access, reinterpret_cast<u64>(at));
    return;
  }
  signal(SIGSEGV, SIG_DFL);
}

// A shared mapping takes pages only where they are touched, also in the eyes of RLIMIT_DATA.
void reserve_area() {
  void* memory = mmap(nullptr, MOST_STACKS * STACK_BYTES, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw OutOfStacks("no addresses for the stacks of warps");
  area = static_cast<u8*>(memory);
}

}  // namespace

thread_local void (*wild_access)(u64) = nullptr;

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
  std::lock_guard lock(pool_mutex);
  if (!pool.empty()) {
    u8* stack = pool.back();
    pool.pop_back();
    return stack;
  }
  if (!area) reserve_area();
  u8* stack = area + made * STACK_BYTES;
  if (made == MOST_STACKS || mprotect(stack + GUARD, STACK_BYTES - GUARD, PROT_READ | PROT_WRITE) != 0)
    throw OutOfStacks("no memory for the stacks of so many warps");
  ++made;
  return stack;
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

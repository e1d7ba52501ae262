/* Calls the reference on many sets of inputs. Linked with the user's program, run only in the jail.
 *
 * usage: reference REQUEST RESULT end|start POISON MILLISECONDS
 *
 * REQUEST, all little-endian int64:
 *   draws, parameters, then for each draw and parameter four words:
 *     scalar:  0, the value's 8 bytes, 0, 0
 *     array:   1, bytes, offset of its data in REQUEST or -1 (then POISON), offset in RESULT or -1
 * RESULT exists and has its final size: for each draw four words (status, detail, parameter, byte offset),
 * then room for the arrays.
 *   status 0 fine, after `detail` microseconds of CPU time; 1 signal `detail`, with the array nearest to the faulting address (or -1);
 *   2 over its time; 3 left by exit with code `detail`.
 *
 * Built with KW_TRACE and a program compiled with -fsanitize=thread, whose hooks are below, it notes instead which
 * bytes of each array are touched, with room on both sides: an array's result is the first and last byte, or 1, 0.
 *
 * Built with KW_TIME, each draw's program is called several times on inputs as new, and `detail` is the median of
 * its wall times in nanoseconds.
 *
 * Every array stands between pages that fault, flush with the upper ("end") or the lower ("start") one. Each draw
 * runs in a child of its own, so that a fault in one leaves the others alone. After one call that did not end in
 * time the others get little.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PARAMETERS = 128, PAGE = 4096 };
#define GUARD (64L << 20)
#define WINDOW (16L << 20)

extern void kw_invoke(void **arguments);
long kw_bytes[MAX_PARAMETERS]; /* size of every array, for references that convert their inputs */

typedef struct {
  int64_t kind, value, data, result;
} Slot;

static int64_t parameters;
static char *starts[MAX_PARAMETERS];
static int64_t *verdict; /* four words of this draw, in RESULT */
static const Slot *current;

static void *map_file(const char *path, int flags, int protection, int sharing) {
  int fd = open(path, flags);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) exit(120);
  void *mapped = mmap(NULL, (size_t)status.st_size, protection, sharing, fd, 0);
  if (mapped == MAP_FAILED) exit(121);
  close(fd);
  return mapped;
}

#ifdef KW_TRACE
static int64_t touched[MAX_PARAMETERS][2];

static void note(char *address, int64_t bytes) {
  for (int64_t p = 0; p < parameters; p++) {
    int64_t at = address - starts[p];
    if (current[p].kind != 1 || at < -WINDOW || at >= WINDOW) continue;
    if (touched[p][0] > touched[p][1]) touched[p][0] = at, touched[p][1] = at + bytes - 1;
    if (at < touched[p][0]) touched[p][0] = at;
    if (at + bytes - 1 > touched[p][1]) touched[p][1] = at + bytes - 1;
    return;
  }
}

#define HOOK(name, size) void __tsan_##name##size(char *address) { note(address, size); }
#define HOOKS(name) HOOK(name, 1) HOOK(name, 2) HOOK(name, 4) HOOK(name, 8) HOOK(name, 16)
HOOKS(read) HOOKS(write) HOOKS(unaligned_read) HOOKS(unaligned_write) HOOKS(volatile_read) HOOKS(volatile_write)
void __tsan_read_range(char *address, size_t bytes) { note(address, (int64_t)bytes); }
void __tsan_write_range(char *address, size_t bytes) { note(address, (int64_t)bytes); }
void __tsan_init(void) {}
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void) {}

static char *place(int64_t bytes, int at_end) {
  (void)bytes, (void)at_end;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  char *base = mmap(NULL, 2 * WINDOW, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (base == MAP_FAILED) exit(122);
  return base + WINDOW;
}
#else
static char *place(int64_t bytes, int at_end) {
  int64_t room = (bytes + PAGE - 1) / PAGE * PAGE;
  char *base = mmap(NULL, (size_t)(room + 2 * GUARD), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) exit(122);
  base += GUARD;
  if (room && mprotect(base, (size_t)room, PROT_READ | PROT_WRITE) != 0) exit(123);
  return at_end ? base + room - bytes : base;
}
#endif

static void faulted(int number, siginfo_t *info, void *context) {
  (void)context;
  char *address = info->si_addr;
  int64_t nearest = -1, best = GUARD;
  if (number == SIGSEGV || number == SIGBUS)
    for (int64_t p = 0; p < parameters; p++) {
      if (current[p].kind != 1) continue;
      int64_t after = address - starts[p];
      int64_t distance = after < 0 ? -after : after - current[p].value;
      if (distance < best) best = distance, nearest = p;
    }
  verdict[0] = 1;
  verdict[1] = number;
  verdict[2] = nearest;
  verdict[3] = nearest < 0 ? 0 : address - starts[nearest];
  _exit(0);
}

static void on_exit_called(void) {
  verdict[0] = 3;
}

static void fill(const char *request, int64_t p, int poison) {
  if (current[p].data >= 0)
    memcpy(starts[p], request + current[p].data, (size_t)current[p].value);
  else
    memset(starts[p], poison, (size_t)current[p].value);
}

#ifdef KW_TIME
enum { TRIALS = 20 };
#define MOST_NANOSECONDS 250000000L

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return (left > right) - (left < right);
}

/* The first call, which is not timed, touches all memory. */
static int64_t timed(const char *request, void **arguments, int poison) {
  int64_t taken[TRIALS], all = 0;
  int count = 0;
  kw_invoke(arguments);
  while (count < TRIALS && all < MOST_NANOSECONDS) {
    for (int64_t p = 0; p < parameters; p++)
      if (current[p].kind == 1) fill(request, p, poison);
    int64_t began = now();
    kw_invoke(arguments);
    all += taken[count] = now() - began;
    count++;
  }
  qsort(taken, (size_t)count, sizeof *taken, by_size);
  return taken[count / 2] > 0 ? taken[count / 2] : 1;
}
#endif

static void run(const char *request, char *result, int at_end, int poison) {
  void *arguments[MAX_PARAMETERS];
  for (int64_t p = 0; p < parameters; p++) {
    arguments[p] = (void *)&current[p].value;
    if (current[p].kind != 1) continue;
    int64_t bytes = current[p].value;
    kw_bytes[p] = bytes;
    arguments[p] = starts[p] = place(bytes, at_end);
    fill(request, p, poison);
  }
#ifdef KW_TRACE
  for (int64_t p = 0; p < parameters; p++) touched[p][0] = 1, touched[p][1] = 0;
  kw_invoke(arguments);
  for (int64_t p = 0; p < parameters; p++)
    if (current[p].kind == 1) memcpy(result + current[p].result, touched[p], sizeof *touched);
#else
#ifdef KW_TIME
  verdict[1] = timed(request, arguments, poison);
#else
  kw_invoke(arguments);
#endif
  for (int64_t p = 0; p < parameters; p++)
    if (current[p].kind == 1 && current[p].result >= 0)
      memcpy(result + current[p].result, starts[p], (size_t)current[p].value);
#endif
}

static void child(const char *request, char *result, int at_end, int poison, long milliseconds) {
  static char stack[1 << 16];
  stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action = {.sa_sigaction = faulted, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  struct itimerval timer = {.it_value = {milliseconds / 1000, milliseconds % 1000 * 1000}};
  int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  sigaltstack(&other, NULL);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
  setitimer(ITIMER_REAL, &timer, NULL);
  atexit(on_exit_called);
  run(request, result, at_end, poison);
#ifndef KW_TIME
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  verdict[1] = used.tv_sec * 1000000 + used.tv_nsec / 1000;
#endif
  verdict[0] = 0;
  _exit(0);
}

int main(int count, char **words) {
  if (count != 6) return 119;
  const char *request = map_file(words[1], O_RDONLY, PROT_READ, MAP_PRIVATE);
  char *result = map_file(words[2], O_RDWR, PROT_READ | PROT_WRITE, MAP_SHARED);
  const int64_t *header = (const int64_t *)request;
  int64_t draws = header[0];
  long milliseconds = atol(words[5]);
  parameters = header[1];
  if (parameters > MAX_PARAMETERS) return 118;
  for (int64_t d = 0; d < draws; d++) {
    current = (const Slot *)(header + 2) + d * parameters;
    verdict = (int64_t *)result + 4 * d;
    verdict[0] = 3;
    verdict[2] = -1;
    pid_t pid = fork();
    if (pid < 0) return 117;
    if (pid == 0) child(request, result, strcmp(words[3], "end") == 0, atoi(words[4]), milliseconds);
    int status = 0;
    if (waitpid(pid, &status, 0) < 0) return 116;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) milliseconds = 50; /* it will not end this time either */
    if (WIFSIGNALED(status)) {
      verdict[0] = WTERMSIG(status) == SIGALRM ? 2 : 1;
      verdict[1] = WTERMSIG(status);
      verdict[2] = -1;
    } else if (verdict[0] == 3) {
      verdict[1] = WEXITSTATUS(status);
    }
  }
  return 0;
}

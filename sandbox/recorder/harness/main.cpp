// The program that calls a candidate's `launch`, in the jail, once a set of arguments.
//
//     kw-record RUNTIME CANDIDATE STATUS_FD RESULT_FD...     with the job on standard input
//
// The job: tables for the runtime (see kernelwright_record), and one line a call,
//     call <argument>...      an argument is i:<hex of 64 bits> (integer, pointer) or f:<hex> (float, double)
// Every call runs in a process of its own that loads the candidate afresh, and whatever it started is dead before
// the next one begins, so nothing one call leaves behind reaches another; its plan goes to its result file. What became of the process goes to the status file, which
// no such process holds: a line "<call> exit <code>" or "<call> signal <number>".
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace {

#if defined(__x86_64__)
constexpr size_t kIntegers = 6, kReals = 8;
#elif defined(__aarch64__)
constexpr size_t kIntegers = 8, kReals = 8;
#else
#error "the calling convention of this machine is not known here"
#endif
constexpr size_t kStack = 48;    // arguments beyond the registers
constexpr size_t kDetail = 300;   // bytes told of how a call ended
constexpr uint64_t kDeviceBytes = (uint64_t{1} << 36) + (uint64_t{1} << 40);
uint64_t device_base = 0x2000'0000'0000;  // unless the tables say otherwise

// Arguments as both conventions place them: integers and reals fill their own registers in order; what does not
// fit goes to the stack in eight-byte slots.
struct Arguments {
    uint64_t integers[kIntegers] = {};
    double reals[kReals] = {};
    uint64_t stack[kStack] = {};
    size_t integer_count = 0, real_count = 0, stack_count = 0;

    bool add(char kind, uint64_t bits) {
        if (kind == 'i' && integer_count < kIntegers) {
            integers[integer_count++] = bits;
        } else if (kind == 'f' && real_count < kReals) {
            memcpy(&reals[real_count++], &bits, sizeof bits);
        } else if (stack_count < kStack) {
            stack[stack_count++] = bits;
        } else {
            return false;
        }
        return true;
    }
};

template <size_t>
using Integer = uint64_t;
template <size_t>
using Real = double;

template <size_t... I, size_t... R, size_t... S>
void call(void *function, const Arguments &a, std::index_sequence<I...>, std::index_sequence<R...>,
          std::index_sequence<S...>) {
    using Function = void (*)(Integer<I>..., Real<R>..., Integer<S>...);
    reinterpret_cast<Function>(function)(a.integers[I]..., a.reals[R]..., a.stack[S]...);
}

using Finish = void (*)(int, const char *, const char *);
struct {
    Finish finish;
    int result;
    bool over;
} child;

void finish(const char *outcome, const char *detail) {
    if (child.over) return;
    child.over = true;
    child.finish(child.result, outcome, std::string(detail).substr(0, kDetail).c_str());
}

void on_exit_of_candidate(int code, void *) { finish("exit", std::to_string(code).c_str()); }

// Only calls that are safe in a handler. The plan so far is lost: it is a crash.
void on_crash(int number, siginfo_t *info, void *) {
    char text[160];
    auto address = reinterpret_cast<uint64_t>(info->si_addr);
    bool device = number == SIGSEGV && address >= device_base && address < device_base + kDeviceBytes;
    int length = snprintf(text, sizeof text,
                          "{\"outcome\":\"%s\",\"detail\":\"%llu\",\"unsupported\":null,\"dropped\":[],\"operations\":[]}",
                          device ? "device_read" : "signal", static_cast<unsigned long long>(device ? address : number));
    if (!child.over) (void)!write(child.result, text, length);
    _exit(70);
}

void catch_crashes() {
    static char stack[1 << 16];
    stack_t alternative{};
    alternative.ss_sp = stack;
    alternative.ss_size = sizeof stack;
    sigaltstack(&alternative, nullptr);
    struct sigaction action{};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigaction(number, &action, nullptr);
}

[[noreturn]] void run(const char *candidate, const Arguments &arguments) {
    catch_crashes();
    on_exit(on_exit_of_candidate, nullptr);
    void *library = dlopen(candidate, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        finish("load", dlerror());
        _exit(0);
    }
    void *launch = dlsym(library, "launch");
    if (!launch) {
        finish("load", "there is no function launch with C linkage");
        _exit(0);
    }
    try {
        call(launch, arguments, std::make_index_sequence<kIntegers>(), std::make_index_sequence<kReals>(),
             std::make_index_sequence<kStack>());
    } catch (const std::exception &error) {
        finish("exception", error.what());
        _exit(0);
    } catch (...) {
        finish("exception", "of a type that is no std::exception");
        _exit(0);
    }
    fflush(nullptr);
    finish("returned", "");
    _exit(0);
}

// Processes that calls left behind are ours since we are their subreaper: the children of the dead move up to us.
void end_what_is_left() {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    while (true) {
        if (FILE *children = fopen(path, "r")) {
            int pid;
            while (fscanf(children, "%d", &pid) == 1) kill(pid, SIGKILL);
            fclose(children);
        }
        if (waitpid(-1, nullptr, 0) < 0) return;
    }
}

// The job lies in pages of its own and is read there, so that giving them back leaves no copy for a call to find:
// not on the heap, not on the stack, not in a stream's buffer.
struct Job {
    static constexpr size_t kMost = size_t{64} << 20;
    char *text = static_cast<char *>(mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    size_t size = 0;

    bool read_from(int file) {
        if (text == MAP_FAILED) return false;
        ssize_t count;
        while ((count = read(file, text + size, kMost - 1 - size)) > 0) size += count;
        return count == 0 && size < kMost - 1;
    }
    void forget() { munmap(text, kMost); }
};

// `line` ends with a zero byte.
bool parse(const char *line, Arguments &arguments) {
    const char *at = line + strlen("call");
    while (*at == ' ') {
        char kind = at[1];
        char *end = nullptr;
        if (!arguments.add(kind, strtoull(at + 3, &end, 16))) return false;
        at = end;
    }
    return *at == '\0';
}

// A GPU's driver may have put the device's range anywhere that was free in its own process. With nothing placed at
// random, this process's libraries and stack are at the very top, where no such range ends.
void stay_out_of_the_way(char **words) {
    int now = personality(0xffffffff);
    if (now == -1 || now & ADDR_NO_RANDOMIZE || personality(now | ADDR_NO_RANDOMIZE) == -1) return;
    execv("/proc/self/exe", words);
}

int fail(const char *message) {
    fprintf(stderr, "kw-record: %s\n", message);
    return 2;
}

}  // namespace

int main(int count, char **words) {
    stay_out_of_the_way(words);
    if (count < 5) return fail("kw-record RUNTIME CANDIDATE STATUS_FD RESULT_FD...");
    Job job;
    if (!job.read_from(STDIN_FILENO)) return fail("the job cannot be read");
    std::string tables;
    std::vector<Arguments> calls;
    calls.reserve(count - 4);  // growing would leave copies behind
    for (char *line = job.text, *end; line < job.text + job.size; line = end + 1) {
        end = line + strcspn(line, "\n");
        *end = '\0';
        if (strncmp(line, "call", 4) == 0) {
            if (calls.size() == calls.capacity() || !parse(line, calls.emplace_back()))
                return fail("a call too many, or with too many arguments");
        } else {
            if (strncmp(line, "base\t", 5) == 0) device_base = strtoull(line + strlen("base\t"), nullptr, 10);
            tables.append(line).append("\n");
        }
    }
    job.forget();
    if (calls.size() != static_cast<size_t>(count - 4)) return fail("one result file a call");
    void *runtime = dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
    if (!runtime) return fail(dlerror());
    auto record = reinterpret_cast<void (*)(const char *)>(dlsym(runtime, "kernelwright_record"));
    child.finish = reinterpret_cast<Finish>(dlsym(runtime, "kernelwright_finish"));
    if (!record || !child.finish) return fail("not the recording runtime");
    record(tables.c_str());
    // Nobody may open this process's files or its children's through /proc.
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int status_file = atoi(words[3]);
    for (size_t i = 0; i < calls.size(); i++) {
        pid_t pid = fork();
        if (pid < 0) return fail("cannot fork");
        if (pid == 0) {
            close(status_file);
            // One call learns nothing of the others: not their sizes, not their plans.
            if (!freopen("/dev/null", "r", stdin)) _exit(70);
            for (size_t other = 0; other < calls.size(); other++)
                if (other != i) calls[other] = Arguments{};
            for (size_t other = 0; other < calls.size(); other++)
                if (other != i) close(atoi(words[4 + other]));
            child.result = atoi(words[4 + i]);
            run(words[2], calls[i]);
        }
        int status = 0;
        if (waitpid(pid, &status, 0) != pid) return fail("cannot wait");
        end_what_is_left();
        if (WIFSIGNALED(status))
            dprintf(status_file, "%zu signal %d\n", i, WTERMSIG(status));
        else
            dprintf(status_file, "%zu exit %d\n", i, WEXITSTATUS(status));
    }
    return 0;
}

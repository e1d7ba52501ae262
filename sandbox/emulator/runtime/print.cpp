// printf and assert of kernels.

#include <bit>
#include <cstdio>
#include <cstring>
#include <string>

#include "run.h"

using namespace kw;

namespace {

constexpr size_t MOST_TEXT = 1 << 14;  // of one string, or one formatted value
constexpr u32 MOST_ARGUMENTS = 32;     // as CUDA's own

// Where a lane's bytes at a generic address are on this machine; null where it may not read them.
const u8* readable(const Warp* warp, u32 lane, u64 at, u64 size) {
  u64 local_bytes = warp->worker->launch.request->kernel->local_bytes;
  auto inside = [&](u64 window, u64 bytes) { return at >= window && at - window <= bytes && size <= bytes - (at - window); };
  if (inside(LOCAL_WINDOW, local_bytes)) return warp->locals + lane * local_bytes + (at - LOCAL_WINDOW);
  const SharedMemory& shared = warp->block->shared;
  if (inside(SHARED_WINDOW, shared.size)) return &shared.bytes[at - SHARED_WINDOW];
  if (inside(PARAMETER_WINDOW, warp->worker->launch.request->kernel->parameter_bytes))
    return warp->parameters + (at - PARAMETER_WINDOW);
  return warp->worker->launch.device->find(at, size) ? Device::pointer(at) : nullptr;
}

template <class T>
T argument(const u8* block, u32 lane) {
  T value;
  std::memcpy(&value, block + lane * sizeof value, sizeof value);
  return value;
}

struct Place {
  Warp* warp;
  u32 lane, line;
};

[[noreturn]] void unreadable(const Place& place, const char* what, u64 at) {
  fail(place.warp, place.lane, place.line, at ? "out of bounds" : "null", std::string(what) + " at " + hexadecimal(at), at, "global");
}

std::string string_at(const Place& place, const char* what, u64 at) {
  std::string text;
  for (; text.size() < MOST_TEXT; ++at) {
    const u8* byte = readable(place.warp, place.lane, at, 1);
    if (!byte) unreadable(place, what, at);
    if (!*byte) break;
    text += static_cast<char>(*byte);
  }
  return text;
}

// The arguments of one printf: a block of values, each at a multiple of its size.
class Arguments {
 public:
  Arguments(const Place& place, u64 at) : place_(place), start_(at), at_(at) {}
  u32 taken = 0;

  template <class T>
  T next() {
    at_ = start_ + (at_ - start_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    const u8* bytes = readable(place_.warp, place_.lane, at_, sizeof(T));
    if (!bytes) unreadable(place_, "printf reads an argument", at_);
    T value;
    std::memcpy(&value, bytes, sizeof value);
    at_ += sizeof value;
    ++taken;
    return value;
  }

 private:
  const Place& place_;
  u64 start_, at_;
};

// `%-08.3lld` taken apart; `form` is the part that this machine's printf gets, without length and conversion.
struct Conversion {
  std::string form;
  bool wide = false;  // 64 bits
  int halvings = 0;   // of an int: `h` and `hh`
  char kind = 0;      // 0: the format ends in the middle of it
};

int bounded(int value) { return std::min<int>(std::max<int>(value, -static_cast<int>(MOST_TEXT) + 1), MOST_TEXT - 1); }

// Digits or `*` of a width or precision.
void number(const std::string& format, size_t& at, Arguments& arguments, std::string& form) {
  if (at < format.size() && format[at] == '*') {
    form += std::to_string(bounded(arguments.next<i32>()));
    ++at;
    return;
  }
  u64 value = 0;
  size_t start = at;
  for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at)
    value = std::min<u64>(10 * value + static_cast<u64>(format[at] - '0'), MOST_TEXT - 1);
  if (at > start) form += std::to_string(value);
}

Conversion parse(const std::string& format, size_t& at, Arguments& arguments) {
  Conversion found{"%"};
  while (at < format.size() && std::strchr("-+ #0", format[at])) found.form += format[at++];
  number(format, at, arguments, found.form);
  if (at < format.size() && format[at] == '.') {
    found.form += format[at++];
    number(format, at, arguments, found.form);
  }
  while (at < format.size() && std::strchr("hlLqjzt", format[at])) {
    if (char size = format[at++]; size == 'h')
      ++found.halvings;
    else
      found.wide = true;
  }
  if (at < format.size()) found.kind = format[at++];
  return found;
}

template <class T>
void append(std::string& text, const std::string& form, T value) {
  int size = std::snprintf(nullptr, 0, form.c_str(), value);
  if (size <= 0) return;
  size_t start = text.size();
  text.resize(start + static_cast<size_t>(size) + 1);
  std::snprintf(&text[start], static_cast<size_t>(size) + 1, form.c_str(), value);
  text.pop_back();
}

i64 signed_value(const Conversion& conversion, Arguments& arguments) {
  if (conversion.wide) return arguments.next<i64>();
  i32 value = arguments.next<i32>();
  return conversion.halvings == 0 ? value : conversion.halvings == 1 ? static_cast<i16>(value) : static_cast<i8>(value);
}

u64 unsigned_value(const Conversion& conversion, Arguments& arguments) {
  if (conversion.wide) return arguments.next<u64>();
  return arguments.next<u32>() & (conversion.halvings == 0 ? ~u32{0} : conversion.halvings == 1 ? 0xffff : 0xff);
}

void convert(std::string& text, const Place& place, const Conversion& conversion, Arguments& arguments) {
  const std::string& form = conversion.form;
  switch (conversion.kind) {
    case 'd':
    case 'i':
      return append(text, form + "lld", static_cast<long long>(signed_value(conversion, arguments)));
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      return append(text, form + "ll" + conversion.kind, static_cast<unsigned long long>(unsigned_value(conversion, arguments)));
    case 'c':
      return append(text, form + "c", arguments.next<i32>());
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      return append(text, form + conversion.kind, arguments.next<double>());
    case 'p':
      return append(text, form + "p", reinterpret_cast<void*>(arguments.next<u64>()));
    case 's': {
      u64 at = arguments.next<u64>();
      return append(text, form + "s", (at ? string_at(place, "printf reads a string", at) : std::string("(null)")).c_str());
    }
    default:
      give_up(place.warp, "printf in a kernel with a conversion that CUDA's does not have");
  }
}

std::string formatted(const Place& place, const std::string& format, Arguments& arguments) {
  std::string text;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      text += format[at++];
      continue;
    }
    if (++at < format.size() && format[at] == '%') {
      text += format[at++];
      continue;
    }
    Conversion conversion = parse(format, at, arguments);
    if (!conversion.kind) break;
    convert(text, place, conversion, arguments);
    if (arguments.taken > MOST_ARGUMENTS) break;
  }
  return text;
}

}  // namespace

extern "C" {

// int vprintf(format, arguments): the number of arguments that the format took.
void kw_vprintf(Warp* warp, u32 line, u32 mask, u8* result, const u8* formats, const u8* blocks) {
  std::string text;
  for (; mask; mask &= mask - 1) {
    u32 lane = static_cast<u32>(std::countr_zero(mask));
    Place place{warp, lane, line};
    Arguments arguments(place, argument<u64>(blocks, lane));
    u64 format = argument<u64>(formats, lane);
    i32 taken = -1;
    if (format) {
      text += formatted(place, string_at(place, "printf reads its format", format), arguments);
      taken = static_cast<i32>(arguments.taken);
    }
    if (result) std::memcpy(result + lane * sizeof taken, &taken, sizeof taken);
  }
  Launch& launch = warp->worker->launch;
  if (text.empty() || !*launch.print) return;
  std::lock_guard lock(launch.print_mutex);
  (*launch.print)(text);
}

void kw_assert(Warp* warp, u32 line, u32 mask, const u8* messages, const u8* files, const u8* lines, const u8* functions,
               const u8*) {
  if (!mask) return;
  u32 lane = static_cast<u32>(std::countr_zero(mask));
  Place place{warp, lane, line};
  auto text = [&](const u8* block) {
    u64 at = argument<u64>(block, lane);
    return at ? string_at(place, "assert reads a string", at) : std::string("?");
  };
  fail(warp, lane, line, "assert",
       "assertion `" + text(messages) + "` failed in " + text(functions) + " (" + text(files) + ":" +
           std::to_string(argument<u32>(lines, lane)) + ")");
}

void kw_trap(Warp* warp, u32 line, u32 mask) {
  fail(warp, static_cast<u32>(std::countr_zero(mask)), line, "trap", "the kernel executed a trap instruction");
}
}

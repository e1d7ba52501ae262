#include "trace.h"

#include <cmath>
#include <map>

namespace kw {
namespace {

enum Field {
  INSTRUCTIONS,
  ACTIVE_LANES,
  GLOBAL_LOAD_REQUESTS,
  GLOBAL_LOAD_SECTORS,
  GLOBAL_LOAD_BYTES,
  GLOBAL_STORE_REQUESTS,
  GLOBAL_STORE_SECTORS,
  GLOBAL_STORE_BYTES,
  SHARED_LOAD_REQUESTS,
  SHARED_LOAD_WAVEFRONTS,
  SHARED_LOAD_IDEAL,
  SHARED_STORE_REQUESTS,
  SHARED_STORE_WAVEFRONTS,
  SHARED_STORE_IDEAL,
  LOCAL_BYTES,
  FLOP_FP16,
  FLOP_FP32,
  FLOP_FP64,
  ALL_BRANCHES,
  DIVERGENT_BRANCHES,
  BARRIERS,
  ATOMICS,
  ATOMIC_LANES,
  ATOMIC_ADDRESSES,
  GLOBAL_LOAD_IDEAL,
  GLOBAL_STORE_IDEAL,
  SHARED_ATOMICS,
  BARRIERS_EXECUTED,
  USELESS_BARRIERS,
  FIELDS
};

constexpr const char* NAMES[FIELDS] = {
    "instructions",          "active_lanes",           "global_load_requests",    "global_load_sectors",
    "global_load_bytes",     "global_store_requests",  "global_store_sectors",    "global_store_bytes",
    "shared_load_requests",  "shared_load_wavefronts", "shared_load_ideal",       "shared_store_requests",
    "shared_store_wavefronts", "shared_store_ideal",   "local_bytes",             "flop_fp16",
    "flop_fp32",             "flop_fp64",              "branches",                "divergent_branches",
    "barriers",              "atomics",                "atomic_lanes",            "atomic_addresses",
    "global_load_ideal",     "global_store_ideal",     "shared_atomics",
    "barriers_executed",     "useless_barriers"};

using Row = u64[FIELDS];
struct Line {
  Row field = {};
};

void add_access(Line& line, const Site& site, const u64* counted) {
  u64* field = line.field;
  if (site.direction == 'a') {
    field[ATOMICS] += counted[REQUESTS];
    field[SHARED_ATOMICS] += counted[WAVEFRONTS];  // one for each request that went to shared memory
    field[ATOMIC_LANES] += counted[ACCESS_LANES];
    field[ATOMIC_ADDRESSES] += counted[ADDRESSES];
    return;
  }
  bool stores = site.direction == 's';
  // A generic access counts where it went: wavefronts only ever come from shared memory, sectors from global.
  if (counted[WAVEFRONTS]) {
    field[stores ? SHARED_STORE_REQUESTS : SHARED_LOAD_REQUESTS] += counted[REQUESTS];
    field[stores ? SHARED_STORE_WAVEFRONTS : SHARED_LOAD_WAVEFRONTS] += counted[WAVEFRONTS];
    field[stores ? SHARED_STORE_IDEAL : SHARED_LOAD_IDEAL] += counted[IDEAL];
  } else if (counted[SECTORS]) {
    field[stores ? GLOBAL_STORE_REQUESTS : GLOBAL_LOAD_REQUESTS] += counted[REQUESTS];
    field[stores ? GLOBAL_STORE_SECTORS : GLOBAL_LOAD_SECTORS] += counted[SECTORS];
    field[stores ? GLOBAL_STORE_BYTES : GLOBAL_LOAD_BYTES] += counted[BYTES];
    field[stores ? GLOBAL_STORE_IDEAL : GLOBAL_LOAD_IDEAL] += counted[IDEAL];
  } else {
    field[LOCAL_BYTES] += counted[BYTES];
  }
}

std::map<u32, Line> by_line(const Module& module, const std::vector<u64>& counters) {
  std::map<u32, Line> lines;
  for (size_t index = 0; index < module.sites.size(); ++index) {
    const Site& site = module.sites[index];
    const u64* counted = &counters[index * COUNTERS];
    if (!counted[0]) continue;
    if (site.kind == SiteKind::access) add_access(lines[site.line], site, counted);
    if (site.kind == SiteKind::barrier) lines[site.line].field[BARRIERS] += counted[0];
    if (site.kind == SiteKind::branch) {
      lines[site.line].field[ALL_BRANCHES] += counted[BRANCHES];
      lines[site.line].field[DIVERGENT_BRANCHES] += counted[DIVERGENT];
    }
  }
  for (const Cost& cost : module.costs) {
    const u64* counted = &counters[size_t{cost.site} * COUNTERS];
    if (!counted[EXECUTIONS]) continue;
    u64* field = lines[cost.line].field;
    field[INSTRUCTIONS] += cost.instructions * counted[EXECUTIONS];
    field[ACTIVE_LANES] += cost.instructions * counted[ACTIVE];
    field[FLOP_FP16] += cost.flop16 * counted[ACTIVE];
    field[FLOP_FP32] += cost.flop32 * counted[ACTIVE];
    field[FLOP_FP64] += cost.flop64 * counted[ACTIVE];
  }
  return lines;
}

std::string number(long double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.17Lg", value);
  return text;
}

std::string triple(const u32 (&values)[3]) {
  return "[" + std::to_string(values[0]) + "," + std::to_string(values[1]) + "," + std::to_string(values[2]) + "]";
}

std::string spread(const Tally& tally) {
  long double mean = tally.count ? tally.sum / tally.count : 0;
  long double variance = tally.count ? tally.squares / tally.count - mean * mean : 0;
  return "{\"count\":" + std::to_string(tally.count) + ",\"mean\":" + number(mean) +
         ",\"minimum\":" + std::to_string(tally.count ? tally.minimum : 0) + ",\"maximum\":" + std::to_string(tally.maximum) +
         ",\"standard_deviation\":" + number(std::sqrt(std::max<long double>(variance, 0))) + "}";
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char character : text) {
    if (character == '"' || character == '\\') {
      out += '\\';
      out += character;
    } else if (static_cast<unsigned char>(character) < 0x20 || static_cast<unsigned char>(character) > 0x7e) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned char>(character));
      out += escaped;
    } else {
      out += character;
    }
  }
  return out + "\"";
}

std::string trace_json(const Launch& launch, const std::vector<const Worker*>& workers) {
  std::vector<u64> counters(launch.module->sites.size() * COUNTERS);
  Tally warps, blocks;
  std::map<u32, BarrierTally> barriers;
  for (const Worker* worker : workers) {
    for (size_t i = 0; i < counters.size(); ++i) counters[i] += worker->counters[i];
    warps.merge(worker->warps);
    blocks.merge(worker->blocks);
    for (const auto& [place, tally] : worker->barriers) {
      barriers[place].executed += tally.executed;
      barriers[place].useless += tally.useless;
    }
  }
  std::map<u32, Line> lines = by_line(*launch.module, counters);
  u64 executed = 0, useless = 0;
  for (const auto& [place, tally] : barriers) {
    lines[place].field[BARRIERS_EXECUTED] = tally.executed;
    lines[place].field[USELESS_BARRIERS] = tally.useless;
    executed += tally.executed;
    useless += tally.useless;
  }
  const LaunchRequest& request = *launch.request;
  u64 threads = u64{request.block[0]} * request.block[1] * request.block[2] * launch.blocks;
  std::string out = "{\"kernel\":" + quoted(request.kernel->name) + ",\"grid\":" + triple(request.grid) +
                    ",\"block\":" + triple(request.block) +
                    ",\"static_shared_bytes\":" + std::to_string(request.kernel->static_shared) +
                    ",\"dynamic_shared_bytes\":" + std::to_string(request.dynamic_shared) +
                    ",\"threads\":" + std::to_string(threads) + ",\"counted_blocks\":" + std::to_string(blocks.count) + ",\"barriers_executed\":" + std::to_string(executed) +
                    ",\"useless_barriers\":" + std::to_string(useless) +
                    ",\"distinct_load_sectors\":" + std::to_string(launch.device->count_sectors(false)) +
                    ",\"distinct_store_sectors\":" + std::to_string(launch.device->count_sectors(true)) +
                    ",\"warps\":" + spread(warps) + ",\"blocks\":" + spread(blocks) + ",\"lines\":[";
  bool first = true;
  for (const auto& [place, row] : lines) {
    out += std::string(first ? "" : ",") + "{\"line\":" + std::to_string(line_of(place)) +
           ",\"file\":" + quoted(launch.module->file_of(place));
    for (int field = 0; field < FIELDS; ++field)
      if (row.field[field]) out += std::string(",\"") + NAMES[field] + "\":" + std::to_string(row.field[field]);
    out += "}";
    first = false;
  }
  return out + "]}";
}

std::string fault_json(const Finding& fault, const std::string& kernel) {
  return "{\"kind\":" + quoted(fault.kind) + ",\"message\":" + quoted(fault.message) + ",\"kernel\":" + quoted(kernel) +
         ",\"line\":" + (fault.line ? std::to_string(fault.line) : "null") + ",\"file\":" + quoted(fault.file) + ",\"block\":" + triple(fault.block) +
         ",\"thread\":" + triple(fault.thread) +
         ",\"address\":" + (fault.address ? std::to_string(*fault.address) : "null") + ",\"space\":" + quoted(fault.space) +
         "}";
}

}  // namespace kw

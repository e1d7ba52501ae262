#include "shared.h"

#include <algorithm>

namespace kw {

void SharedMemory::prepare(u32 total, bool by_byte) {
  size = total;
  granule_shift = by_byte ? 0 : 2;
  bytes.resize(total + SLACK);
  size_t granules = (total >> granule_shift) + 1 + SLACK / 4;
  readers.assign(granules, 0);
  writers.assign(granules, 0);
  notes.clear();
  epoch = first_epoch = 1;
  last_useful = last_write = 0;
  useful.clear();
}

void SharedMemory::start_block() {
  ++epoch;
  first_epoch = epoch;
  unwritten = (size + (1u << granule_shift) - 1) >> granule_shift;
  useful.clear();
  notes.clear();
  std::fill(bytes.begin(), bytes.end(), 0xA5);
}

}  // namespace kw

#include "shared.h"

#include <algorithm>

namespace kw {

void SharedMemory::prepare(u32 total, u32 of_system, bool by_byte) {
  size = total;
  reserved = of_system;
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
  if (!reserved) return;
  std::fill_n(bytes.begin(), reserved, 0);
  u32 granules = reserved >> granule_shift;
  std::fill_n(writers.begin(), granules, Mark{epoch} << MARK_EPOCH_SHIFT);
  unwritten -= granules;
  ++epoch;
}

}  // namespace kw

#include "shared.h"

#include <algorithm>

namespace kw {

void SharedMemory::prepare(u32 total, bool by_byte) {
  size = total;
  granule_shift = by_byte ? 0 : 2;
  bytes.resize(total + SLACK);
  size_t granules = (total >> granule_shift) + 1;
  readers.assign(granules, 0);
  writers.assign(granules, 0);
  epoch = first_epoch = 1;
  last_useful = useful = 0;
}

void SharedMemory::start_block() {
  ++epoch;
  first_epoch = epoch;
  useful = 0;
  std::fill(bytes.begin(), bytes.end(), 0xA5);
}

}  // namespace kw

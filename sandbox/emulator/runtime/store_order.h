// Which lane wins where lanes of one store meet at one address: CUDA leaves it open, and programs were written that
// count on what GPUs do. Seen on an H200 (docs/measurements/gpu-check.md): a store goes in passes of 32 lanes of up to
// 4 bytes, 16 lanes of 8 bytes or 8 lanes of 16 bytes; in a pass the lowest lane wins, and a later pass comes over an
// earlier one. Here lanes store one after another, so the lowest of each pass is the last of it.
// (Code without checks: lowering/access.py.)
#pragma once

#include "access.h"

namespace kw {

// Calls `each(i)` for the lanes of a request, from the one whose store comes first.
template <u32 Bytes, class Each>
inline void in_store_order(const Lanes& lanes, Each&& each) {
  constexpr int PASS = lanes_a_pass(Bytes);
  if constexpr (PASS == LANES) {
    for (int i = lanes.count; i-- > 0;) each(i);
  } else {
    for (int first = 0, past = 0; first < lanes.count; first = past) {
      while (past < lanes.count && lanes.lane[past] / PASS == lanes.lane[first] / PASS) ++past;
      for (int i = past; i-- > first;) each(i);
    }
  }
}

// Brings the lanes into that order. Where addresses grow from lane to lane none meet, and all stays as it is.
template <u32 Bytes>
inline void order_for_store(Lanes& lanes) {
  bool grow = true;
  for (int i = 1; i < lanes.count; ++i) grow &= lanes.address[i - 1] < lanes.address[i];
  if (grow) return;
  const Lanes given = lanes;
  int next = 0;
  in_store_order<Bytes>(given, [&](int i) {
    lanes.lane[next] = given.lane[i];
    lanes.address[next++] = given.address[i];
  });
}

}  // namespace kw

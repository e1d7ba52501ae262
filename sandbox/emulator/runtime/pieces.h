// Accesses that a warp, not a lane, makes: matrices and bulk copies, as requests of up to 32 pieces of 4, 8 or 16
// bytes. Checked and counted like loads and stores of one piece a lane.
#pragma once

#include "access.h"

namespace kw {

// 'g' or 's' for a generic address whose window says so, with the address in that space; gives up on the others.
char resolve_space(Warp* warp, char space, u64& address);

// `data` holds the pieces one after another, in the order of `lanes`. Lanes that a check drops read poison; the number
// of those that remain is returned.
int read_pieces(Warp* warp, u32 site, char space, Lanes lanes, u32 bytes, u8* data);
void write_pieces(Warp* warp, u32 site, char space, Lanes lanes, u32 bytes, const u8* data);
// The checks and counts of a write that comes later.
int claim_pieces(Warp* warp, u32 site, char space, Lanes lanes, u32 bytes);

// Writes global memory that was claimed before.
void store_claimed(Warp* warp, u32 site, u64 address, u64 bytes, const u8* data);

// [address, address + bytes) in requests of 32 pieces of 16 bytes, or of the largest size that divides it all; piece
// n counts as lane n % 32's. `each` gets the lanes of a request, the bytes of a piece and where its data start.
template <class Each>
void for_pieces(u64 address, u64 bytes, Each&& each) {
  u32 piece = 16;
  while (piece > 1 && (address | bytes) % piece) piece /= 2;
  for (u64 at = 0; at < bytes; at += u64{LANES} * piece) {
    Lanes lanes;
    for (; lanes.count < LANES && at + u64{piece} * lanes.count < bytes; ++lanes.count) {
      lanes.lane[lanes.count] = static_cast<u8>(lanes.count);
      lanes.address[lanes.count] = address + at + u64{piece} * lanes.count;
    }
    each(lanes, piece, at);
  }
}

// All 32 lanes must execute what is done by the warp as a whole.
void require_full_warp(Warp* warp, u32 line, u32 mask, const char* what);

}  // namespace kw

"""What lowered code and the C++ runtime agree on. `runtime/abi.h` states and asserts the same numbers."""

from __future__ import annotations

LANES = 32
COUNTERS = 8  # 64-bit counters a site

# Byte offsets in `struct Warp`.
WARP_COUNTERS = 8
WARP_INSTRUCTIONS = 16
WARP_LIVE = 24
WARP_FUEL = 28
WARP_CTAID = 32
WARP_NCTAID = 44
WARP_NTID = 56
WARP_WARPID = 68
WARP_NWARPID = 72
WARP_SHARED_TOTAL = 76
WARP_SHARED_DYNAMIC = 80
WARP_SMID = 84
WARP_SHARED = 88  # pointer
WARP_NSMID = 96
WARP_GRIDID = 100
WARP_WORKSPACE = 104  # u64
WARP_IN_ORDER = 112
WARP_TID = 128  # u32[3][32]

# Words in a function's scheduling state, before the arrays `waiting`, `parked` and `notes`, [blocks] each.
STATE_TARGET = 1
STATE_BLOCKS = 2
STATE_LIVE = 4
STATE_IS_KERNEL = 5
STATE_LINE = 7
STATE_LOWEST = 8
STATE_HEADER = 9
PARKED_APART = -1 << 31  # in a note on parked lanes (runtime/abi.h, APART)

# Generic addresses. Device memory has its own (sandbox.plan.DEVICE_BASE); these windows lie below it.
SHARED_WINDOW = 0x1000_0000_0000
LOCAL_WINDOW = 0x1100_0000_0000
PARAMETER_WINDOW = 0x1200_0000_0000
FUNCTION_BASE = 0x1300_0000_0000  # functions have addresses, too, but nothing lies there
FUNCTION_BYTES = 16
MODULE_FUNCTION_BYTES = 1 << 24

# Kinds of sites, as the description table names them.
SITE_BLOCK = "block"  # counters: executions, lanes
SITE_GUARDED = "guarded"  # executions, lanes
SITE_BRANCH = "branch"  # executions, divergent ones
SITE_ACCESS = "access"  # requests, sectors, bytes, wavefronts, ideal wavefronts, lanes, addresses
SITE_BARRIER = "barrier"  # arrivals

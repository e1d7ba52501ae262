"""Lanes of one store that meet at one address (`kernels/winners.cu`).

References are what an H200 did (measured 2026-12-01), in global and in shared memory: elements of up to 4
bytes are stored in one pass, those of 8 bytes in passes of 16 lanes, those of 16 bytes in passes of 8; within
a pass the lowest active lane wins, and a later pass overwrites an earlier one. That the passes of 16 bytes
come in the order of their lanes is a guess. The emulator does the same (runtime/store_order.h).
"""

from __future__ import annotations

import numpy as np

from sandbox.agreement.case import Array, Arrays, Case, In, InOut, case

#: Kernel -> bytes of an element.
WIDTHS = {
    "winner_1_byte": 1,
    "winner_2_bytes": 2,
    "winner_4_bytes": 4,
    "winner_8_bytes": 8,
    "winner_16_bytes": 16,
    "winner_shared_4_bytes": 4,
    "winner_shared_8_bytes": 8,
    "winner_shared_16_bytes": 16,
}
LANE = np.arange(32)
#: Where lanes store, and which of them do.
PATTERNS = {
    "all": (np.zeros(32, "int32"), 0xFFFFFFFF),
    "pairs": ((LANE // 2).astype("int32"), 0xFFFFFFFF),
    "across": ((LANE % 4).astype("int32"), 0xFFFFFFFF),
    "some": ((LANE % 3).astype("int32"), 0x9669_C33A),
}


def winner(width: int, place: Array, active: int, at: int) -> int | None:
    """The lane whose value stays at `at`."""
    lanes = 32 if width <= 4 else 128 // width
    for start in reversed(range(0, 32, lanes)):
        for lane in range(start, start + lanes):
            if active >> lane & 1 and place[lane] == at:
                return lane
    return None


def stored(width: int, lane: int) -> list[int]:
    """The words, or the one element, that a lane of the first warp stores."""
    if width <= 4:
        return [lane + 1]
    return [lane + 1, ~lane & 0xFFFFFFFF, lane * 3, lane][: width // 4]


def cases() -> list[Case]:
    return [_case(kernel, width, pattern) for kernel, width in WIDTHS.items() for pattern in PATTERNS]


def _case(kernel: str, width: int, pattern: str) -> Case:
    place, active = PATTERNS[pattern]
    words = max(1, width // 4)
    kind = {1: "uint8", 2: "uint16"}.get(width, "uint32")

    def reference(given: Arrays) -> Arrays:
        y = given["y"].reshape(32, words)
        for at in range(32):
            if (lane := winner(width, place, active, at)) is not None:
                y[at] = stored(width, lane)
        return {"y": y.ravel()}

    return case(
        kernel,
        1,
        32,
        InOut("y", np.zeros(32 * words, kind)),
        In("place", place),
        np.uint32(active),
        name=f"{kernel}_{pattern}",
        reference=reference,
        races=True,
    )

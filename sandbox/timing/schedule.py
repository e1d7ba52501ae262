"""In which order the sides of a comparison are timed."""

from __future__ import annotations

from collections.abc import Iterator

#: Never fewer: seven blocks are what a one-sided 1% needs with room for one bad block.
BLOCKS = 7
#: Of each side in each block.
TRIALS = 20


def schedule(sides: int, blocks: int = BLOCKS, trials: int = TRIALS) -> Iterator[tuple[int, int]]:
    """Yields (block, side) for every trial: half of each side forwards, half backwards (ABBA), so that a
    steady drift inside a block falls on all sides alike. `trials` is even."""
    if trials % 2:
        raise ValueError(f"{trials} trials cannot be halved")
    for block in range(blocks):
        for order in (range(sides), reversed(range(sides))):
            for side in order:
                for _ in range(trials // 2):
                    yield block, side

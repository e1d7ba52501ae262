"""The choices that make one version of a program: frozen, hashable, one `Choice` per kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Choice:
    """How one kernel is written. The defaults are the direct version."""

    block: tuple[int, ...] = ()  # threads along x, y, z; () is the default for the number of dimensions
    order: tuple[int, ...] = ()  # the dims along x, y, z; () is outermost first
    rows: int = 0  # threads that share one point of dims: 32 a warp, more a block
    shuffle: bool = False  # partial results pass between lanes, not through shared memory
    vector: int = 1  # bytes that one thread loads and stores at once; 1 is an element
    per_thread: int = 1  # points of the x dimension per thread
    tile: int = 0  # edge of tiles in shared memory
    pad: bool = False  # one more column in the tiles
    turned: bool = False  # the tile is there to change direction
    staged: bool = False  # what an inner loop reads passes through shared memory
    private: bool = False  # a histogram of its own for each block
    barriers: bool = False  # spoilt on purpose: barriers that order nothing
    atomic: bool = False  # spoilt on purpose: atomic updates where nobody meets


@dataclass(frozen=True)
class Schedule:
    choices: tuple[Choice, ...]

    def change(self, position: int, choice: Choice) -> Schedule:
        return Schedule((*self.choices[:position], choice, *self.choices[position + 1 :]))


def default_block(dims: int) -> tuple[int, ...]:
    """Threads per axis where nothing was chosen."""
    return {1: (256,), 2: (32, 8)}.get(dims, (32, 4, 2))


__all__ = ["Choice", "Schedule", "default_block", "replace"]

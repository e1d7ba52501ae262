"""Right candidates made wrong on purpose: the mistakes that people and models make in CUDA.

Edits of the text, one mistake each. The judge says what becomes of them; a few turn out harmless, and their
verdict says that too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random


def broken(source: str, rng: Random) -> Iterator[tuple[str, str, str]]:
    """(slug, words, the source) for every mistake that this candidate leaves room for."""
    for slug, says, make in _MISTAKES:
        made = make(source, rng)
        if made is not None and made != source:
            yield slug, says, made


def _no_guard(source: str, rng: Random) -> str | None:
    return _one(source, r"(?m)^ *if \([^;{}]*\) return;\n", "", rng)


def _no_barrier(source: str, rng: Random) -> str | None:
    return _one(source, r"(?m)^ *__syncthreads\(\);\n", "", rng)


def _no_atomic(source: str, rng: Random) -> str | None:
    return _one(source, r"atomicAdd\(&([^;]+?), ([^;]+)\);", r"\1 += \2;", rng)


def _short_grid(source: str, rng: Random) -> str | None:
    """Division that rounds down: the last, partly filled block is missing."""
    if "blocks_for(" not in source:
        return None
    return source.replace("(items + per_block - 1) / per_block", "items / per_block", 1)


def _wrong_sign(source: str, rng: Random) -> str | None:
    return _one(source, r"(?<=[\w)\]]) \+ (?=\w+\[)", " - ", rng)


def _off_by_one(source: str, rng: Random) -> str | None:
    """A loop inside a kernel that stops one short."""
    return _one(source, r"(?<=; )(\w+) < (\w+); (?=\+\+|\w+ \+=)", r"\1 < \2 - 1; ", rng)


def _misspelt(source: str, rng: Random) -> str | None:
    return _one(source, r"blockIdx\.x", "blockIdx.X", rng)


def _wrong_axis(source: str, rng: Random) -> str | None:
    return _one(
        source, r"blockIdx\.x \* blockDim\.x \+ threadIdx\.x", "blockIdx.x * blockDim.x + threadIdx.y", rng
    )


_MISTAKES: tuple[tuple[str, str, Callable[[str, Random], str | None]], ...] = (
    ("no_guard", "threads beyond the end are not sent home", _no_guard),
    ("no_barrier", "a barrier is missing", _no_barrier),
    ("no_atomic", "an update that needs to be atomic is not", _no_atomic),
    ("short_grid", "the last, partly filled block is missing", _short_grid),
    ("wrong_sign", "one sum became a difference", _wrong_sign),
    ("off_by_one", "a loop stops one short", _off_by_one),
    ("wrong_axis", "a thread index along the wrong axis", _wrong_axis),
    ("misspelt", "a name that does not exist", _misspelt),
)


def _one(source: str, pattern: str, put: str, rng: Random) -> str | None:
    """One of the places that match, changed."""
    places = list(re.finditer(pattern, source))
    if not places:
        return None
    chosen = rng.choice(places)
    return source[: chosen.start()] + chosen.expand(put) + source[chosen.end() :]

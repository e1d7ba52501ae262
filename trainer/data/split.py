"""Which families train and which are kept for measuring: by family, never by row.

A family's place hangs on its name alone, so that it is the same in every data set and does not move when
families are added.
"""

from __future__ import annotations

import hashlib
from typing import Literal

Split = Literal["train", "validation", "test"]

_VALIDATION, _TEST = 0.10, 0.10


def split_of(family: str) -> Split:
    """The split that all rows of this family are in."""
    digest = hashlib.sha256(f"split/{family}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < _TEST:
        return "test"
    return "validation" if place < _TEST + _VALIDATION else "train"

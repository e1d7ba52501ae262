"""What the walk through a function finds out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sandbox.tasks.c.polynomial import Polynomial

#: Elements of an average row where an array says where rows begin (compressed sparse rows and their kind).
ROW_LENGTH = 8


@dataclass
class Loop:
    """One loop on the way to where the walk stands."""

    symbols: set[str] = field(default_factory=set)  # varying symbols that it introduced
    trips: Polynomial | None = None  # in sizes, an upper bound; None when unknown
    sequential: bool = False  # a while loop or one that may be left early


@dataclass(frozen=True)
class Access:
    """One place in the program that reads or writes elements of a parameter's array."""

    array: str
    kind: Literal["read", "write"]
    offset: Polynomial | None  # in elements; None when not followed
    last: Polynomial | None  # largest offset over all loops, in sizes
    first: Polynomial | None  # smallest
    line: int | None


@dataclass(frozen=True)
class IndexUse:
    """Values of `source` choose the element of `array`: offset = factor * value + (0 .. rest)."""

    source: str
    array: str
    factor: Polynomial
    rest: Polynomial  # the largest value of what is added, in sizes
    guarded: bool  # the program checks the value before it uses it
    kind: Literal["read", "write"]


@dataclass
class Analysis:
    accesses: list[Access] = field(default_factory=list)
    declared: dict[str, Polynomial] = field(default_factory=dict)  # extents of `float a[n][m]` parameters
    index_uses: list[IndexUse] = field(default_factory=list)
    offsets: dict[str, str] = field(default_factory=dict)  # arrays of row starts -> the symbol of their total
    scattered: set[str] = field(default_factory=set)  # arrays that are written where the data says
    work: list[tuple[Polynomial, int]] = field(default_factory=list)  # (times, operations each)
    reductions: list[Polynomial] = field(default_factory=list)  # trip counts of loops that add to one place
    bounds: set[str] = field(default_factory=set)  # integer parameters that bound a loop
    written_globals: list[tuple[str, int | None]] = field(default_factory=list)
    unknown_calls: list[tuple[str, int | None]] = field(default_factory=list)
    float_to_integer: bool = False  # some floating-point value becomes an integer, which not every value can
    special: bool = True  # NaN and infinities mean the same on every machine
    not_followed: list[str] = field(default_factory=list)  # for the notes: what made a bound unknown

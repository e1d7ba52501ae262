"""Integer index expressions: sums of multiples of atoms, kept in one canonical form.

Views of tensors are maps of coordinates, so a chain of permutes, reshapes and slices becomes arithmetic
here and
simplifies away: taking a row number apart into coordinates and putting it together again gives the row
number.
Every expression is non-negative where it is used as an index; that is what makes the division rules valid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Var:
    """A C variable with 0 <= value < extent."""

    name: str
    extent: int


@dataclass(frozen=True)
class Quotient:
    of: Ix
    by: int


@dataclass(frozen=True)
class Remainder:
    of: Ix
    by: int


Atom = Var | Quotient | Remainder


@dataclass(frozen=True)
class Ix:
    """constant + sum of coefficient * atom. Make with `constant`, `variable` and the operators."""

    terms: tuple[tuple[Atom, int], ...]
    constant: int

    def __add__(self, other: Ix | int) -> Ix:
        if isinstance(other, int):
            return Ix(self.terms, self.constant + other)
        return _sum([*self.terms, *other.terms], self.constant + other.constant)

    def __sub__(self, other: Ix | int) -> Ix:
        return self + (-other if isinstance(other, int) else other * -1)

    def __mul__(self, factor: int) -> Ix:
        if factor == 0:
            return constant(0)
        return Ix(tuple((atom, c * factor) for atom, c in self.terms), self.constant * factor)

    def __floordiv__(self, by: int) -> Ix:
        return _divide(self, by)

    def __mod__(self, by: int) -> Ix:
        return _remainder(self, by)

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value, inclusive."""
        low = high = self.constant
        for atom, c in self.terms:
            most = _most(atom)
            low, high = low + min(0, c * most), high + max(0, c * most)
        return low, high

    def coefficient(self, name: str) -> int | None:
        """Of the variable `name`; None where it appears inside a quotient or remainder."""
        if any(not isinstance(atom, Var) and name in variables(atom.of) for atom, _ in self.terms):
            return None
        return next((c for atom, c in self.terms if isinstance(atom, Var) and atom.name == name), 0)

    def multiple_of(self, n: int) -> bool:
        return self.constant % n == 0 and all(c % n == 0 for _, c in self.terms)

    def __str__(self) -> str:
        return render(self)


def constant(value: int) -> Ix:
    return Ix((), value)


def variable(name: str, extent: int) -> Ix:
    return Ix(((Var(name, extent), 1),), 0) if extent > 1 else constant(0)


def opaque(name: str, extent: int) -> Ix:
    """A variable that holds an index loaded from memory: never simplified to 0."""
    return Ix(((Var(name, max(extent, 2)), 1),), 0)


def variables(ix: Ix) -> set[str]:
    names: set[str] = set()
    for atom, _ in ix.terms:
        names |= {atom.name} if isinstance(atom, Var) else variables(atom.of)
    return names


def flatten(coordinates: Sequence[Ix], shape: Sequence[int]) -> Ix:
    """Row-major position of `coordinates`."""
    flat = constant(0)
    for coordinate, extent in zip(coordinates, shape, strict=True):
        flat = flat * extent + coordinate
    return flat


def unflatten(flat: Ix, shape: Sequence[int]) -> list[Ix]:
    """Coordinates of row-major position `flat`."""
    coordinates: list[Ix] = []
    for axis, extent in enumerate(shape):
        inner = math.prod(shape[axis + 1 :])
        if extent == 1:
            coordinates.append(constant(0))
        else:
            coordinates.append((flat // inner) % extent if inner else constant(0))
    return coordinates


def render(ix: Ix) -> str:
    """C source."""
    pieces: list[str] = []
    for atom, c in ix.terms:
        match atom:
            case Var(name=name):
                text = name
            case Quotient(of=of, by=by):
                text = f"{_grouped(of)} / {by}"
            case Remainder(of=of, by=by):
                text = f"{_grouped(of)} % {by}"
        if abs(c) != 1:
            text = f"{text} * {abs(c)}" if isinstance(atom, Var) else f"({text}) * {abs(c)}"
        pieces.append(("-" if c < 0 else "+") + " " + text)
    if ix.constant or not pieces:
        pieces.append(f"{'-' if ix.constant < 0 else '+'} {abs(ix.constant)}")
    pieces.sort(key=lambda piece: piece[0] == "-")  # a leading minus reads badly
    first = pieces[0][2:] if pieces[0][0] == "+" else f"-{pieces[0][2:]}"
    return " ".join([first, *pieces[1:]])


def _grouped(ix: Ix) -> str:
    text = render(ix)
    return text if text.isidentifier() else f"({text})"


def _most(atom: Atom) -> int:
    match atom:
        case Var(extent=extent):
            return extent - 1
        case Quotient(of=of, by=by):
            return max(0, of.bounds[1]) // by
        case Remainder(of=of, by=by):
            return min(by - 1, max(0, of.bounds[1]))


def _key(term: tuple[Atom, int]) -> tuple[int, str]:
    return -abs(term[1]), render(Ix(((term[0], 1),), 0))


def _sum(terms: Sequence[tuple[Atom, int]], start: int) -> Ix:
    merged: dict[Atom, int] = {}
    _merge(merged, terms)
    while (joined := _recombine(merged)) is not None:
        _merge(merged, joined.terms)
        start += joined.constant
    return Ix(tuple(sorted(((a, c) for a, c in merged.items() if c), key=_key)), start)


def _merge(merged: dict[Atom, int], terms: Sequence[tuple[Atom, int]]) -> None:
    for atom, c in terms:
        merged[atom] = merged.get(atom, 0) + c


def _recombine(merged: dict[Atom, int]) -> Ix | None:
    """c * (y % n) + c * n * (y / n) = c * y, and c * (y % n) + c * n * ((y / n) % m) = c * (y % (n * m)).

    Takes one such pair out of `merged` and returns what it is; None when there is none.
    """
    for atom, c in merged.items():
        if not isinstance(atom, Remainder) or c == 0:
            continue
        y, n = atom.of, atom.by
        upper = _divide(y, n)
        if len(upper.terms) == 1 and upper.constant == 0 and upper.terms[0][1] == 1:
            high = upper.terms[0][0]
            if merged.get(high) == c * n:
                del merged[atom], merged[high]
                return y * c
        for other, c_other in merged.items():
            if isinstance(other, Remainder) and c_other == c * n and other.of == upper:
                del merged[atom], merged[other]
                return _remainder(y, n * other.by) * c
    return None


def _divide(ix: Ix, by: int) -> Ix:
    if by == 1:
        return ix
    whole, rest = _split(ix, by)
    low, high = rest.bounds
    if low >= 0 and high < by:
        return whole
    if low < 0:
        whole, rest = constant(0), ix
    shared = math.gcd(by, rest.constant, *(c for _, c in rest.terms))
    if shared > 1:
        return whole + _divide(_exact(rest, shared), by // shared)
    if len(rest.terms) == 1 and rest.constant == 0 and rest.terms[0][1] == 1:
        atom = rest.terms[0][0]
        if isinstance(atom, Quotient):
            return whole + _divide(atom.of, atom.by * by)
        if isinstance(atom, Remainder) and atom.by % by == 0:
            return whole + _remainder(_divide(atom.of, by), atom.by // by)
    return whole + Ix(((Quotient(rest, by), 1),), 0)


def _remainder(ix: Ix, by: int) -> Ix:
    if by == 1:
        return constant(0)
    _, rest = _split(ix, by)
    low, high = rest.bounds
    if low >= 0 and high < by:
        return rest
    if low < 0:
        rest = ix
        if ix.bounds[0] >= 0 and ix.bounds[1] < by:
            return ix
    shared = math.gcd(by, rest.constant, *(c for _, c in rest.terms))
    if shared > 1:
        return _remainder(_exact(rest, shared), by // shared) * shared
    if len(rest.terms) == 1 and rest.constant == 0 and rest.terms[0][1] == 1:
        atom = rest.terms[0][0]
        if isinstance(atom, Remainder) and atom.by % by == 0:
            return _remainder(atom.of, by)
    return Ix(((Remainder(rest, by), 1),), 0)


def _split(ix: Ix, by: int) -> tuple[Ix, Ix]:
    """(whole, rest) with ix = by * whole + rest."""
    whole = tuple((a, c // by) for a, c in ix.terms if c % by == 0)
    rest = tuple((a, c) for a, c in ix.terms if c % by)
    return Ix(whole, ix.constant // by), Ix(rest, ix.constant % by)


def _exact(ix: Ix, by: int) -> Ix:
    return Ix(tuple((a, c // by) for a, c in ix.terms), ix.constant // by)

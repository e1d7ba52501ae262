"""Which sizes to run at: one representative size that metrics mean something at, and a pool of odd ones.

The budget suits an emulator: at most `MOST_ELEMENTS` in all arrays together and `MOST_OPERATIONS` scalar
operations, both taken from the inferred extents and trip counts. Within it, sizes are as large as can be,
multiples of 32, and different from each other, so that rows and columns cannot be confused unnoticed. No
array is empty at the representative size, and where many sizes multiply, the outer ones stay small so that
the outputs have elements enough.

The representative size is no secret, the others are: most are drawn afresh for every task that is loaded, and
some lie a little beyond it, so that neither a list of sizes nor the largest one shown can be relied on.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from sandbox.tasks import expressions
from sandbox.tasks.c.infer import Inferred
from sandbox.tasks.c.polynomial import Polynomial

MOST_ELEMENTS = 1 << 16
MOST_OPERATIONS = 16_000_000  # index arithmetic included
BEYOND = 1.15  # the largest size is at most so many times the representative one
LARGEST_GIVEN_ELEMENTS = 1 << 24  # with sizes from the inputs block

Role = Literal["extent", "window", "repeat", "bins", "pitch", "step"]
Kind = Literal["representative", "beyond", "odd", "tile", "thin", "one", "empty"]

_SHAPES = (1.0, 2.0, 1.5, 0.5, 1.25)  # of several extents, relative to the first, in this order
_SCALES = (65536, 49152, 32768, 24576, 16384, 8192, 4096, 2048, 1024, 768, 512, 448, 384, 320, 256)
_SMALL_SCALES = (192, 160, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
_TILES = (31, 33, 63, 65, 127, 129, 255, 257, 17, 15)
_SMALL = {"window": 5, "bins": 256, "step": 2}
#: How often something is repeated: the wish, and what to do with where results do not bear it.
REPEATS = (32, 12, 6, 3)
_FEWEST_OUTPUTS = 512  # elements, below which other proportions of the sizes are tried
_OUTER = (2, 3, 4)  # values for outer sizes, where all of them in proportion would leave nothing
_NARROW = 3  # a window then


@dataclass(frozen=True)
class Sized:
    kind: Kind
    sizes: Mapping[str, int]


class Sizing:
    """Roles of the sizes of one task, and choices of their values."""

    def __init__(self, inferred: Inferred, given: Mapping[str, int], fixed: Mapping[str, int]) -> None:
        """`given`: sizes from the inputs block; `fixed`: integer scalars that are no sizes, at their
        usual value."""
        self._inferred = inferred
        self._given = dict(given)
        self._fixed = dict(fixed)
        self.roles = {name: self._role(name) for name in inferred.sizes}
        if "extent" not in self.roles.values():  # then what is repeated is all the work there is
            self.roles = {n: "extent" if role == "repeat" else role for n, role in self.roles.items()}
        self._extents = [name for name in inferred.sizes if self.roles[name] == "extent"]
        self.repeats = [n for n, role in self.roles.items() if role == "repeat" and n not in self._given]

    @property
    def settled(self) -> bool:
        """Whether the user's inputs block leaves nothing to choose."""
        return not self.repeats and set(self._given) >= set(self._extents)

    def representative(self, repeats: int = REPEATS[0], share: float = 1.0) -> dict[str, int]:
        """The largest sizes within `share` of the budget. `repeats`: of whatever is done again and again."""
        best, most = self._filled(1, repeats=repeats), -1
        if set(self._given) >= set(self._extents):
            return best
        for outer in range(max(len(self._extents) - 1, 1)):
            sizes = self._largest(outer, repeats, share)
            outputs = self._outputs(sizes) if sizes is not None else -1
            if sizes is not None and outputs > most:
                best, most = sizes, outputs
            if most >= min(self._enough(best), _FEWEST_OUTPUTS):
                break
        return best

    def _largest(self, outer: int, repeats: int, share: float) -> dict[str, int] | None:
        """With the first `outer` extents small, and windows narrower than usual."""
        for scale in (*_SCALES, *_SMALL_SCALES):
            if scale > _SCALES[0] * share:
                continue
            sizes = self._filled(scale, outer, repeats)
            if self._fits(sizes, share) and (outer == 0 or self._wide_enough(sizes, outer)):
                return sizes
        return None

    def _wide_enough(self, sizes: Mapping[str, int], outer: int) -> bool:
        windows = [sizes[name] for name, role in self.roles.items() if role == "window"]
        inner = [sizes[name] for name in self._extents[outer:] if name not in self._given]
        return not windows or min(inner, default=1) >= 2 * max(windows)

    def _outputs(self, sizes: Mapping[str, int]) -> int:
        """Elements that are written; 0 where any array is empty."""
        try:
            extents = self._inferred.extents({**self._fixed, **sizes})
        except expressions.ExpressionError:
            return 0
        if min(extents.values(), default=1) < 1:
            return 0
        return sum(count for name, count in extents.items() if self._inferred.arrays[name].writes)

    def _enough(self, sizes: Mapping[str, int]) -> int:
        """As many outputs as can be wished for: a sum over everything has only one."""
        scaled = {*self._extents} - {*self._given}
        texts = [a.extent_text for a in self._inferred.arrays.values() if a.writes and a.extent_text]
        grows = any(len(expressions.names(text) & scaled) > 1 for text in texts)
        return _FEWEST_OUTPUTS if grows else max(1, self._outputs(sizes))

    def pool(self, representative: Mapping[str, int]) -> list[Sized]:
        """Candidates for the other draws, several of each kind; the same for every seed, used by
        secret choice."""
        dice = secrets.SystemRandom()
        found = [Sized("representative", dict(representative))]
        if not self._inferred.sizes:
            return found
        for kind, sizes in self._variants(representative, dice):
            whole = {**sizes, **{n: sizes.get(n, v) for n, v in self._others(sizes, kind, dice).items()}}
            ordered = {name: whole[name] for name in self._inferred.sizes}
            if all(ordered != other.sizes for other in found) and self._fits(ordered, BEYOND**2):
                found.append(Sized(kind, ordered))
        return found

    def elements(self, sizes: Mapping[str, int]) -> int:
        try:
            return sum(self._inferred.extents({**self._fixed, **sizes}).values())
        except expressions.ExpressionError:
            return 0

    # ---- roles

    def _role(self, name: str) -> Role:
        inferred = self._inferred
        extents = [a.extent for a in inferred.arrays.values() if a.extent is not None]
        texts = {a.name: expressions.names(a.extent_text) for a in inferred.arrays.values() if a.extent_text}
        within = [array for array, names in texts.items() if name in names]
        if not within:
            return "repeat"
        reached = {use.array for use in inferred.index_uses} | inferred.scattered
        alone = all(inferred.arrays[array].extent_text == name for array in within)
        if set(within) <= reached or (alone and name not in inferred.bounds):
            return "bins"
        if name not in inferred.bounds:
            if any(_adds_to(name, extent) for extent in extents):
                return "pitch"
            partners = {n for array in within for n in texts[array]} - {name}
            return "step" if partners & inferred.bounds else "extent"
        return "window" if any(self._is_window(name, extent) for extent in extents) else "extent"

    def _is_window(self, name: str, extent: Polynomial) -> bool:
        """Whether `name` widens or narrows another size, as in n + k - 1 and n - k + 1: then it is
        the small one."""
        if self._shrinks(name, extent):
            return True
        whole = _maximal(extent)
        own = [term for term in whole if term[0] == ((name, 1),)]
        others = [
            term for term in whole if len(term[0]) == 1 and term[0] != ((name, 1),) and term[0][0][1] == 1
        ]
        if not own or not others:
            return False
        order = self._inferred.sizes
        rivals = [m[0][0] for m, factor in others if factor > 0 and m[0][0] in order]
        return bool(rivals) and all(order.index(name) > order.index(rival) for rival in rivals)

    def _shrinks(self, name: str, extent: Polynomial) -> bool:
        """Whether the extent gets smaller when `name` grows."""
        usual = {**self._fixed, **dict.fromkeys(self._inferred.sizes, 64)}
        try:
            return extent.evaluate({**usual, name: 5}) < extent.evaluate({**usual, name: 4})
        except expressions.ExpressionError:
            return False

    # ---- values

    def _fits(self, sizes: Mapping[str, int], room: float = 1.0) -> bool:
        values = {**self._fixed, **sizes}
        if self._inferred.operations(values) > room * MOST_OPERATIONS:
            return False
        return self.elements(sizes) <= room * MOST_ELEMENTS

    def _filled(self, scale: int, outer: int = 0, repeats: int = REPEATS[0]) -> dict[str, int]:
        """All sizes: extents in proportion to `scale` (the first `outer` small), the others at their usual
        small values."""
        sizes: dict[str, int] = {}
        for place, name in enumerate(self._extents):
            if place < outer:
                sizes[name] = _OUTER[place % len(_OUTER)]
                continue
            value = scale * _SHAPES[(place - outer) % len(_SHAPES)]
            sizes[name] = max(1, int(value) // 32 * 32 if value >= 32 else int(value))
        sizes.update({n: v for n, v in self._given.items() if n in self.roles})
        small = {**_SMALL, "repeat": repeats, **({"window": _NARROW} if outer else {})}
        for name, role in self.roles.items():
            if name not in sizes and role != "pitch":
                sizes[name] = small[role]
        widest = max([1, *(sizes[n] for n in self._extents)])
        for name in self.roles:
            sizes.setdefault(name, widest)
        return {name: sizes[name] for name in self._inferred.sizes}

    def _variants(
        self, representative: Mapping[str, int], dice: secrets.SystemRandom
    ) -> Iterator[tuple[Kind, dict[str, int]]]:
        largest = {name: max(representative[name], 1) for name in self._extents}
        for share in (BEYOND, 1.1) if not self._given else ():
            yield "beyond", {n: largest[n] + _odd(largest[n] * (share - 1), dice) for n in self._extents}
        for share in (0.97, 0.8, 0.6):
            yield "odd", {n: _odd(largest[n] * share, dice) for n in self._extents}
        for _ in range(6):
            yield "tile", {n: _pick(_TILES, largest[n] * 1.1, dice) for n in self._extents}
        for name in self._extents if len(self._extents) > 1 else ():
            yield "thin", {n: 1 if n == name else _odd(largest[n] * 0.6, dice) for n in self._extents}
        for value in (1, 2, 3):
            yield "one", dict.fromkeys(self._extents, value)
        yield "empty", dict.fromkeys(self._extents, 0)
        for name in self._extents if len(self._extents) > 1 else ():
            yield "empty", {n: 0 if n == name else _pick(_TILES, largest[n], dice) for n in self._extents}

    def _others(self, sizes: Mapping[str, int], kind: Kind, dice: secrets.SystemRandom) -> dict[str, int]:
        """Values for the sizes that are no extents, to go with `sizes`."""
        least = min(sizes.values(), default=1)
        widest = max([1, *sizes.values()])
        values: dict[str, int] = {}
        for name, role in self.roles.items():
            match role:
                case "window":
                    values[name] = max(1, min(dice.choice((1, 2, 3, 4, 7)), least))
                case "repeat":
                    values[name] = 0 if kind == "empty" else dice.choice((1, 2, 3))
                case "bins":
                    values[name] = 1 if kind == "one" else dice.choice((7, 32, 61, 100))
                case "step":
                    values[name] = dice.choice((1, 3))
                case "pitch":
                    values[name] = widest + dice.choice((0, 1, 5))
                case "extent":
                    pass
        return values


def _adds_to(name: str, extent: Polynomial) -> bool:
    """Whether the extent is rows * name + something: a distance between rows, so not smaller than a row."""
    if not any(name in dict(monomial) for monomial, _ in extent.terms):
        return False
    return any(name not in dict(monomial) and monomial for monomial, _ in extent.terms)


def _maximal(extent: Polynomial) -> list[tuple[tuple[tuple[str, int], ...], int]]:
    """Terms whose monomial divides no other's."""

    def divides(a: tuple[tuple[str, int], ...], b: tuple[tuple[str, int], ...]) -> bool:
        powers = dict(b)
        return all(powers.get(name, 0) >= power for name, power in a)

    return [t for t in extent.terms if not any(t is not o and divides(t[0], o[0]) for o in extent.terms)]


def _odd(most: float, dice: secrets.SystemRandom) -> int:
    """An odd number somewhat below `most`."""
    top = max(1, int(most))
    return dice.randint(max(1, int(0.8 * top)), top) - 1 | 1


def _pick(values: tuple[int, ...], most: float, dice: secrets.SystemRandom) -> int:
    fitting = [value for value in values if value <= most]
    return dice.choice(fitting) if fitting else max(1, int(most))

"""The translator's own small tensor language: what every aten op is lowered to before kernels are chosen.

Six kinds of value. Pointwise, View, Iota and Gather cost nothing by themselves: they are written out wherever
their elements are needed. Source and Reduce are where data comes from: memory, and loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent.translator.pytorch.index import Ix, opaque

Coordinates = Sequence[Ix]
Shape = tuple[int, ...]
ReduceOp = Literal["sum", "prod", "max", "min", "any", "all", "argmax", "argmin"]

C_TYPES = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long", "bool": "bool"}


@dataclass(eq=False)
class Value:
    """One tensor. `origin` is the graph node it came from, `order` its place in a topological order."""

    shape: Shape
    dtype: str
    origin: str
    order: int

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def operands(self) -> Sequence[Value]:
        return ()


@dataclass(eq=False)
class Source(Value):
    """A tensor that `launch` is given."""

    name: str


@dataclass(eq=False)
class Pointwise(Value):
    """`template` with {0}, {1}, ... replaced by C expressions of the operands' elements at the same place."""

    template: str
    inputs: tuple[Value, ...]  # all of this shape
    helpers: tuple[str, ...] = ()  # device functions that the template calls
    label: str = ""  # what to call it in the kernel; else after its origin

    @property
    def operands(self) -> Sequence[Value]:
        return self.inputs


@dataclass(frozen=True)
class Inside:
    """0 <= index < extent: the element exists only then."""

    index: Ix
    extent: int


@dataclass(eq=False)
class View(Value):
    """The element at `map(coordinates)` of `base`; where a guard does not hold, `fill`."""

    base: Value
    map: Callable[[Coordinates], list[Ix]]
    keeps_order: bool = False  # row-major order of elements is the base's: a reshape
    guard: Callable[[Coordinates], list[Inside]] | None = None
    fill: str = "0"

    @property
    def operands(self) -> Sequence[Value]:
        return (self.base,)


@dataclass(eq=False)
class Iota(Value):
    """An integer tensor computed from its own coordinates."""

    of: Callable[[Coordinates], Ix]


@dataclass(eq=False)
class Gather(Value):
    """`base` at coordinates of which some were loaded: `map(coordinates, loaded)`."""

    base: Value
    indices: tuple[Value, ...]  # integer tensors
    index_at: Callable[[Coordinates], list[list[Ix]]]  # where each index tensor is read
    map: Callable[[Coordinates, Sequence[Ix]], list[Ix]]
    extents: tuple[int, ...]  # what each loaded index must stay below
    wraps: bool = False  # negative indices count from the end

    @property
    def operands(self) -> Sequence[Value]:
        return (self.base, *self.indices)


@dataclass(eq=False)
class Reduce(Value):
    """`op` over the axes `axes` of `base`; `shape` is the base's without them."""

    op: ReduceOp
    base: Value
    axes: tuple[int, ...]
    rereads: bool = (
        False  # elements of what it reads are read many times: convolution, pooling, matrix product
    )
    product: tuple[Value, Value] | None = None  # a matrix product: a[batch, m, k], b[batch, k, n]
    label: str = ""

    @property
    def operands(self) -> Sequence[Value]:
        return (self.base,)

    @property
    def kept(self) -> list[int]:
        return [axis for axis in range(len(self.base.shape)) if axis not in self.axes]

    @property
    def length(self) -> int:
        return math.prod(self.base.shape[axis] for axis in self.axes)

    def place(self, row: Coordinates, reduced: Coordinates) -> list[Ix]:
        """Coordinates in the base of element `reduced` of row `row`."""
        rows, inner = iter(row), iter(reduced)
        return [next(inner) if axis in self.axes else next(rows) for axis in range(len(self.base.shape))]


@dataclass
class Program:
    """All values in topological order, and what `launch` must write."""

    values: list[Value]
    outputs: list[tuple[str, Value]]  # parameter name, value
    names: dict[str, int] = field(default_factory=dict)

    def uses(self) -> dict[int, int]:
        """By id: how many operands (and outputs) refer to a value."""
        counts: dict[int, int] = {}
        for value in self.values:
            for operand in value.operands:
                counts[id(operand)] = counts.get(id(operand), 0) + 1
        for _, value in self.outputs:
            counts[id(value)] = counts.get(id(value), 0) + 1
        return counts


@dataclass(frozen=True)
class Access:
    """One element that evaluating a value needs: of a source, of a reduction, or of any value in `stop`."""

    value: Value
    at: tuple[Ix, ...]


def accesses(
    value: Value, at: Coordinates, stop: Callable[[Value], bool], *, root: bool = True
) -> Iterator[Access]:
    """Walks down from `value` at coordinates `at` to what has to be loaded or looped for."""
    seen: set[tuple[int, tuple[Ix, ...]]] = set()

    def walk(value: Value, at: tuple[Ix, ...], top: bool) -> Iterator[Access]:
        if (id(value), at) in seen:
            return
        seen.add((id(value), at))
        if not top and (isinstance(value, Source | Reduce) or stop(value)):
            yield Access(value, at)
            return
        match value:
            case Source() | Reduce():
                yield Access(value, at)
            case Pointwise():
                for operand in value.inputs:
                    yield from walk(operand, at, False)
            case View():
                yield from walk(value.base, tuple(value.map(at)), False)
            case Gather():
                for operand, place in zip(value.indices, value.index_at(at), strict=True):
                    yield from walk(operand, tuple(place), False)
                loaded = [opaque(f"i{value.order}_{i}", extent) for i, extent in enumerate(value.extents)]
                yield from walk(value.base, tuple(value.map(at, loaded)), False)

    yield from walk(value, tuple(at), root)


def plain_name(origin: str) -> str:
    """A graph node's name without the words that tell aten's variants of one op apart."""
    name = origin.replace("native_", "")
    for word in ("_legit_no_training", "_legit", "_with_indices"):
        name = name.replace(word, "")
    return name.strip("_")

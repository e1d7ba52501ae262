"""Which values are written to memory, and by which kernel.

A kernel is a group: reductions over one space of rows, the values that are one per row, and the values
that fill
the whole space. A matrix product is such a group too (a row is one element of the result), and so is a plain
elementwise kernel (no reductions).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from agent.translator.pytorch.index import Ix, flatten, unflatten, variable
from agent.translator.pytorch.ir import (
    Access,
    Gather,
    Iota,
    Pointwise,
    Program,
    Reduce,
    Shape,
    Source,
    Value,
    View,
    accesses,
    plain_name,
)


@dataclass(eq=False)
class Kernel:
    """One launch. `space` is the shape that is walked; a row is what is left of it without `axes`."""

    space: Shape
    axes: tuple[int, ...]
    reduces: list[Reduce] = field(default_factory=list)
    per_row: list[Value] = field(default_factory=list)  # written once a row
    whole: list[Value] = field(default_factory=list)  # written for every element of the space
    name: str = ""

    @property
    def kept(self) -> Shape:
        return tuple(n for axis, n in enumerate(self.space) if axis not in self.axes)

    @property
    def rows(self) -> int:
        return math.prod(self.kept)

    @property
    def reduced(self) -> Shape:
        return tuple(self.space[axis] for axis in self.axes)

    @property
    def length(self) -> int:
        return math.prod(self.reduced)

    @property
    def outputs(self) -> list[Value]:
        return [*self.per_row, *self.whole]

    @property
    def order(self) -> int:
        """Of its last value: a kernel can only read what kernels of lower order wrote."""
        return max(v.order for v in [*self.reduces, *self.outputs])

    @property
    def product(self) -> Reduce | None:
        return self.reduces[0] if self.reduces and self.reduces[0].product is not None else None

    def place(self, row: Ix, reduced: list[Ix]) -> list[Ix]:
        """Coordinates in the space."""
        rows, inner = iter(unflatten(row, self.kept)), iter(reduced)
        return [next(inner) if axis in self.axes else next(rows) for axis in range(len(self.space))]


@dataclass
class Plan:
    kernels: list[Kernel]  # in launch order
    buffers: dict[int, str]  # id of a value -> the array that holds it
    scratch: list[Value]  # those that are neither inputs nor outputs
    copies: list[tuple[str, Value]]  # outputs that are another output's or an input's data

    def owner(self, value: Value) -> Kernel | None:
        """The kernel that writes or computes the value; None for inputs and what is written out in place."""
        return next((k for k in self.kernels if value in k.reduces or value in k.outputs), None)


class CannotPlan(Exception):
    """This way of grouping has kernels that wait for each other."""


ROW, COLUMN = "row", "col"
_MOST_NAMED = 3  # ops in a kernel's name


def plan(program: Program, *, fuse: bool) -> Plan:
    return _Planner(program, fuse).plan()


class _Planner:
    def __init__(self, program: Program, fuse: bool) -> None:
        self._program = program
        self._fuse = fuse
        self._kept: dict[int, Value] = {}  # by id: what must be in memory
        self._kernels: list[Kernel] = []
        self._owner: dict[int, Kernel] = {}  # by id of a reduce or a kept value

    def plan(self) -> Plan:
        roots = self._output_roots()
        self._keep_boundaries()
        alive = self._alive(list(roots.values()))
        for value in self._program.values:
            if isinstance(value, Reduce) and id(value) in alive:
                self._group(value)
        for value in sorted(self._kept.values(), key=lambda v: v.order):
            if id(value) not in self._owner:
                self._assign(value)
        self._write_shared_reductions()
        return self._finish(roots)

    # What must be in memory

    def _output_roots(self) -> dict[str, Value]:
        roots = {}
        for name, value in self._program.outputs:
            base = strip_reshapes(value)
            roots[name] = base
            if not isinstance(base, Source):
                self._kept[id(base)] = base
        return roots

    def _keep_boundaries(self) -> None:
        for value in self._program.values:
            if isinstance(value, Reduce) and value.rereads:
                for base in _real_operands(value.base, value.origin):
                    self._kept[id(base)] = base
        if self._fuse:
            return
        for value in self._program.values:
            for operand in value.operands:
                base = strip_views(operand)
                if base.origin != value.origin and not isinstance(base, Source) and not is_free(base):
                    self._kept[id(base)] = base

    def _alive(self, roots: list[Value]) -> set[int]:
        """Ids of what the outputs need; values kept for others are forgotten."""
        alive: set[int] = set()
        waiting = list(roots)
        while waiting:
            value = waiting.pop()
            if id(value) not in alive:
                alive.add(id(value))
                waiting += value.operands
        self._kept = {i: v for i, v in self._kept.items() if i in alive}
        return alive

    # Groups

    def _group(self, value: Reduce) -> None:
        for kernel in reversed(self._kernels):
            if self._may_join(kernel, value):
                kernel.reduces.append(value)
                self._own(kernel, value)
                return
        kernel = Kernel(value.base.shape, value.axes, [value])
        self._kernels.append(kernel)
        self._own(kernel, value)

    def _own(self, kernel: Kernel, value: Value) -> None:
        self._owner[id(value)] = kernel

    def _may_join(self, kernel: Kernel, value: Reduce) -> bool:
        if kernel.space != value.base.shape or kernel.axes != value.axes:
            return False
        if value.rereads or kernel.reduces[0].rereads:
            return False
        if not self._fuse and kernel.reduces[0].origin != value.origin:
            return False
        needed = list(self._needs(value.base, list(self._space_coordinates(kernel))))
        if not any(self._aligned(kernel, a) for a in needed):
            mine = {id(v) for v in self._sources(value.base)}
            theirs = {id(v) for r in kernel.reduces for v in self._sources(r.base)}
            if not mine & theirs:
                return False
        return self._placeable(kernel, needed)

    def _placeable(self, kernel: Kernel, needed: list[Access]) -> bool:
        """Every reduction needed is in the kernel at its own row, or in one that does not wait for the
        kernel.
        """
        for access in needed:
            if not isinstance(access.value, Reduce):
                continue
            owner = self._owner.get(id(access.value))
            if owner is kernel:
                if not self._aligned(kernel, access):
                    return False
            elif owner is not None and kernel in self._waits_for(owner):
                return False
        return True

    def _aligned(self, kernel: Kernel, access: Access) -> bool:
        value = access.value
        if not isinstance(value, Reduce) or self._owner.get(id(value)) is not kernel:
            return False
        row = variable(ROW, kernel.rows)
        return list(access.at) == unflatten(row, value.shape)

    def _waits_for(self, kernel: Kernel) -> set[Kernel]:
        """Every kernel whose results this one needs, however far back."""
        found: set[Kernel] = set()
        waiting = [kernel]
        while waiting:
            one = waiting.pop()
            for value in [*one.reduces, *one.outputs]:
                for source in self._reduces_below(value):
                    owner = self._owner.get(id(source))
                    if owner is not None and owner is not one and owner not in found:
                        found.add(owner)
                        waiting.append(owner)
        return found

    def _reduces_below(self, value: Value) -> Iterator[Reduce]:
        seen: set[int] = set()
        waiting = list(value.operands)
        while waiting:
            one = waiting.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            if isinstance(one, Reduce):
                yield one
            waiting += one.operands

    def _sources(self, value: Value) -> Iterator[Value]:
        for access in self._needs(value, [variable(f"a{i}", n) for i, n in enumerate(value.shape)]):
            yield access.value

    def _needs(self, value: Value, at: list[Ix]) -> Iterator[Access]:
        return accesses(value, at, lambda v: False)

    def _space_coordinates(self, kernel: Kernel) -> list[Ix]:
        row = variable(ROW, kernel.rows)
        return kernel.place(row, unflatten(variable(COLUMN, kernel.length), kernel.reduced))

    # Elementwise values that are kept

    def _assign(self, value: Value) -> None:
        if isinstance(value, Pointwise | View):
            for kernel in reversed(self._kernels):
                if not self._fuse and all(r.origin != value.origin for r in kernel.reduces):
                    continue
                if not kernel.reduces:
                    continue
                if value.numel == math.prod(kernel.space) and self._fits(kernel, value, whole=True):
                    kernel.whole.append(value)
                    self._own(kernel, value)
                    return
                if value.numel == kernel.rows and self._fits(kernel, value, whole=False):
                    kernel.per_row.append(value)
                    self._own(kernel, value)
                    return
        kernel = Kernel(value.shape, (), [], per_row=[value])
        self._kernels.append(kernel)
        self._own(kernel, value)

    def _fits(self, kernel: Kernel, value: Value, *, whole: bool) -> bool:
        if whole and (kernel.reduces[0].rereads or not kernel.axes):
            return False
        reduced = unflatten(variable(COLUMN, kernel.length), kernel.reduced) if whole else None
        at = output_coordinates(kernel, value, variable(ROW, kernel.rows), reduced)
        needed = list(self._needs(value, at))
        return any(self._aligned(kernel, a) for a in needed) and self._placeable(kernel, needed)

    def _write_shared_reductions(self) -> None:
        """A reduction that another kernel reads, or that is an output, is written once a row."""
        for kernel in self._kernels:
            for value in self._reads(kernel):
                self._kept[id(value)] = value
        for value in self._kept.values():
            owner = self._owner[id(value)]
            if isinstance(value, Reduce) and value not in owner.per_row:
                owner.per_row.append(value)

    def _reads(self, kernel: Kernel) -> Iterator[Value]:
        """What the kernel loads that other kernels wrote."""

        def elsewhere(value: Value) -> bool:
            return id(value) in self._kept and self._owner[id(value)] is not kernel

        for value in [*kernel.reduces, *kernel.outputs]:
            root = value.base if isinstance(value, Reduce) else value
            at = [variable(f"a{i}", n) for i, n in enumerate(root.shape)]
            for access in accesses(root, at, elsewhere, root=not isinstance(value, Reduce)):
                if not isinstance(access.value, Source) and self._owner[id(access.value)] is not kernel:
                    yield access.value

    # Order, names, buffers

    def _finish(self, roots: dict[str, Value]) -> Plan:
        buffers: dict[int, str] = {id(v): v.name for v in self._program.values if isinstance(v, Source)}
        taken = set(buffers.values()) | set(roots)
        copies: list[tuple[str, Value]] = []
        for name, value in roots.items():
            if id(value) in buffers:
                copies.append((name, value))
            else:
                buffers[id(value)] = name
        scratch = []
        for kernel in self._kernels:
            for value in kernel.outputs:
                if id(value) not in buffers:
                    buffers[id(value)] = _unique(_scratch_name(value), taken)
                    scratch.append(value)
        kernels = self._ordered()
        for kernel in kernels:
            kernel.name = _unique(_kernel_name(kernel), taken)
        return Plan(kernels, buffers, scratch, copies)

    def _ordered(self) -> list[Kernel]:
        """Topologically. Raises CannotPlan when kernels would have to wait for each other."""
        needs = {k: {self._owner[id(v)] for v in self._reads(k)} for k in self._kernels}
        done: list[Kernel] = []
        waiting = sorted(self._kernels, key=lambda k: k.order)
        while waiting:
            ready = next((k for k in waiting if needs[k] <= set(done)), None)
            if ready is None:
                raise CannotPlan
            waiting.remove(ready)
            done.append(ready)
        return done


def output_coordinates(kernel: Kernel, value: Value, row: Ix, reduced: list[Ix] | None) -> list[Ix]:
    """Where in `value` the row writes; with `reduced`, where that element of the row does."""
    if reduced is None:
        return unflatten(row, value.shape)
    at = kernel.place(row, reduced)
    if value.shape == kernel.space:
        return at
    return unflatten(flatten(at, kernel.space), value.shape)


def strip_reshapes(value: Value) -> Value:
    while isinstance(value, View) and value.keeps_order:
        value = value.base
    return value


def strip_views(value: Value) -> Value:
    while isinstance(value, View):
        value = value.base
    return value


def is_free(value: Value) -> bool:
    """Computed from nothing in memory: literals, positions, and what is made of them."""
    if isinstance(value, Pointwise):
        return all(is_free(v) for v in value.inputs)
    return isinstance(value, Iota) or (isinstance(value, View) and is_free(value.base))


def _real_operands(value: Value, origin: str) -> Iterator[Value]:
    """Below a value whose elements are read many times: what has to be in memory rather than computed
    again.
    """
    value = strip_views(value)
    if isinstance(value, Source) or is_free(value):
        return
    if value.origin == origin and not isinstance(value, Reduce):
        for operand in value.operands:
            yield from _real_operands(operand, origin)
    elif isinstance(value, Pointwise | Gather | Reduce):
        yield value


def _kernel_name(kernel: Kernel) -> str:
    """After the first few ops it does."""
    values = sorted([*kernel.reduces, *kernel.outputs], key=lambda v: v.order)
    ops = list(dict.fromkeys(plain_name(v.origin) for v in values))
    return "_".join([*ops[:_MOST_NAMED], "kernel"])


def _scratch_name(value: Value) -> str:
    label = value.label if isinstance(value, Reduce) else ""
    return "_".join(filter(None, [plain_name(value.origin), label or "out"]))


def _unique(wished: str, taken: set[str]) -> str:
    name = wished.strip("_")
    while name in taken:
        name += "_"
    taken.add(name)
    return name

"""Kernels with reductions: a thread, a warp or a block works on one row, in passes over it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from agent.translator.pytorch.emit import Body, local_name
from agent.translator.pytorch.index import Ix, flatten, unflatten, variable
from agent.translator.pytorch.ir import C_TYPES, Access, Pointwise, Reduce, Value, View, accesses
from agent.translator.pytorch.lower import reshaping
from agent.translator.pytorch.plan import Plan, is_free, output_coordinates
from agent.translator.pytorch.schedule import WARP, Schedule, is_cached, row_mode, row_threads

_LOWEST = {
    "float32": "-INFINITY",
    "float64": "-(double)INFINITY",
    "int32": "(-2147483647 - 1)",
    "int64": "(-9223372036854775807LL - 1)",
    "bool": "false",
}
_HIGHEST = {
    "float32": "INFINITY",
    "float64": "(double)INFINITY",
    "int32": "2147483647",
    "int64": "9223372036854775807LL",
    "bool": "true",
}


def emit_rows(body: Body, plan: Plan, schedule: Schedule) -> str:
    """Writes the body; returns the launch configuration's grid and block."""
    return _Rows(body, plan, schedule).write()


class _Rows:
    def __init__(self, body: Body, plan: Plan, schedule: Schedule) -> None:
        self._body, self._plan, self._schedule = body, plan, schedule
        self._kernel = body.kernel
        self._mode = row_mode(self._kernel, schedule)
        self._threads = row_threads(self._kernel, schedule)
        self._cached = is_cached(self._kernel, schedule)
        self._row = variable("row", self._kernel.rows)
        self._accumulators: dict[int, str] = {}
        self._kept: set[int] = set()  # ids of values whose row is in registers
        self._size = math.prod(self._kernel.space)

    def write(self) -> str:
        body, configuration = self._body, self._who()
        passes = self._passes()
        for i, reduces in enumerate(passes):
            self._reduce(reduces, later=passes[i + 1 :])
        self._write_rows()
        if self._kernel.whole:
            for value in self._kernel.whole:
                at = output_coordinates(self._kernel, value, self._row, self._reduced())
                body.hoist(value, at, self._loop_variables)
            with self._loop():
                for value in self._kernel.whole:
                    self._store_whole(value)
        return configuration

    def _who(self) -> str:
        """Declares which row this thread works on, and its place in it; returns grid and block."""
        configuration = self._which_row()
        if self._cached and self._items == 1:
            self._body.line(f"const int col = {'threadIdx.x' if self._mode == 'block' else 'lane'};")
        return configuration

    def _which_row(self) -> str:
        body, rows = self._body, self._kernel.rows
        if self._mode == "block":
            body.line("const int row = blockIdx.x;")
            return f"{rows}, {self._threads}"
        threads = self._schedule.threads
        if self._mode == "thread":
            threads = min(threads, max(WARP, -(-rows // WARP) * WARP))
            body.line("const int row = blockIdx.x * blockDim.x + threadIdx.x;")
            body.line(f"if (row >= {rows}) return;")
            return f"{-(-rows // threads)}, {threads}"
        per_block = max(1, threads // WARP)
        body.line(f"const int row = blockIdx.x * {per_block} + threadIdx.x / 32;")
        body.line("const int lane = threadIdx.x % 32;")
        if rows % per_block:
            body.line(f"if (row >= {rows}) return;")
        return f"{-(-rows // per_block)}, {threads}"

    # Passes

    def _passes(self) -> list[list[Reduce]]:
        """Reductions by how many others have to be complete before them."""
        level: dict[int, int] = {}
        for value in sorted(self._kernel.reduces, key=lambda r: r.order):
            below = [
                level[id(a.value)] for a in self._accesses(value.base, root=False) if id(a.value) in level
            ]
            level[id(value)] = 1 + max(below, default=-1)
        passes: list[list[Reduce]] = [[] for _ in range(1 + max(level.values()))]
        for value in self._kernel.reduces:
            passes[level[id(value)]].append(value)
        return passes

    def _accesses(self, value: Value, *, root: bool) -> Iterator[Access]:
        at = [variable(f"a{i}", n) for i, n in enumerate(value.shape)]
        return accesses(value, at, self._elsewhere, root=root)

    def _elsewhere(self, value: Value) -> bool:
        return id(value) in self._plan.buffers and value not in self._kernel.outputs

    def _reduce(self, reduces: list[Reduce], later: list[list[Reduce]]) -> None:
        body = self._body
        names = [self._declare(value) for value in reduces]
        arrays = self._declare_cache(reduces, later) if self._cached and not self._straight else []
        at = self._kernel.place(self._row, self._reduced())
        for value in reduces:
            body.hoist(value.base, at, self._loop_variables)
        with self._loop():
            for value, name in zip(reduces, names, strict=True):
                self._update(value, name)
            for kept, place in arrays:
                body.line(f"{place} = {body.element(kept, self._same_element(kept, at))};")
        for kept, place in arrays:
            body.know(kept, self._same_element(kept, at), place)
        for value, name in zip(reduces, names, strict=True):
            self._combine(value, name)
            body.know(value, self._row_place(value), name)

    def _row_place(self, value: Reduce) -> list[Ix]:
        return unflatten(self._row, value.shape)

    def _declare(self, value: Reduce) -> str:
        """The accumulator at its neutral value; for argmax the place of the best so far, with the best
        beside it.
        """
        body, type_ = self._body, C_TYPES[value.base.dtype]
        if value.op in ("argmax", "argmin"):
            name = body.name(f"{local_name(value)}_at")
            best = body.name(f"{local_name(value)}_best")
            body.line(f"{type_} {best} = {_neutral(value)};")
            body.line(f"long long {name} = 0;")
            self._accumulators[id(value)] = best
            return name
        name = body.name(value.label or f"{local_name(value)}_{value.op}")
        body.line(f"{type_} {name} = {_neutral(value)};")
        return name

    def _update(self, value: Reduce, name: str) -> None:
        body = self._body
        text = body.element(value.base, self._kernel.place(self._row, self._reduced()))
        match value.op:
            case "sum":
                body.line(f"{name} += {text};")
            case "prod":
                body.line(f"{name} *= {text};")
            case "any":
                body.line(f"{name} = {name} || {text};")
            case "all":
                body.line(f"{name} = {name} && {text};")
            case "max" | "min":
                helper = "larger" if value.op == "max" else "smaller"
                body.helpers.add(helper)
                body.line(f"{name} = {helper}({name}, {text});")
            case "argmax" | "argmin":
                beats = "beats_" + value.op.removeprefix("arg")
                body.helpers.add(beats)
                best = self._accumulators[id(value)]
                place = flatten(self._reduced(), self._kernel.reduced)
                with body.block(f"if ({beats}({text}, {best}))"):
                    body.line(f"{best} = {text};")
                    body.line(f"{name} = {place};")

    def _combine(self, value: Reduce, name: str) -> None:
        """Over the threads that share the row."""
        if self._mode == "thread":
            return
        body, type_ = self._body, C_TYPES[value.base.dtype]
        helper = f"{self._mode}_{value.op}"
        body.helpers.add(helper)
        warps = self._threads // WARP
        if value.op in ("argmax", "argmin"):
            arguments = f"{self._accumulators[id(value)]}, {name}"
            if self._mode == "block":
                bests, places = body.name(f"{name}_bests"), body.name(f"{name}_places")
                body.line(f"__shared__ {type_} {bests}[{warps}];")
                body.line(f"__shared__ long long {places}[{warps}];")
                arguments += f", {bests}, {places}"
            body.line(f"{helper}({arguments});")
        elif self._mode == "block":
            partial = body.name(f"{name}_partial")
            body.line(f"__shared__ {type_} {partial}[{warps}];")
            body.line(f"{name} = {helper}<{type_}>({name}, {partial}, {_neutral(value)});")
        else:
            body.line(f"{name} = {helper}<{type_}>({name});")

    # Loops over the row

    def _reduced(self) -> list[Ix]:
        kernel = self._kernel
        if self._mode == "thread":
            if len(kernel.reduced) == 1:
                return [variable("col", kernel.length)]
            return [variable(f"k{i}", n) for i, n in enumerate(kernel.reduced)]
        return unflatten(variable("col", kernel.length), kernel.reduced)

    @contextmanager
    def _loop(self) -> Iterator[None]:
        body, kernel = self._body, self._kernel
        if self._mode == "thread":
            yield from self._nested(list(enumerate(kernel.reduced)))
            return
        mine = "threadIdx.x" if self._mode == "block" else "lane"
        if not self._cached:
            with body.block(f"for (int col = {mine}; col < {kernel.length}; col += {self._threads})"):
                yield
            return
        if self._straight:
            yield
            return
        if self._items == 1:
            with body.block(f"if (col < {kernel.length})"):
                yield
            return
        body.line("#pragma unroll")
        declaration = f"const int col = {mine} + item * {self._threads};"
        opening = f"for (int item = 0; item < {self._items}; ++item)"
        with body.block(opening), body.declared("col", declaration):
            if kernel.length % self._threads:
                body.line(f"if (col >= {kernel.length}) break;")
            yield

    def _nested(self, axes: list[tuple[int, int]]) -> Iterator[None]:
        if not axes:
            yield
            return
        (axis, extent), *inner = axes
        name = "col" if len(self._kernel.reduced) == 1 else f"k{axis}"
        if extent == 1:
            yield from self._nested(inner)
            return
        with self._body.block(f"for (int {name} = 0; {name} < {extent}; ++{name})"):
            yield from self._nested(inner)

    @property
    def _loop_variables(self) -> set[str]:
        return {"col", *(f"k{i}" for i in range(len(self._kernel.reduced)))}

    @property
    def _straight(self) -> bool:
        """Every thread has exactly one element of the row: no loop, and values stay in scope between
        passes.
        """
        return self._cached and self._kernel.length == self._threads

    @property
    def _items(self) -> int:
        return -(-self._kernel.length // self._threads)

    # Keeping a row in registers

    def _same_element(self, value: Value, at: list[Ix]) -> list[Ix]:
        """Coordinates in a value that is a reshape of the space."""
        return reshaping(self._kernel.space, value.shape)(at) if value.shape != self._kernel.space else at

    def _declare_cache(self, reduces: list[Reduce], later: list[list[Reduce]]) -> list[tuple[Value, str]]:
        """The topmost values of this pass that later ones need again, each with an array for a thread's
        share.
        """
        here: dict[int, Value] = {}
        for reduce in reduces:
            self._evaluated(reduce.base, here)
        wanted: dict[int, Value] = {}
        for root in [*(r.base for p in later for r in p), *self._kernel.whole]:
            self._first_met(root, here, wanted)
        arrays = []
        for value in wanted.values():
            array = self._body.name(f"{local_name(value)}_row")
            several = self._items > 1
            self._body.line(f"{C_TYPES[value.dtype]} {array}{f'[{self._items}]' if several else ''};")
            arrays.append((value, f"{array}[item]" if several else array))
            self._kept.add(id(value))
        return arrays

    def _evaluated(self, value: Value, here: dict[int, Value]) -> None:
        """What this pass computes for the current element, down to memory and to what is kept already."""
        if (
            id(value) in here
            or id(value) in self._kept
            or value.numel != self._size
            or isinstance(value, Reduce)
        ):
            return
        here[id(value)] = value
        for operand in self._below(value):
            self._evaluated(operand, here)

    def _first_met(self, value: Value, here: dict[int, Value], wanted: dict[int, Value]) -> None:
        if value.numel != self._size or isinstance(value, Reduce) or id(value) in self._kept:
            return
        if id(value) in here and not is_free(value):
            if not (isinstance(value, View) and value.base.numel != self._size):
                wanted[id(value)] = value
            return
        for operand in self._below(value):
            self._first_met(operand, here, wanted)

    def _below(self, value: Value) -> Sequence[Value]:
        """Operands that are read at the same element."""
        if self._elsewhere(value) or not (
            isinstance(value, Pointwise) or (isinstance(value, View) and value.keeps_order)
        ):
            return ()
        return value.operands

    # Results

    def _write_rows(self) -> None:
        body = self._body
        if not self._kernel.per_row:
            return
        if self._mode == "thread":
            self._store_rows()
            return
        mine = "threadIdx.x" if self._mode == "block" else "lane"
        with body.block(f"if ({mine} == 0)"):
            self._store_rows()

    def _store_rows(self) -> None:
        for value in self._kernel.per_row:
            self._body.store(value, output_coordinates(self._kernel, value, self._row, None))

    def _store_whole(self, value: Value) -> None:
        self._body.store(value, output_coordinates(self._kernel, value, self._row, self._reduced()))


def _neutral(value: Reduce) -> str:
    dtype = value.base.dtype
    match value.op:
        case "sum":
            return "0"
        case "prod":
            return "1"
        case "max" | "argmax":
            return _LOWEST[dtype]
        case "min" | "argmin":
            return _HIGHEST[dtype]
        case "any":
            return "false"
        case "all":
            return "true"

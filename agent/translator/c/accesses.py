"""Every access of a nest: its array, its subscripts as polynomials, the loops around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agent.translator.c.affine import TURN, Counter, Reader, Split, counter_of
from agent.translator.c.dataflow import arrays_declared, arrays_written, flow
from agent.translator.c.syntax import (
    Assign,
    Binary,
    Body,
    Expr,
    For,
    If,
    Load,
    Pointer,
    Stmt,
    Switch,
    While,
    blocks,
    expressions,
    walk,
)
from sandbox.tasks.c.polynomial import Polynomial


@dataclass(frozen=True)
class Access:
    """One access, with the loops around it (inside the nest that is looked at, outermost first)."""

    array: str
    index: tuple[Polynomial, ...]
    write: bool
    update: str  # the operator, where it is `a[...] op= value`
    counters: tuple[Counter, ...]
    keys: tuple[str, ...]  # the loops' own keys
    statement: Stmt
    line: int = 0
    nonzero: tuple[Polynomial, ...] = ()  # conditions around it say that these are not zero


@dataclass
class Accesses:
    """All accesses of a nest."""

    found: list[Access]
    facts: list[Polynomial]
    loops: dict[str, For]  # by key, in order of appearance
    parts: dict[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # counters that a loop's key was split into
    around: list[Counter] = field(default_factory=list)  # of loops outside the nest


def collect(
    nest: Body, dims: Mapping[str, tuple[Expr | None, ...]], around: tuple[For, ...] = ()
) -> Accesses:
    """Every access to arrays that are not declared inside the nest.

    `dims`: extents of arrays, where known. `around`: loops outside the nest, whose variables are the same for
    all of its iterations but have known ranges.
    """
    splits: dict[str, Polynomial] = {}
    for _ in range(8):
        try:
            return _Collector(nest, dims, splits, around).run()
        except Split as split:
            splits[split.key] = split.divisor
    return _Collector(nest, dims, {}, around, split=False).run()


class _Collector:
    def __init__(
        self,
        nest: Body,
        dims: Mapping[str, tuple[Expr | None, ...]],
        splits: Mapping[str, Polynomial],
        around: tuple[For, ...],
        split: bool = True,
    ):
        self.around = around
        self.nest = nest
        self.dims = dims
        self.reader = Reader(flow(nest).written, arrays_written(nest), splits)
        self.split = split
        self.local = arrays_declared(nest)
        self.accesses = Accesses([], self.reader.facts, {})
        self.counters: list[Counter] = []
        self.keys: list[str] = []
        self.nonzero: list[Polynomial] = []

    def run(self) -> Accesses:
        for level, loop in enumerate(self.around):
            if loop.var.name in self.reader.written:
                continue
            try:
                value, counters = counter_of(loop, f"@{level}{loop.var.name}", self.reader)
            except Split:
                continue
            if counters:
                self.reader.values[loop.var.name] = value
                self.accesses.around += counters
                self.reader.ranges += counters
        self._body(self.nest)
        return self.accesses

    def _read(self, expr: Expr) -> Polynomial:
        try:
            return self.reader.read(expr)
        except Split:
            if self.split:
                raise
            return self.reader.unknown()

    def _body(self, body: Body) -> None:
        for stmt in body:
            self._statement(stmt)

    def _statement(self, stmt: Stmt) -> None:
        for expr in expressions(stmt):
            self._loads(expr, stmt)
        match stmt:
            case Assign():
                self._assign(stmt)
            case For():
                self._for(stmt)
            case If() | Switch():
                self._branches(stmt)
            case While():
                self._forget(flow(stmt.body).written)
                self._body(stmt.body)
                self._forget(flow(stmt.body).written)
            case _:
                pass

    def _loads(self, expr: Expr, stmt: Stmt) -> None:
        own = stmt.target if isinstance(stmt, Assign) and stmt.op else None
        for node in walk(expr):
            if isinstance(node, Load) and node is not own:
                self._add(node, stmt, write=False, update="")
            elif isinstance(node, Pointer) and node.array not in self.local:
                everywhere = (self.reader.unknown(),)
                self._append(node.array, everywhere, stmt, True, "")

    def _assign(self, stmt: Assign) -> None:
        if isinstance(stmt.target, Load):
            self._add(stmt.target, stmt, write=True, update=stmt.op)
            return
        name = stmt.target.name
        if not stmt.target.type.is_integer:
            return
        if not stmt.op:
            value = self._read(stmt.value) if stmt.value.type.is_integer else self.reader.unknown(name)
        elif stmt.op in "+-" and name in self.reader.values:
            change = self._read(stmt.value)
            value = self.reader.values[name] + (change if stmt.op == "+" else -change)
        else:
            value = self.reader.unknown(name)
        self.reader.values[name] = value

    def _add(self, load: Load, stmt: Stmt, write: bool, update: str) -> None:
        if load.array not in self.local:
            self._append(load.array, tuple(self._read(i) for i in load.index), stmt, write, update)

    def _append(
        self, array: str, index: tuple[Polynomial, ...], stmt: Stmt, write: bool, update: str
    ) -> None:
        dims = self.dims.get(array, (None,))
        if len(index) < len(dims) and len(index) == 1:
            pass  # a flat access to a shaped array: compared in flat form
        self.accesses.found.append(
            Access(
                array,
                index,
                write,
                update,
                tuple(self.counters),
                tuple(self.keys),
                stmt,
                getattr(stmt, "line", 0),
                tuple(self.nonzero),
            )
        )

    def _for(self, loop: For) -> None:
        key = f"#{len(self.accesses.loops)}{loop.var.name}"
        self.accesses.loops[key] = loop
        written = flow(loop.body).written
        try:
            value, counters = counter_of(loop, key, self.reader)
        except Split:
            if self.split:
                raise
            value, counters = self.reader.unknown(loop.var.name), []
        self._forget(written)
        saved = self.reader.values.get(loop.var.name)
        self.reader.values[loop.var.name] = value
        self.accesses.parts[key] = tuple(c.key for c in counters if not c.key.endswith(TURN))
        self.counters += counters
        self.reader.ranges += counters
        self.keys.append(key)
        self._body(loop.body)
        self.keys.pop()
        for _ in counters:
            self.counters.pop()
            self.reader.ranges.pop()
        self._forget(written | {loop.var.name})
        if saved is None and loop.own:
            self.reader.values.pop(loop.var.name, None)

    def _branches(self, stmt: If | Switch) -> None:
        before = dict(self.reader.values)
        after: list[dict[str, Polynomial]] = []
        for branch, body in enumerate(blocks(stmt)):
            self.reader.values = dict(before)
            known = self._not_zero(stmt.test, branch == 0) if isinstance(stmt, If) else []
            self.nonzero += known
            self._body(body)
            del self.nonzero[len(self.nonzero) - len(known) :]
            after.append(self.reader.values)
        merged = dict(before)
        for name in {n for values in after for n in values}:
            values = [v.get(name) for v in after] + ([before.get(name)] if isinstance(stmt, Switch) else [])
            first = values[0]
            same = first is not None and all(v == first for v in values)
            merged[name] = first if same and first is not None else self.reader.unknown(name)
        self.reader.values = merged

    def _not_zero(self, test: Expr, holds: bool) -> list[Polynomial]:
        """What differs from zero where a condition holds (or fails)."""
        if not isinstance(test, Binary):
            return []
        if test.op == ("&&" if holds else "||"):
            return self._not_zero(test.left, holds) + self._not_zero(test.right, holds)
        if test.op == ("!=" if holds else "==") and test.left.type.is_integer and test.right.type.is_integer:
            return [self._read(test.left) - self._read(test.right)]
        return []

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self.reader.values[name] = self.reader.unknown(name)

"""Nests of loops: which of a band can stand outermost in parallel, and loops cut into pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.translator.c.accesses import collect
from agent.translator.c.analysis import LoopAnalyser
from agent.translator.c.dataflow import (
    arrays_declared,
    arrays_read,
    arrays_used,
    arrays_written,
    flow,
    names_read,
    scalars_declared,
)
from agent.translator.c.dependence import conflicts, key_of
from agent.translator.c.normalise import ends_early, hull, trip_count
from agent.translator.c.syntax import Assign, Body, Decl, For, Stmt, Swap, Var, constant, walk_statements
from sandbox.tasks.c.polynomial import Polynomial


@dataclass(frozen=True)
class Nest:
    """Loops to run in parallel, outermost first, and what one point of them does."""

    dims: tuple[For, ...]
    body: Body
    assumed: frozenset[Polynomial] = frozenset()


def descend(loop: For) -> tuple[list[For], list[Stmt], Body]:
    """(loops nested without anything but cheap scalar code between, that code, the innermost body)."""
    band, prelude, body = [loop], [], loop.body
    written_arrays = arrays_written((loop,))
    while True:
        *before, last = body if body else (None,)
        if (
            not isinstance(last, For)
            or ends_early(last)
            or not all(_cheap(s, written_arrays) for s in before)
        ):
            break
        before_names = {s.name for s in before if isinstance(s, Decl)} | flow(
            tuple(s for s in before if s)
        ).written
        if not names_read((last.lo, last.bound, last.step)).isdisjoint(before_names):
            break
        band.append(last)
        prelude += [s for s in before if s is not None]
        body = last.body
    return band, prelude, body


def _cheap(stmt: Stmt | None, written: frozenset[str]) -> bool:
    """Scalar code that every thread may as well do for itself."""
    if isinstance(stmt, Decl):
        return True
    return (
        isinstance(stmt, Assign)
        and isinstance(stmt.target, Var)
        and not stmt.op
        and arrays_read((stmt.value,)).isdisjoint(written)
    )


def parallel_nest(loops: LoopAnalyser, loop: For, live_after: frozenset[str]) -> Nest | None:
    """The loops of a band that can stand outermost, in parallel, whatever the order of the others."""
    band, prelude, body = descend(loop)
    total = flow(tuple(prelude) + body)
    band_vars = {b.var.name for b in band}
    declared = set(scalars_declared(loop.body))
    carried = {
        n
        for n in total.written
        if n not in declared and n not in band_vars and (n in flow(loop.body).exposed or n in live_after)
    }
    swaps = any(isinstance(s, Swap) for s in walk_statements(loop.body))
    if carried or swaps or any(ends_early(b) for b in band):
        return None
    accesses = collect((loop,), loops.dims, loops.around)
    chosen: list[For] = []
    assumed: set[Polynomial] = set()
    for assume in (False, True):
        if chosen:
            break
        progress = True
        while progress:
            progress = False
            for candidate in band:
                if candidate in chosen or not _rectangular(candidate, band, chosen):
                    continue
                if any(loops.scalars(candidate, frozenset())):
                    continue
                fixed = frozenset(key_of(accesses, c) for c in chosen)
                extra: set[Polynomial] = set()
                met = conflicts(
                    accesses,
                    key_of(accesses, candidate),
                    fixed,
                    loops.dims,
                    loops.same_memory,
                    extra if assume else None,
                )
                if all(loops.same_value(c.first.array, loop) for c in met):
                    chosen.append(candidate)
                    assumed |= extra
                    progress = True
    chosen = [b for b in band if b in chosen]
    while len(chosen) > 1 and is_tiny(chosen[-1]):
        chosen.pop()
    if not chosen:
        return None
    return Nest(tuple(chosen), without_headers(loop, chosen), frozenset(assumed))


def without_headers(loop: For, chosen: list[For]) -> Body:
    """The nest without the chosen loops' headers, everything else in its order."""

    def strip(stmt: Stmt) -> Body:
        if isinstance(stmt, For) and stmt in chosen:
            if stmt == chosen[-1]:
                return stmt.body
            return tuple(s for inner in stmt.body for s in strip(inner))
        if isinstance(stmt, For) and any(s in chosen for s in walk_statements(stmt.body)):
            return (replace(stmt, body=tuple(s for inner in stmt.body for s in strip(inner))),)
        return (stmt,)

    return strip(loop)


def _rectangular(loop: For, band: list[For], chosen: list[For]) -> bool:
    """Whether a grid can hold the loop: its bounds depend on nothing, or on chosen loops in a known way."""
    outer = [
        b for b in band[: band.index(loop)] if b.var.name in names_read((loop.lo, loop.bound, loop.step))
    ]
    if any(b not in chosen for b in outer):
        return False
    return not outer or hull(loop, outer) is not None


def is_tiny(loop: For) -> bool:
    trips = constant(trip_count(loop))
    return trips is not None and trips < 8


# Distribution ----------------------------------------------------------------------------------------------
def distribute(loop: For) -> list[For]:
    """A parallel loop as several over parts of its body that share no scalars; [loop] where it is one piece.

    for (i) { for (j) a; for (j) b; }   ->   for (i) for (j) a;   for (i) for (j) b;
    """
    shared_prelude: list[Stmt] = []
    groups: list[list[Stmt]] = []
    written = arrays_written(loop.body)
    body = list(loop.body)
    while body and (isinstance(body[0], Decl) or _cheap(body[0], written)) and _integer(body[0]):
        shared_prelude.append(body.pop(0))
    constants = {s.name for s in shared_prelude if isinstance(s, Decl)} | {
        s.target.name for s in shared_prelude if isinstance(s, Assign) and isinstance(s.target, Var)
    }
    if not flow(tuple(body)).written.isdisjoint(constants):
        return [loop]
    for stmt in body:
        groups.append([stmt])
        joined = True
        while joined and len(groups) > 1:
            joined = False
            last = groups[-1]
            for position in range(len(groups) - 2, -1, -1):
                if _linked(groups[position], last):
                    merged = [s for g in groups[position:] for s in g]
                    groups[position:] = [merged]
                    joined = True
                    break
    if len(groups) < 2:
        return [loop]
    return [replace(loop, body=(*shared_prelude, *g)) for g in groups]


def _integer(stmt: Stmt) -> bool:
    kind = stmt.type if isinstance(stmt, Decl) else stmt.target.type if isinstance(stmt, Assign) else None
    return kind is not None and kind.is_integer


def _linked(first: list[Stmt], second: list[Stmt]) -> bool:
    """Whether a private scalar or local array passes between the groups."""
    early, late = flow(tuple(first)), flow(tuple(second))
    declared = set(scalars_declared(tuple(first))) | set(arrays_declared(tuple(first)))
    names = early.written | declared
    return not (late.exposed | (late.written & declared)).isdisjoint(names) or not (
        arrays_declared(tuple(first)).isdisjoint(arrays_used(tuple(second)))
    )

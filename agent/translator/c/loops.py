"""What keeps the iterations of a loop apart, and nests of loops: bands, distribution, elements as scalars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agent.translator.c.accesses import collect
from agent.translator.c.dataflow import (
    arrays_declared,
    arrays_read,
    arrays_used,
    arrays_written,
    flow,
    names_read,
    scalars_declared,
)
from agent.translator.c.dependence import Conflict, conflicts, key_of
from agent.translator.c.normalise import ends_early, fresh, hull, trip_count
from agent.translator.c.reductions import Reduction, find_reduction
from agent.translator.c.syntax import (
    ArrayDecl,
    Assign,
    Body,
    Decl,
    Expr,
    For,
    If,
    Load,
    Pointer,
    Stmt,
    Swap,
    Var,
    While,
    all_expressions,
    constant,
    expressions,
    map_expressions,
    rewrite,
    walk,
    walk_statements,
    with_blocks,
)
from agent.translator.c.types import Scalar
from sandbox.tasks.c.polynomial import Polynomial

Dims = Mapping[str, tuple[Expr | None, ...]]


@dataclass(frozen=True)
class Verdict:
    """A loop, judged. It may run in parallel when `blockers` is empty."""

    loop: For
    reductions: tuple[Reduction, ...] = ()
    atomics: frozenset[str] = frozenset()
    blockers: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    carried: tuple[str, ...] = ()  # scalars that block
    assumed: frozenset[Polynomial] = frozenset()  # to be positive, checked by the host

    @property
    def parallel(self) -> bool:
        return not self.blockers


class Judge:
    """Judges loops of one function."""

    def __init__(self, dims: Dims, types: Mapping[str, Scalar], same_memory: Mapping[str, frozenset[str]]):
        self.dims = dims
        self.types = types
        self.same_memory = same_memory
        self.around: tuple[For, ...] = ()  # host loops around what is looked at

    def verdict(self, loop: For, live_after: frozenset[str]) -> Verdict:
        reductions, carried = self.scalars(loop, live_after)
        blockers = [
            f"line {self._line_of(name, loop)}: `{name}` carries a value from one iteration of "
            f"`{loop.var.name}` to the next"
            for name in carried
        ]
        swaps = [s for s in walk_statements(loop.body) if isinstance(s, Swap)]
        for swap in swaps:
            carried.append(swap.left)
            blockers.append(f"line {swap.line}: `{swap.left}` and `{swap.right}` change places")
        if ends_early(loop):
            blockers.append(f"line {loop.line}: the loop over `{loop.var.name}` may end early")
        accesses = collect((loop,), self.dims, self.around)
        key = key_of(accesses, loop)
        assumed: set[Polynomial] = set()
        met = conflicts(accesses, key, frozenset(), self.dims, self.same_memory)
        if met:
            again: set[Polynomial] = set()
            if not conflicts(accesses, key, frozenset(), self.dims, self.same_memory, again):
                met, assumed = [], again
        atomics: set[str] = set()
        for conflict in met:
            array = conflict.first.array
            if array in atomics or self._same_value(array, loop):
                continue
            if self._atomic(array, loop):
                atomics.add(array)
            else:
                blockers.append(
                    f"line {conflict.first.line}: iterations of `{loop.var.name}` may meet in `{array}`"
                    + (
                        f" (with line {conflict.second.line})"
                        if conflict.second.line != conflict.first.line
                        else ""
                    )
                )
        return Verdict(
            loop,
            tuple(reductions),
            frozenset(atomics),
            tuple(dict.fromkeys(blockers)),
            tuple(met),
            tuple(carried),
            frozenset(assumed),
        )

    def _line_of(self, name: str, loop: For) -> int:
        for stmt in walk_statements(loop.body):
            if isinstance(stmt, Assign) and isinstance(stmt.target, Var) and stmt.target.name == name:
                return stmt.line
        return loop.line

    def scalars(self, loop: For, live_after: frozenset[str]) -> tuple[list[Reduction], list[str]]:
        """(reductions, scalars that are carried otherwise)."""
        total = flow(loop.body)
        declared = set(scalars_declared(loop.body))
        open_names = sorted(
            n
            for n in total.written
            if n not in declared and n != loop.var.name and (n in total.exposed or n in live_after)
        )
        open_names += sorted(
            s.var.name
            for s in walk_statements(loop.body)
            if isinstance(s, For) and not s.own and s.var.name in live_after and s.var.name not in open_names
        )
        found: list[Reduction] = []
        carried: list[str] = []
        for name in open_names:
            reduction = find_reduction(name, loop, live_after)
            if reduction is None:
                carried.append(name)
            else:
                found.append(reduction)
        companions = {r.companion.name for r in found if r.companion is not None}
        kept = [r for r in found if r.var.name not in companions]
        if loop.down and any(r.companion for r in kept):
            return [], open_names
        return kept, [n for n in carried if n not in companions]

    def _atomic(self, array: str, loop: For) -> bool:
        """Whether every access is the same commutative update, of a type that has one."""
        ops: set[str] = set()
        kind: Scalar | None = None
        for stmt in walk_statements(loop.body):
            for expr in expressions(stmt):
                own = stmt.target if isinstance(stmt, Assign) and stmt.op else None
                for node in walk(expr):
                    if isinstance(node, Load | Pointer) and node.array == array and node is not own:
                        return False
            if isinstance(stmt, Assign) and isinstance(stmt.target, Load) and stmt.target.array == array:
                if not stmt.op or (stmt.target.type.is_integer and stmt.value.type.is_float):
                    return False
                ops.add("+" if stmt.op == "-" else stmt.op)
                kind = stmt.target.type
        if len(ops) != 1 or kind is None or array in arrays_declared(loop.body):
            return False
        return can_be_atomic(ops.pop(), kind)

    def _same_value(self, array: str, loop: For) -> bool:
        """Whether every access stores one and the same constant."""
        values: set[Expr] = set()
        for stmt in walk_statements(loop.body):
            if array in arrays_read(expressions(stmt)):
                return False
            if isinstance(stmt, Assign) and isinstance(stmt.target, Load) and stmt.target.array == array:
                values.add(stmt.value)
        return len(values) == 1 and constant(values.pop()) is not None


def can_be_atomic(op: str, kind: Scalar) -> bool:
    if op == "+":
        return kind.is_float or kind.size in (4, 8)
    return op in ("&", "|", "^") and kind.is_integer and kind.size in (4, 8)


# Bands -----------------------------------------------------------------------------------------------------
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


def parallel_nest(judge: Judge, loop: For, live_after: frozenset[str]) -> Nest | None:
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
    accesses = collect((loop,), judge.dims, judge.around)
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
                if any(judge.scalars(candidate, frozenset())):
                    continue
                fixed = frozenset(key_of(accesses, c) for c in chosen)
                extra: set[Polynomial] = set()
                met = conflicts(
                    accesses,
                    key_of(accesses, candidate),
                    fixed,
                    judge.dims,
                    judge.same_memory,
                    extra if assume else None,
                )
                if all(judge._same_value(c.first.array, loop) for c in met):
                    chosen.append(candidate)
                    assumed |= extra
                    progress = True
    chosen = [b for b in band if b in chosen]
    while len(chosen) > 1 and _tiny(chosen[-1]):
        chosen.pop()
    if not chosen:
        return None
    return Nest(tuple(chosen), _rest(loop, chosen), frozenset(assumed))


def _rest(loop: For, chosen: list[For]) -> Body:
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


def _tiny(loop: For) -> bool:
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


# Elements as scalars ---------------------------------------------------------------------------------------
def promote_elements(loop: For, arrays: frozenset[str], taken: set[str], dims: Dims) -> Body | None:
    """`out[k] += ...` in a loop that leaves k alone, as a scalar that is loaded before and stored after.

    None where an array of `arrays` is accessed in any other way.
    """
    before: list[Stmt] = []
    after: list[Stmt] = []
    replaced: dict[Load, Var] = {}
    changing = flow(loop.body).written | {loop.var.name} | set(scalars_declared(loop.body))
    changing |= {s.var.name for s in walk_statements(loop.body) if isinstance(s, For)}
    for array in sorted(arrays):
        elements = {
            n
            for s in walk_statements(loop.body)
            for e in (*expressions(s), *((s.target,) if isinstance(s, Assign) else ()))
            for n in walk(e)
            if isinstance(n, Load) and n.array == array
        }
        if any(
            isinstance(n, Pointer) and n.array == array for e in all_expressions(loop.body) for n in walk(e)
        ):
            return None
        constants = all(all(constant(i) is not None for i in e.index) for e in elements)
        if not elements or (len(elements) > 1 and not constants) or len(elements) > 16:
            return None
        for element in sorted(elements, key=repr):
            if not names_read(element.index).isdisjoint(changing) or arrays_read(
                element.index
            ) & arrays_written(loop.body):
                return None
            var = Var(fresh(taken, f"{array}_value"), element.type)
            replaced[element] = var
            line = loop.line
            before += [Decl(var.name, var.type, line), Assign(var, element, line=line)]
            after.append(Assign(element, var, line=line))

    def change(expr: Expr) -> Expr:
        return rewrite(expr, lambda n: replaced.get(n) if isinstance(n, Load) else None)

    def in_statement(stmt: Stmt) -> Stmt:
        return map_expressions(stmt, change)

    return (*before, replace(loop, body=tuple(in_statement(s) for s in loop.body)), *after)


def sink_arrays(body: Body) -> Body:
    """Small local arrays that one loop alone uses, and fills anew in every iteration, move into that loop."""
    out = list(body)
    for decl in [s for s in body if isinstance(s, ArrayDecl) and not s.heap]:
        if decl.zeroed or any(constant(d) is None for d in decl.dims):
            continue
        users = [s for s in out if s is not decl and decl.name in arrays_used((s,))]
        if len(users) != 1 or not isinstance(users[0], For) or not fills_first(users[0].body, decl):
            continue
        loop = users[0]
        out[out.index(loop)] = replace(loop, body=(decl, *loop.body))
        out.remove(decl)
    return tuple(with_blocks(s, sink_arrays) for s in out)


def fills_first(body: Body, decl: ArrayDecl) -> bool:
    """Whether an iteration surely writes all of the array before it reads any."""
    extents = [constant(d) for d in decl.dims]
    whole = 1
    for extent in extents:
        whole *= extent or 0
    seen: set[tuple[int, ...]] = set()
    for stmt in body:
        reads = any(decl.name in arrays_read(expressions(s)) for s in walk_statements((stmt,)))
        if isinstance(stmt, For) and not reads:
            covered = _covers(stmt, decl)
            if covered:
                return True
        if (
            isinstance(stmt, Assign)
            and isinstance(stmt.target, Load)
            and stmt.target.array == decl.name
            and not reads
        ):
            at = tuple(constant(i) for i in stmt.target.index)
            if all(p is not None for p in at) and not stmt.op:
                seen.add(tuple(p for p in at if p is not None))
                if len(seen) == whole:
                    return True
                continue
        if reads:
            return False
    return False


def _covers(loop: For, decl: ArrayDecl) -> bool:
    band, _, inner = descend(loop)
    if len(band) < len(decl.dims):
        return False
    for stmt in inner:
        if not (
            isinstance(stmt, Assign) and isinstance(stmt.target, Load) and stmt.target.array == decl.name
        ):
            continue
        if stmt.op or len(stmt.target.index) != len(decl.dims):
            continue
        loops = {b.var: b for b in band}
        used = [loops.get(i) if isinstance(i, Var) else None for i in stmt.target.index]
        if all(
            b is not None
            and constant(b.lo) == 0
            and b.relation == "<"
            and constant(b.step) == 1
            and constant(b.bound) == constant(d)
            for b, d in zip(used, decl.dims, strict=True)
        ):
            return True
    return False


# Rounding --------------------------------------------------------------------------------------------------
def rounding_matters(judge: Judge, body: Body) -> bool:
    """Whether one rounding more or less may change more than the last digit.

    So it is where floating-point values decide how long a loop runs or what integer comes out, and where a
    recurrence feeds its own result back.
    """
    for stmt in walk_statements(body):
        match stmt:
            case While():
                if any(e.type.is_float for e in all_expressions((replace(stmt, body=()),))) or _float_exit(
                    stmt.body
                ):
                    return True
            case For():
                if ends_early(stmt) and (_float_exit(stmt.body) or _has_float(stmt.extra)):
                    return True
                carried = judge.scalars(stmt, frozenset())[1]
                if any(judge.types.get(name, Scalar("int")).is_float for name in carried):
                    return True
            case Assign() if stmt.target.type.is_integer:
                if _has_float(stmt.value):
                    return True
            case If():
                stores = [s for s in walk_statements((*stmt.then, *stmt.other)) if isinstance(s, Assign)]
                if _has_float(stmt.test) and any(s.target.type.is_integer for s in stores):
                    return True
            case _:
                pass
    return False


def _has_float(expr: Expr | None) -> bool:
    return expr is not None and any(n.type.is_float for n in walk(expr))


def _float_exit(body: Body) -> bool:
    return any(isinstance(s, If) and _has_float(s.test) for s in walk_statements(body))

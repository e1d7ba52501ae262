"""A lowered body made easier to analyse: counted loops found, walking indices made affine, dead code removed.

k = 0;                                  for (i = 0; i < n; i++)
for (i = 0; i < n; i++) {       ->          y[i * incy] = x[i];
    y[k] = x[i]; k += incy;
}
"""

from __future__ import annotations

from dataclasses import replace

from agent.translator.c.affine import Reader
from agent.translator.c.dataflow import arrays_used, flow, flow_of, live_before, names_read
from agent.translator.c.exits import without_continues
from agent.translator.c.headers import header_of, steady
from agent.translator.c.syntax import (
    AddressOf,
    ArrayDecl,
    Assign,
    Binary,
    Body,
    Break,
    Continue,
    Decl,
    Expr,
    For,
    If,
    Load,
    Num,
    Stmt,
    Unary,
    Var,
    While,
    add,
    blocks,
    constant,
    expressions,
    map_expressions,
    mul,
    number,
    sub,
    substitute,
    walk,
    walk_statements,
    with_blocks,
)
from agent.translator.c.types import INT, Scalar


def normalise(
    body: Body, result: frozenset[str], taken: set[str], kept: frozenset[str] = frozenset()
) -> Body:
    """`result` are the scalars that matter at the end, `kept` arrays that pointers stand for.

    `taken` grows by the names that are made up.
    """
    body = _no_continues(body, taken)
    body = _counted(body)
    body = _own_variables(body, result)
    body = _constants(body)
    body = _inductions(body)
    body = _constants(body)
    for _ in range(3):
        body = _without_dead(body, result, kept)
    return _own_variables(body, result)


def fresh(taken: set[str], wanted: str) -> str:
    name, count = wanted, 2
    while name in taken:
        name, count = f"{wanted}_{count}", count + 1
    taken.add(name)
    return name


def _no_continues(body: Body, taken: set[str]) -> Body:
    def change(stmt: Stmt) -> Stmt:
        stmt = with_blocks(stmt, lambda inner: _no_continues(inner, taken))
        if isinstance(stmt, For):
            return replace(stmt, body=without_continues(stmt.body, "skipped"))
        return stmt

    return tuple(change(s) for s in body)


def _counted(body: Body) -> Body:
    """`while (i < n) { ...; i++; }` as a For."""
    out: list[Stmt] = []
    for stmt in body:
        stmt = with_blocks(stmt, _counted)
        if isinstance(stmt, While) and not stmt.after and stmt.body:
            found = _as_for(stmt, out)
            out.append(found if found is not None else stmt)
        else:
            out.append(stmt)
    return tuple(out)


def _as_for(loop: While, before: list[Stmt]) -> For | None:
    parts = _conjuncts(loop.test)
    for position, part in enumerate(parts):
        header = header_of(part, loop.body[-1:])
        if header is None:
            continue
        var, relation, bound, step, _ = header
        inner = loop.body[:-1]
        if without_continues(inner, "skipped") != inner or not steady(var, (bound, step), inner):
            continue
        others = parts[:position] + parts[position + 1 :]
        extra: Expr | None = None
        for other in others:
            extra = other if extra is None else Binary("&&", extra, other, INT)
        lo: Expr = var
        last = before[-1] if before else None
        if isinstance(last, Assign) and last.target == var and not last.op:
            lo = last.value
            before.pop()
        return For(var, lo, relation, bound, step, inner, False, loop.line, extra)
    return None


def _conjuncts(test: Expr) -> list[Expr]:
    if isinstance(test, Binary) and test.op == "&&":
        return _conjuncts(test.left) + _conjuncts(test.right)
    return [test]


def ends_early(loop: For) -> bool:
    """Whether something other than its count ends the loop."""
    return loop.extra is not None or has_break(loop.body)


def has_break(body: Body) -> bool:
    """Whether a break leaves the loop around this body."""
    for stmt in body:
        if isinstance(stmt, Break):
            return True
        if isinstance(stmt, If) and (has_break(stmt.then) or has_break(stmt.other)):
            return True
    return False


def _own_variables(body: Body, after: frozenset[str]) -> Body:
    """Marks loops whose variable nobody looks at afterwards."""
    out: list[Stmt] = []
    for position, stmt in enumerate(body):
        later = live_before(body[position + 1 :], after)
        if isinstance(stmt, For):
            around = flow(stmt.body).exposed | later | names_read(expressions(stmt))
            own = stmt.own or (
                stmt.var.name not in later
                and stmt.var.name not in names_read((stmt.lo,))
                and stmt.extra is None
            )
            stmt = replace(stmt, own=own, body=_own_variables(stmt.body, around | {stmt.var.name}))
        elif isinstance(stmt, While):
            around = flow(stmt.body).exposed | names_read((stmt.test,)) | later
            stmt = replace(stmt, body=_own_variables(stmt.body, around))
        else:
            stmt = with_blocks(stmt, lambda inner, later=later: _own_variables(inner, later))  # type: ignore[misc]
        out.append(stmt)
    return tuple(out)


def _constants(body: Body) -> Body:
    """Scalars assigned once, outside of loops and branches, to a constant or to a name that never changes."""
    counts: dict[str, int] = {}
    for stmt in walk_statements(body):
        for name in flow_of(stmt).written if not isinstance(stmt, For | If | While) else ():
            counts[name] = counts.get(name, 0) + 1
        if isinstance(stmt, For):
            counts[stmt.var.name] = counts.get(stmt.var.name, 0) + 2
    types = {s.name: s.type for s in walk_statements(body) if isinstance(s, Decl)}
    values: dict[str, Expr] = {}
    for stmt in body:
        if not (isinstance(stmt, Assign) and isinstance(stmt.target, Var) and not stmt.op):
            continue
        name = stmt.target.name
        if counts.get(name) != 1 or name not in types:
            continue
        value = substitute(stmt.value, values)
        literal = _literal(value, stmt.target.type)
        if literal is not None:
            values[name] = literal
        elif isinstance(value, Var) and value.name not in counts and value.type == stmt.target.type:
            values[name] = value
    if not values:
        return body
    kept = tuple(
        s
        for s in body
        if not (isinstance(s, Assign) and isinstance(s.target, Var) and s.target.name in values)
    )
    return tuple(map_expressions(s, lambda e: substitute(e, values)) for s in kept)


def _literal(value: Expr, kind: Scalar) -> Expr | None:
    """A literal as a value of this type."""
    known = constant(value)
    if known is not None and kind.is_integer:
        return number(known, kind)
    inner = value.arg if isinstance(value, Unary) and value.op == "-" else value
    if isinstance(inner, Num) and inner.type == kind:
        return value
    return None


# Walking indices
def _inductions(body: Body) -> Body:
    out: list[Stmt] = []
    for stmt in body:
        stmt = with_blocks(stmt, _inductions)
        if isinstance(stmt, For):
            stmt, after = _induction(stmt)
            out += [stmt, *after]
        else:
            out.append(stmt)
    return tuple(out)


def _induction(loop: For) -> tuple[For, list[Assign]]:
    """Scalars that grow by the same amount in every iteration, put as functions of the loop's variable."""
    after: list[Assign] = []
    step = constant(loop.step)
    if step is None or (loop.relation == "!=" and step not in (1, -1)):
        return loop, after
    if ends_early(loop):
        return loop, after
    writes: dict[str, int] = {}
    for stmt in walk_statements(loop.body):
        if isinstance(stmt, Assign) and isinstance(stmt.target, Var):
            writes[stmt.target.name] = writes.get(stmt.target.name, 0) + 1
        elif isinstance(stmt, For):
            writes[stmt.var.name] = 2
    declared = {s.name for s in walk_statements(loop.body) if isinstance(s, Decl)}
    body = loop.body
    for stmt in loop.body:
        if not (isinstance(stmt, Assign) and isinstance(stmt.target, Var) and stmt.op in ("+", "-")):
            continue
        var = stmt.target
        invariant = names_read((stmt.value,)).isdisjoint({*writes, loop.var.name, *declared})
        if writes[var.name] != 1 or not var.type.is_integer or not invariant or var.name in declared:
            continue
        if any(isinstance(n, Load) for n in walk(stmt.value)) or not _read_elsewhere(var.name, body, stmt):
            continue
        turns = _turns(loop, step)
        grown = mul(turns, stmt.value)
        at = body.index(stmt)
        now = {var.name: _plus(var, grown, stmt.op)}
        then = {var.name: _plus(var, add(grown, stmt.value), stmt.op)}
        body = (
            *(map_expressions(s, lambda e, now=now: substitute(e, now)) for s in body[:at]),  # type: ignore[misc]
            *(map_expressions(s, lambda e, then=then: substitute(e, then)) for s in body[at + 1 :]),  # type: ignore[misc]
        )
        after.append(Assign(var, mul(trip_count(loop), stmt.value), stmt.op, stmt.line))
    return replace(loop, body=body), after


def _read_elsewhere(name: str, body: Body, update: Assign) -> bool:
    return any(
        name in names_read((e,))
        for s in walk_statements(body)
        if s is not update
        for e in _own_expressions(s)
    )


def _own_expressions(stmt: Stmt) -> tuple[Expr, ...]:
    return expressions(stmt)


def _plus(var: Var, grown: Expr, op: str) -> Expr:
    return add(var, grown) if op == "+" else sub(var, grown)


def _turns(loop: For, step: int) -> Expr:
    """How many iterations came before this one."""
    gone = sub(loop.var, loop.lo) if step > 0 else sub(loop.lo, loop.var)
    if abs(step) == 1:
        return gone
    return Binary("/", gone, number(abs(step)), gone.type)


def trip_count(loop: For) -> Expr:
    """Iterations, negative or zero for none: `(bound - lo + step - 1) / step` and its kin."""
    step = constant(loop.step)
    if loop.down:
        span = sub(loop.lo, loop.bound)
        stride: Expr = number(-step) if step is not None else Unary("-", loop.step, loop.step.type)
    else:
        span = sub(loop.bound, loop.lo)
        stride = loop.step
    if loop.relation in ("<=", ">="):
        span = add(span, number(1))
    if constant(stride) == 1:
        return span
    return Binary("/", sub(add(span, stride), number(1)), stride, span.type)


def hull(loop: For, outer: list[For]) -> Expr | None:
    """The most iterations that the loop makes, over all of `outer`; None where that is not known."""
    count = trip_count(loop)
    for around in reversed(outer):
        reader = Reader(frozenset(), frozenset(), {})
        poly = reader.read(count)
        if poly.degree(around.var.name) > 1 or any(
            around.var.name in s and s != around.var.name for s in poly.symbols
        ):
            return None
        slope = poly.coefficient(around.var.name).as_constant
        if slope is None:
            return None
        ends = (around.lo, sub(last_value(around), around.step))
        first_is_smaller = not around.down
        at = ends[1] if (slope > 0) == first_is_smaller else ends[0]
        count = simplified(substitute(count, {around.var.name: at}))
    return count


def simplified(expr: Expr) -> Expr:
    """Sums folded again after a substitution."""
    if isinstance(expr, Binary) and expr.op in ("+", "-") and expr.type.is_integer:
        left, right = simplified(expr.left), simplified(expr.right)
        if expr.op == "+":
            return add(left, right)
        if (
            isinstance(right, Binary)
            and right.op == "-"
            and constant(right.right) is not None
            and constant(left) is None
        ):
            return add(sub(left, right.left), right.right)
        return sub(left, right)
    return expr


def last_value(loop: For) -> Expr:
    """What the loop's variable holds after the loop, where the loop ran at all."""
    return add(loop.lo, mul(trip_count(loop), loop.step))


# Dead code
def _without_dead(body: Body, after: frozenset[str], kept_arrays: frozenset[str]) -> Body:
    kept = sweep(body, after)
    used = _free_names(kept)
    arrays = arrays_used(kept) | kept_arrays

    def clean(stmts: Body) -> Body:
        out = []
        for stmt in stmts:
            if isinstance(stmt, Decl) and stmt.name not in used and stmt.name not in after:
                continue
            if isinstance(stmt, ArrayDecl) and stmt.name not in arrays:
                continue
            out.append(with_blocks(stmt, clean))
        return tuple(out)

    return clean(kept)


def _free_names(body: Body) -> set[str]:
    """Scalars that are read or written, other than variables of loops that own them."""
    used: set[str] = set()
    for stmt in body:
        names = {n.name for e in expressions(stmt) for n in walk(e) if isinstance(n, Var | AddressOf)}
        if isinstance(stmt, Assign) and isinstance(stmt.target, Var):
            names.add(stmt.target.name)
        for inner in blocks(stmt):
            names |= _free_names(inner)
        if isinstance(stmt, For):
            names = names - {stmt.var.name} if stmt.own else names | {stmt.var.name}
        used |= names
    return used


def sweep(body: Body, after: frozenset[str], leaving: frozenset[str] = frozenset()) -> Body:
    """Assignments to scalars that nobody reads, and what becomes empty by that.

    `leaving`: scalars that matter where a break or continue goes.
    """
    out: list[Stmt] = []
    live = after
    for stmt in reversed(body):
        if isinstance(stmt, Break | Continue):
            live = leaving
        if isinstance(stmt, Assign) and isinstance(stmt.target, Var) and stmt.target.name not in live:
            continue
        before = live_before((stmt,), live)
        if isinstance(stmt, For):
            around = live | flow(stmt.body).exposed | {stmt.var.name} | names_read(expressions(stmt))
            stmt = replace(stmt, body=sweep(stmt.body, around, around))
            if not stmt.body and (stmt.own or stmt.var.name not in live):
                continue
        elif isinstance(stmt, While):
            around = live | flow(stmt.body).exposed | names_read((stmt.test,))
            stmt = replace(stmt, body=sweep(stmt.body, around, around))
        elif isinstance(stmt, If):
            before |= leaving if flow((stmt,)).leaves else frozenset()
            stmt = replace(stmt, then=sweep(stmt.then, live, leaving), other=sweep(stmt.other, live, leaving))
            if not stmt.then and not stmt.other:
                continue
        live = before
        out.append(stmt)
    return tuple(reversed(out))

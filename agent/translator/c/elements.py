"""Array elements and small arrays that belong to one loop: as scalars around it, as locals inside it."""

from __future__ import annotations

from dataclasses import replace

from agent.translator.c.dataflow import (
    arrays_read,
    arrays_used,
    arrays_written,
    flow,
    names_read,
    scalars_declared,
)
from agent.translator.c.loops import descend
from agent.translator.c.normalise import fresh
from agent.translator.c.syntax import (
    ArrayDecl,
    Assign,
    Body,
    Decl,
    Expr,
    For,
    Load,
    Pointer,
    Stmt,
    Var,
    all_expressions,
    constant,
    expressions,
    map_expressions,
    rewrite,
    walk,
    walk_statements,
    with_blocks,
)


def promote_elements(loop: For, arrays: frozenset[str], taken: set[str]) -> Body | None:
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

    return (*before, replace(loop, body=tuple(map_expressions(s, change) for s in loop.body)), *after)


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

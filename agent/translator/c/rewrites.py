"""Rewrites of loops and of stages that the planner makes.

A search becomes a minimum over its hits; neighbouring one-thread kernels become one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.translator.c.dataflow import (
    flow,
)
from agent.translator.c.normalise import fresh, has_break
from agent.translator.c.stages import (
    Guard,
    HostIf,
    HostLoop,
    ReduceStage,
    SerialStage,
    Stage,
)
from agent.translator.c.syntax import (
    Assign,
    Binary,
    Body,
    Break,
    Cond,
    Decl,
    Expr,
    For,
    If,
    Stmt,
    Var,
    add,
    constant,
    contains_loop,
    map_expressions,
    negate,
    number,
    substitute,
)
from agent.translator.c.types import INT


def reading(stmt: Stmt, var: Var, other: Var) -> Stmt:
    """The statement with reads of one scalar turned into reads of another."""

    def change(expr: Expr) -> Expr:
        return substitute(expr, {var.name: other})

    def in_statement(s: Stmt) -> Stmt:
        if isinstance(s, Assign) and s.target == var:
            return replace(s, value=change(s.value))
        if isinstance(s, If):
            return replace(
                s,
                test=change(s.test),
                then=tuple(in_statement(t) for t in s.then),
                other=tuple(in_statement(t) for t in s.other),
            )
        return map_expressions(s, change)

    return in_statement(stmt)


def first_match(loop: For, taken: set[str]) -> Body | None:
    """A search that stops at its first hit, as a minimum over all hits.

    for (i...) if (hit(i)) { at = i; break; }   ->   first = min over hits of i;  if (first < n) at = first;
    """
    *prelude, last = loop.body
    if loop.down or constant(loop.step) != 1 or loop.relation not in ("<", "<="):
        return None
    if not isinstance(last, If) or last.other or not last.then or not isinstance(last.then[-1], Break):
        return None
    hit = last.then[:-1]
    pure = all(isinstance(s, Decl) or (isinstance(s, Assign) and isinstance(s.target, Var)) for s in prelude)
    if not pure or has_break(hit) or contains_loop(hit) or flow(loop.body).exposed & flow(loop.body).written:
        return None
    private = flow(tuple(prelude)).written
    if not private.isdisjoint(flow(hit).exposed):
        return None
    first = Var(fresh(taken, "first"), loop.var.type)
    limit = loop.bound if loop.relation == "<" else add(loop.bound, number(1))
    keep = Assign(first, Cond(Binary("<", loop.var, first, INT), loop.var, first, first.type), line=last.line)
    search = replace(loop, body=(*prelude, replace(last, then=(keep,))), own=True)
    found: Body = tuple(map_expressions(s, lambda e: substitute(e, {loop.var.name: first})) for s in hit)
    after: Body = (If(Binary("<", first, limit, INT), found, line=last.line),) if found else ()
    if not loop.own:
        after = (*after, Assign(loop.var, first, line=last.line))
    return (Decl(first.name, first.type, loop.line), Assign(first, limit, line=loop.line), search, *after)


def joined_serials(stages: Iterable[Stage]) -> list[Stage]:
    """Neighbouring one-thread kernels as one, guards as conditions; after a reduction, in its last kernel."""
    out: list[Stage] = []
    for stage in stages:
        match stage:
            case HostLoop():
                stage = replace(stage, body=tuple(joined_serials(stage.body)))
            case HostIf():
                stage = replace(
                    stage, then=tuple(joined_serials(stage.then)), other=tuple(joined_serials(stage.other))
                )
        last = out[-1] if out else None
        if isinstance(stage, SerialStage):
            if isinstance(last, SerialStage) and (last.guards or stage.guards):
                shared = _shared(last.guards, stage.guards)
                out[-1] = replace(
                    last,
                    body=(
                        *_conditional(last.body, last.guards[shared:]),
                        *_conditional(stage.body, stage.guards[shared:]),
                    ),
                    guards=last.guards[:shared],
                    why=(*last.why, *stage.why),
                    live=last.live | stage.live,
                )
                continue
            if (
                isinstance(last, ReduceStage)
                and _shared(last.guards, stage.guards) == len(last.guards)
                and not contains_loop(stage.body)
            ):
                extra = _conditional(stage.body, stage.guards[len(last.guards) :])
                out[-1] = replace(last, after=(*last.after, *extra), live=last.live | stage.live)
                continue
        out.append(stage)
    return out


def _shared(left: tuple[Guard, ...], right: tuple[Guard, ...]) -> int:
    count = 0
    while count < min(len(left), len(right)) and left[count] == right[count]:
        count += 1
    return count


def _conditional(body: Body, guards: tuple[Guard, ...]) -> Body:
    for guard in reversed(guards):
        test: Expr = guard.flag if guard.holds else negate(guard.flag)
        body = (If(test, body),)
    return body


def plain_scalar(stmt: Stmt) -> bool:
    return isinstance(stmt, Assign) and isinstance(stmt.target, Var) and not stmt.op

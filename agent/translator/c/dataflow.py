"""Which scalars a piece of code reads before it writes them, and which it surely writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.translator.c.syntax import (
    AddressOf,
    ArrayDecl,
    Assign,
    Body,
    Break,
    CallStmt,
    Continue,
    Decl,
    Expr,
    For,
    If,
    Load,
    Pointer,
    Return,
    Stmt,
    Switch,
    Var,
    While,
    expressions,
    walk,
    walk_statements,
)


@dataclass(frozen=True)
class Flow:
    """Of a piece of code: scalars it may read before writing, surely writes, and may write."""

    exposed: frozenset[str] = frozenset()
    definite: frozenset[str] = frozenset()  # written on every way to the end of the code
    written: frozenset[str] = frozenset()
    killed: frozenset[str] = frozenset()  # written on every way out of the code, breaks included
    leaves: bool = False  # whether a break or continue may leave it

    def then(self, later: Flow) -> Flow:
        return Flow(
            self.exposed | (later.exposed - self.definite),
            self.definite | later.definite,
            self.written | later.written,
            self.killed if self.leaves else self.killed | later.killed,
            self.leaves or later.leaves,
        )

    def maybe(self) -> Flow:
        """As the body of a loop, which may not run at all."""
        return Flow(self.exposed, frozenset(), self.written)


def _surely(read: frozenset[str], own: frozenset[str], written: frozenset[str]) -> Flow:
    return Flow(read, own, written, own)


def names_read(exprs: Iterable[Expr]) -> frozenset[str]:
    """Scalars in the expressions."""
    return frozenset(n.name for e in exprs for n in walk(e) if isinstance(n, Var))


def addresses(exprs: Iterable[Expr]) -> frozenset[str]:
    return frozenset(n.name for e in exprs for n in walk(e) if isinstance(n, AddressOf))


def arrays_read(exprs: Iterable[Expr]) -> frozenset[str]:
    return frozenset(n.array for e in exprs for n in walk(e) if isinstance(n, Load | Pointer))


def flow(body: Body) -> Flow:
    """Of a list of statements."""
    total = Flow()
    for stmt in body:
        total = total.then(flow_of(stmt))
    return total


def flow_of(stmt: Stmt) -> Flow:
    read = names_read(expressions(stmt))
    changed = addresses(expressions(stmt))
    match stmt:
        case Assign():
            own = frozenset({stmt.target.name}) if isinstance(stmt.target, Var) else frozenset()
            return _surely(read, own, own | changed)
        case Decl():
            # Undefined until written: nothing before the declaration matters.
            return _surely(frozenset(), frozenset({stmt.name}), frozenset())
        case If():
            then, other = flow(stmt.then), flow(stmt.other)
            both = Flow(
                then.exposed | other.exposed,
                then.definite & other.definite,
                then.written | other.written,
                then.killed & other.killed,
                then.leaves or other.leaves,
            )
            return Flow(read, frozenset(), changed).then(both)
        case For():
            var = frozenset({stmt.var.name})
            head = _surely(read - var if names_read((stmt.lo,)).isdisjoint(var) else read, var, var)
            return head.then(flow(stmt.body).maybe())
        case While():
            body = flow(stmt.body)
            test = Flow(read, frozenset(), changed)
            if stmt.after:
                return (body.maybe() if body.leaves else body).then(test)
            return test.then(body.maybe())
        case Switch():
            inner = Flow(read, frozenset(), changed)
            for _, case in stmt.cases:
                inner = inner.then(flow(case).maybe())
            return inner
        case Break() | Continue():
            return Flow(leaves=True)
        case Return() | CallStmt() | ArrayDecl():
            return Flow(read | changed, frozenset(), changed)
        case _:
            return Flow()


def live_before(body: Body, after: frozenset[str]) -> frozenset[str]:
    """Scalars whose value on entry to the code matters, when those in `after` matter on leaving it."""
    total = flow(body)
    return total.exposed | (after - total.killed)


def arrays_written(body: Body) -> frozenset[str]:
    names: set[str] = set()
    for stmt in walk_statements(body):
        if isinstance(stmt, Assign) and isinstance(stmt.target, Load):
            names.add(stmt.target.array)
        for expr in expressions(stmt):
            names |= {n.array for n in walk(expr) if isinstance(n, Pointer)}
    return frozenset(names)


def arrays_used(body: Body) -> frozenset[str]:
    names = set(arrays_written(body))
    for stmt in walk_statements(body):
        names |= arrays_read(expressions(stmt))
    return frozenset(names)


def arrays_declared(body: Body) -> frozenset[str]:
    return frozenset(s.name for s in walk_statements(body) if isinstance(s, ArrayDecl))


def scalars_declared(body: Body) -> dict[str, Decl]:
    return {s.name: s for s in walk_statements(body) if isinstance(s, Decl)}

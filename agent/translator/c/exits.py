"""Early exits made structured: no `return` but at the end, no `continue` at all.

    if (n < 1) return;      ->      if (!(n < 1)) {
    work();                             work();
                                    }

A `return` inside a loop becomes a flag, a `break`, and a guard around what follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agent.translator.c.syntax import (
    Assign,
    Body,
    Break,
    Continue,
    Decl,
    For,
    If,
    Load,
    Return,
    Stmt,
    Switch,
    Var,
    While,
    negate,
    number,
    walk_statements,
    with_blocks,
)
from agent.translator.c.types import INT


class _Exits:
    """One kind of exit taken out of one body. `instead` is what an exit leaves behind."""

    def __init__(
        self, kind: type[Return] | type[Continue] | type[Break], instead: Callable[[Stmt], Body], flag: str
    ):
        self.kind = kind
        self.instead = instead
        self.flag = Var(flag, INT)
        self.flag_used = False

    def has(self, stmt: Stmt) -> bool:
        if isinstance(stmt, self.kind):
            return True
        if isinstance(stmt, For | While | Switch) and self.kind is not Return:
            # A switch catches break; continue passes through it.
            return (
                isinstance(stmt, Switch)
                and self.kind is Continue
                and any(self.has(s) for _, body in stmt.cases for s in body)
            )
        match stmt:
            case If():
                return any(self.has(s) for s in (*stmt.then, *stmt.other))
            case For() | While():
                return any(self.has(s) for s in stmt.body)
            case Switch():
                return any(self.has(s) for _, body in stmt.cases for s in body)
            case _:
                return False

    def always(self, body: Body) -> bool:
        """Whether every way through the body ends in the exit."""
        if not body:
            return False
        last = body[-1]
        if isinstance(last, self.kind):
            return True
        return isinstance(last, If) and self.always(last.then) and self.always(last.other)

    def remove(self, body: Body) -> Body:
        out: list[Stmt] = []
        for position, stmt in enumerate(body):
            if isinstance(stmt, self.kind):
                return (*out, *self.instead(stmt))
            if not self.has(stmt):
                out.append(stmt)
                continue
            rest = body[position + 1 :]
            if isinstance(stmt, If) and self.always(stmt.then):
                return (*out, self._branch(stmt, self.remove(stmt.then), self.remove((*stmt.other, *rest))))
            if isinstance(stmt, If) and self.always(stmt.other):
                return (*out, self._branch(stmt, self.remove((*stmt.then, *rest)), self.remove(stmt.other)))
            if isinstance(stmt, If) and not rest:
                return (*out, self._branch(stmt, self.remove(stmt.then), self.remove(stmt.other)))
            self.flag_used = True
            out.append(Assign(self.flag, number(0), line=stmt.line))
            out.append(self._flagged(stmt, in_loop=False))
            if rest:
                out.append(If(negate(self.flag), self.remove(rest), line=stmt.line))
            return tuple(out)
        return tuple(out)

    def _branch(self, stmt: If, then: Body, other: Body) -> Stmt:
        if not then and other:
            return replace(stmt, test=negate(stmt.test), then=other, other=())
        return replace(stmt, then=then, other=other)

    def _flagged(self, stmt: Stmt, in_loop: bool) -> Stmt:
        """Exits become the flag (and a break inside a loop)."""

        def inner(body: Body) -> Body:
            out: list[Stmt] = []
            for position, s in enumerate(body):
                if isinstance(s, self.kind):
                    out += [*self.instead(s), Assign(self.flag, number(1), line=s.line)]
                    if loop:
                        out.append(Break(s.line))
                    return tuple(out)
                if self.has(s):
                    nested = isinstance(s, For | While)
                    out.append(self._flagged(s, loop))
                    rest = body[position + 1 :]
                    if loop and nested:
                        out.append(If(self.flag, (Break(s.line),), line=s.line))
                    elif not loop and rest:
                        out.append(If(negate(self.flag), inner(rest), line=s.line))
                        return tuple(out)
                else:
                    out.append(s)
            return tuple(out)

        loop = in_loop or isinstance(stmt, For | While)
        return with_blocks(stmt, inner)


def without_returns(body: Body, result: Var | Load | None, flag: str) -> Body:
    """The body with every `return` structured away; returned values go to `result`."""

    def instead(stmt: Stmt) -> Body:
        assert isinstance(stmt, Return), "only returns are replaced here"
        if stmt.value is None or result is None:
            return ()
        return (Assign(result, stmt.value, line=stmt.line),)

    exits = _Exits(Return, instead, flag)
    removed = exits.remove(body)
    return (Decl(flag, INT), *removed) if exits.flag_used else removed


def without_continues(body: Body, flag: str) -> Body:
    """A loop's body with its own `continue`s structured away."""
    if not any(isinstance(s, Continue) for s in walk_statements(body)):
        return body
    exits = _Exits(Continue, lambda stmt: (), flag)
    removed = exits.remove(body)
    return (Decl(flag, INT), *removed) if exits.flag_used else removed


def without_breaks(body: Body, done: Var) -> Body | None:
    """A loop's body with its own `break`s turned into `done = 1`. None where the loop does not break."""
    exits = _Exits(Break, lambda stmt: (Assign(done, number(1), line=stmt.line),), done.name + "_now")
    if not any(exits.has(s) for s in body):
        return None
    removed = exits.remove(body)
    return (Decl(exits.flag.name, INT), *removed) if exits.flag_used else removed

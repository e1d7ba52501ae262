"""Whether contracted multiply-adds may change more than the last digit of what a piece of code computes."""

from __future__ import annotations

from dataclasses import replace

from agent.translator.c.analysis import LoopAnalyser
from agent.translator.c.normalise import ends_early
from agent.translator.c.syntax import (
    Assign,
    Body,
    Expr,
    For,
    If,
    While,
    all_expressions,
    walk,
    walk_statements,
)
from agent.translator.c.types import Scalar


def rounding_matters(loops: LoopAnalyser, body: Body) -> bool:
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
                carried = loops.scalars(stmt, frozenset())[1]
                if any(loops.types.get(name, Scalar("int")).is_float for name in carried):
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

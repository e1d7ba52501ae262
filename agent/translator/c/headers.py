"""What the head of a counted loop says, and whether the body leaves it alone."""

from __future__ import annotations

from typing import Any

from pycparser import c_ast

from agent.translator.c.syntax import (
    AddressOf,
    Assign,
    Binary,
    Body,
    Cond,
    Expr,
    For,
    Load,
    Stmt,
    Unary,
    Var,
    add,
    all_expressions,
    constant,
    number,
    walk,
    walk_statements,
)
from agent.translator.c.types import INT

_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!=", "==": "=="}


def header_of(test: Expr, steps: Body) -> tuple[Var, str, Expr, Expr, Body] | None:
    """(variable, relation, bound, step, other statements of the step) of a counted loop."""
    if not isinstance(test, Binary) or test.op not in ("<", "<=", ">", ">=", "!="):
        return None
    sides = ((test.left, test.op, test.right), (test.right, _TURNED[test.op], test.left))
    for left, relation, right in sides:
        var, bound = _alone(left, right)
        if not isinstance(var, Var) or not var.type.is_integer:
            continue
        for stmt in steps:
            if isinstance(stmt, Assign) and stmt.target == var and stmt.op in ("+", "-"):
                step = stmt.value
                if stmt.op == "-":
                    value = constant(step)
                    step = number(-value) if value is not None else Unary("-", step, step.type)
                value = constant(step)
                if value is None and relation in (">", ">=") and stmt.op == "+":
                    continue
                if value is not None and (
                    value == 0 or ((value < 0) != (relation in (">", ">=")) and relation != "!=")
                ):
                    continue
                if relation == "!=" and value not in (1, -1):
                    continue
                others = tuple(s for s in steps if s is not stmt)
                if not any(isinstance(s, Assign) and s.target == var for s in others):
                    return var, relation, bound, step, others
    return None


def _alone(side: Expr, other: Expr) -> tuple[Expr, Expr]:
    """`i + 1 < n` as `i < n - 1`."""
    if isinstance(side, Binary) and side.op in ("+", "-") and isinstance(side.left, Var):
        shift = constant(side.right)
        if shift is not None and side.type.is_integer:
            by = -shift if side.op == "+" else shift
            moved = add(other, number(by))
            if not side.type.signed and by < 0:
                room = Binary(">", other, number(-by), INT)
                return side.left, Cond(room, moved, number(0), other.type)
            return side.left, moved
    return side, other


def moved(body: Any) -> set[str]:
    """Names that `++`, `--`, `+=`, `-=` are applied to, or that are assigned anew."""
    found: set[str] = set()

    def visit(node: Any) -> None:
        match node:
            case c_ast.UnaryOp(op="p++" | "p--" | "++" | "--", expr=c_ast.ID() as name):
                found.add(name.name)
            case c_ast.Assignment(op="+=" | "-=", lvalue=c_ast.ID() as name):
                found.add(name.name)
            case c_ast.Assignment(lvalue=c_ast.ID() as name) if not isinstance(node.rvalue, c_ast.ID):
                found.add(name.name)
            case _:
                pass
        for _, child in node.children():
            visit(child)

    visit(body)
    return found


def writes_any(stmt: Stmt, names: set[str]) -> bool:
    return isinstance(stmt, Assign) and isinstance(stmt.target, Var) and stmt.target.name in names


def steady(var: Var, invariants: tuple[Expr, ...], body: Body) -> bool:
    """Whether the body leaves the loop's variable, bound and step alone."""
    names = {n.name for e in invariants for n in walk(e) if isinstance(n, Var)} | {var.name}
    arrays = {n.array for e in invariants for n in walk(e) if isinstance(n, Load)}
    for stmt in walk_statements(body):
        if writes_any(stmt, names) or (isinstance(stmt, For) and stmt.var.name in names):
            return False
        if isinstance(stmt, Assign) and isinstance(stmt.target, Load) and stmt.target.array in arrays:
            return False
    return not any(n.name in names for e in all_expressions(body) if (n := _address(e)) is not None)


def _address(expr: Expr) -> Var | None:
    return Var(expr.name, expr.type) if isinstance(expr, AddressOf) else None

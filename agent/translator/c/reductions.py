"""Scalars that a loop accumulates in a way that does not depend on the order of its iterations.

Recognised: `s += e`, `s -= e`, `s *= e`, bitwise and logical forms, minima and maxima as `if`, `?:` or fmin,
positions of minima and maxima, and flags that are only ever set to one constant.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.translator.c.dataflow import names_read
from agent.translator.c.syntax import (
    Assign,
    Binary,
    Body,
    Call,
    Cast,
    Cond,
    Expr,
    For,
    If,
    Stmt,
    Var,
    constant,
    expressions,
    walk_statements,
)
from agent.translator.c.types import Scalar


@dataclass(frozen=True)
class Reduction:
    """One accumulated scalar. `op` is + * min max & | ^ && || or any."""

    var: Var
    op: str
    companion: Var | None = None  # of min and max: the variable that remembers where
    strict: bool = True  # of min and max with a companion: the first of equals wins
    constant: str = ""  # of any: the value that is set
    line: int = 0


_MINMAX = {"fmin": "min", "fminf": "min", "fmax": "max", "fmaxf": "max"}
_PLAIN = {"+": "+", "-": "+", "*": "*", "&": "&", "|": "|", "^": "^"}


def find_reduction(name: str, loop: For, live_after: frozenset[str]) -> Reduction | None:
    """How `loop` accumulates the scalar, None where it does so in no known way."""
    writes = [
        s
        for s in walk_statements(loop.body)
        if isinstance(s, Assign) and isinstance(s.target, Var) and s.target.name == name
    ]
    if not writes:
        return None
    var = writes[0].target
    assert isinstance(var, Var)
    for find in (_plain, _extreme_expression, _extreme_branch, _logical, _any):
        found = find(var, writes, loop)
        if found is not None:
            return found
    return None


def _reads(name: str, body: Body) -> int:
    """How many statements' own expressions read the scalar."""
    return sum(name in names_read(_seen(s)) for s in walk_statements(body))


def _seen(stmt: Stmt) -> tuple[Expr, ...]:
    return expressions(stmt)


def _plain(var: Var, writes: list[Assign], loop: For) -> Reduction | None:
    ops = {_PLAIN.get(w.op) for w in writes}
    if len(ops) != 1 or None in ops:
        return None
    op = ops.pop()
    assert op is not None
    if any(var.name in names_read((w.value,)) for w in writes) or _reads(var.name, loop.body) != len(writes):
        return None
    if var.type.is_integer and any(w.value.type.is_float for w in writes):
        return None  # truncated at every step
    return Reduction(var, op, line=writes[0].line)


def _extreme_expression(var: Var, writes: list[Assign], loop: For) -> Reduction | None:
    """`s = fmax(s, e)`, `s = s > e ? s : e`."""
    ops: set[str | None] = set()
    for write in writes:
        value = write.value
        while isinstance(value, Cast) and value.type.is_float:
            value = value.arg
        ops.add(None if write.op else _extreme_of(var, value))
    if len(ops) != 1 or None in ops or _reads(var.name, loop.body) != len(writes):
        return None
    op = ops.pop()
    assert op is not None
    return Reduction(var, op, line=writes[0].line)


def _bare(expr: Expr) -> Expr:
    while isinstance(expr, Cast):
        expr = expr.arg
    return expr


def _extreme_of(var: Var, value: Expr) -> str | None:
    match value:
        case Call() if value.function in _MINMAX:
            sides = [_bare(a) for a in value.args]
            if var in sides and sum(var.name in names_read((a,)) for a in value.args) == 1:
                return _MINMAX[value.function]
        case Cond(test=Binary(op="<" | ">" | "<=" | ">=") as test):
            left, right = _bare(test.left), _bare(test.right)
            then, other = _bare(value.then), _bare(value.other)
            if {left, right} != {then, other} or var not in (left, right) or left == right:
                return None
            mate = right if left == var else left
            if var.name in names_read((mate,)):
                return None
            bigger_first = test.op in (">", ">=")
            takes_left = then == left
            return "max" if bigger_first == takes_left else "min"
        case _:
            pass
    return None


def _extreme_branch(var: Var, writes: list[Assign], loop: For) -> Reduction | None:
    """`if (e > s) s = e;`, or `{ s = e; at = i; }`."""
    if len(writes) != 1 or writes[0].op:
        return None
    write = writes[0]
    for stmt in walk_statements(loop.body):
        if not isinstance(stmt, If) or write not in stmt.then or stmt.other:
            continue
        test = stmt.test
        if not isinstance(test, Binary) or test.op not in ("<", "<=", ">", ">="):
            return None
        left, right = _bare(test.left), _bare(test.right)
        if right == var and left == _bare(write.value):
            op = "max" if test.op in (">", ">=") else "min"
        elif left == var and right == _bare(write.value):
            op = "min" if test.op in (">", ">=") else "max"
        else:
            return None
        if var.name in names_read((write.value,)) or _reads(var.name, loop.body) != 1:
            return None
        others = [s for s in stmt.then if s is not write]
        if not others:
            return Reduction(var, op, line=write.line)
        if len(others) != 1 or not _outside_inner_loops(stmt, loop.body):
            return None  # one position, recorded in the loop that is looked at
        other = others[0]
        if not isinstance(other, Assign) or not isinstance(other.target, Var) or other.op:
            return None
        if _bare(other.value) != loop.var or constant(loop.step) is None or not other.target.type.is_integer:
            return None
        mate_writes = sum(
            isinstance(s, Assign) and s.target == other.target for s in walk_statements(loop.body)
        )
        if mate_writes != 1 or _reads(other.target.name, loop.body):
            return None
        return Reduction(var, op, other.target, test.op in ("<", ">"), line=write.line)
    return None


def _outside_inner_loops(wanted: Stmt, body: Body) -> bool:
    return any(
        s == wanted
        or (
            isinstance(s, If)
            and (_outside_inner_loops(wanted, s.then) or _outside_inner_loops(wanted, s.other))
        )
        for s in body
    )


def _logical(var: Var, writes: list[Assign], loop: For) -> Reduction | None:
    """`s = s && e`, `s = s || e`."""
    ops: set[str] = set()
    for write in writes:
        value = write.value
        if write.op or not isinstance(value, Binary) or value.op not in ("&&", "||"):
            return None
        sides = [value.left, value.right]
        if var not in sides or sum(var.name in names_read((s,)) for s in sides) != 1:
            return None
        ops.add(value.op)
    if len(ops) != 1 or _reads(var.name, loop.body) != len(writes):
        return None
    return Reduction(var, ops.pop(), line=writes[0].line)


def _any(var: Var, writes: list[Assign], loop: For) -> Reduction | None:
    """`if (...) found = 1;`."""
    values = {w.value for w in writes}
    if len(values) != 1 or any(w.op for w in writes) or _reads(var.name, loop.body):
        return None
    value = values.pop()
    known = constant(value)
    if known is None or not var.type.is_integer:
        return None
    return Reduction(var, "any", constant=str(known), line=writes[0].line)


# What the emitter needs of an operator ---------------------------------------------------------------------
def identity(reduction: Reduction) -> str:
    """The value that changes nothing, as CUDA text."""
    kind, op = reduction.var.type, reduction.op
    if op == "any":
        return "1" if reduction.constant == "0" else "0"
    if op in ("min", "max"):
        return extreme_text(kind, largest=op == "min")
    if op == "*":
        return "1.0f" if kind.name == "float" else "1.0" if kind.name == "double" else "1"
    if op in ("&&",):
        return "1"
    if op == "&":
        return "~0"
    return "0.0f" if kind.name == "float" else "0.0" if kind.name == "double" else "0"


def extreme_text(kind: Scalar, largest: bool) -> str:
    """The type's largest or smallest value."""
    if kind.is_float:
        text = "INFINITY" if kind.name == "float" else "(double)INFINITY"
        return text if largest else "-" + text
    names = {
        "int": ("INT_MAX", "INT_MIN"),
        "unsigned int": ("UINT_MAX", "0"),
        "long": ("LONG_MAX", "LONG_MIN"),
        "long long": ("LLONG_MAX", "LLONG_MIN"),
        "unsigned long": ("ULONG_MAX", "0"),
        "unsigned long long": ("ULLONG_MAX", "0"),
        "short": ("SHRT_MAX", "SHRT_MIN"),
        "unsigned short": ("USHRT_MAX", "0"),
        "char": ("CHAR_MAX", "CHAR_MIN"),
        "signed char": ("SCHAR_MAX", "SCHAR_MIN"),
        "unsigned char": ("UCHAR_MAX", "0"),
        "bool": ("1", "0"),
    }[kind.name]
    return names[0] if largest else names[1]


def combine(reduction: Reduction, left: str, right: str) -> str:
    """The expression that joins two partial results."""
    match reduction.op:
        case "min" | "max" if reduction.var.type.is_float:
            suffix = "f" if reduction.var.type.name == "float" else ""
            return f"f{reduction.op}{suffix}({left}, {right})"
        case "min" | "max":
            return f"{reduction.op}({left}, {right})"
        case "any":
            return f"({left} & {right})" if reduction.constant == "0" else f"({left} | {right})"
        case op:
            return f"{left} {op} {right}"

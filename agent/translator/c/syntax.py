"""The translator's own tree: typed expressions and statements without side effects inside expressions.

C's `*p++ = (i += 2)` has become separate assignments by the time it gets here; pointers have become an
array's name and an offset. Everything is frozen, so that trees can be compared, hashed and shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from agent.translator.c.types import BOOL, INT, Scalar, common


# Expressions -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Num:
    """A literal, with its text as it can stand in CUDA."""

    text: str
    type: Scalar

    @property
    def value(self) -> int | None:
        """Of an integer literal."""
        if not self.type.is_integer:
            return None
        text = self.text.rstrip("uUlL")
        try:
            return (
                int(text, 0)
                if not (len(text) > 1 and text.startswith("0") and text.isdigit())
                else int(text, 8)
            )
        except ValueError:
            return None


@dataclass(frozen=True)
class Var:
    name: str
    type: Scalar


@dataclass(frozen=True)
class Load:
    """An element of an array. One index on an array of several dimensions is a flat one."""

    array: str
    index: tuple[Expr, ...]
    type: Scalar


@dataclass(frozen=True)
class Pointer:
    """The address of an element, as an argument of a device function: `array + offset`."""

    array: str
    offset: Expr
    type: Scalar  # of the element


@dataclass(frozen=True)
class AddressOf:
    """`&scalar`, as an argument of a device function."""

    name: str
    type: Scalar


@dataclass(frozen=True)
class SameArray:
    """Whether two names stand for one array at the moment, where swaps make that change. Host code only."""

    left: str
    right: str
    type: Scalar = INT


@dataclass(frozen=True)
class Unary:
    op: str  # - + ~ !
    arg: Expr
    type: Scalar


@dataclass(frozen=True)
class Binary:
    op: str
    left: Expr
    right: Expr
    type: Scalar


@dataclass(frozen=True)
class Cond:
    test: Expr
    then: Expr
    other: Expr
    type: Scalar


@dataclass(frozen=True)
class Cast:
    type: Scalar
    arg: Expr


@dataclass(frozen=True)
class Call:
    function: str
    args: tuple[Expr, ...]
    type: Scalar


Expr = Num | Var | Load | Pointer | AddressOf | SameArray | Unary | Binary | Cond | Cast | Call


# Statements ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ArrayDecl:
    """A local array. `dims` are expressions; `init` is a flat or nested initialiser's text, "" for none."""

    name: str
    type: Scalar
    dims: tuple[Expr, ...]
    init: str = ""
    zeroed: bool = False  # an initialiser of zeros only, or calloc
    heap: bool = False  # came from malloc or calloc
    line: int = 0


@dataclass(frozen=True)
class Decl:
    """A local scalar without its value: an Assign follows where C had an initialiser."""

    name: str
    type: Scalar
    line: int = 0


@dataclass(frozen=True)
class Assign:
    """`target = value`, or `target op= value` where `op` is not empty."""

    target: Var | Load
    value: Expr
    op: str = ""
    line: int = 0


@dataclass(frozen=True)
class If:
    test: Expr
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class For:
    """A counted loop: `for (var = lo; var REL bound; var += step)`.

    `step` and `bound` do not change in the body, `var` is not assigned in it. `relation` is < <= > >= or !=.
    `own` is true where nothing outside the loop sees `var`. The loop also ends as soon as `extra` fails.
    """

    var: Var
    lo: Expr
    relation: str
    bound: Expr
    step: Expr
    body: tuple[Stmt, ...]
    own: bool = True
    line: int = 0
    extra: Expr | None = None

    @property
    def down(self) -> bool:
        return self.relation in (">", ">=") or (self.relation == "!=" and (constant(self.step) or 1) < 0)


@dataclass(frozen=True)
class While:
    test: Expr
    body: tuple[Stmt, ...]
    after: bool = False  # do ... while
    line: int = 0


@dataclass(frozen=True)
class Switch:
    value: Expr
    cases: tuple[
        tuple[str | None, tuple[Stmt, ...]], ...
    ]  # label's text, None for default; C's fall-through kept
    line: int = 0


@dataclass(frozen=True)
class Break:
    line: int = 0


@dataclass(frozen=True)
class Continue:
    line: int = 0


@dataclass(frozen=True)
class Return:
    value: Expr | None
    line: int = 0


@dataclass(frozen=True)
class CallStmt:
    """A device function called for its effect on what its pointer arguments point to."""

    call: Call
    line: int = 0


@dataclass(frozen=True)
class Swap:
    """Two array names exchange what they stand for."""

    left: str
    right: str
    line: int = 0


Stmt = ArrayDecl | Decl | Assign | If | For | While | Switch | Break | Continue | Return | CallStmt | Swap
Body = tuple[Stmt, ...]


# Walking ---------------------------------------------------------------------------------------------------
def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Load():
            return expr.index
        case Pointer():
            return (expr.offset,)
        case Unary() | Cast():
            return (expr.arg,)
        case Binary():
            return (expr.left, expr.right)
        case Cond():
            return (expr.test, expr.then, expr.other)
        case Call():
            return expr.args
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node, the root first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def rewrite(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Top down: where `change` gives an expression it stands instead, else the children are rewritten."""
    changed = change(expr)
    if changed is not None:
        return changed
    match expr:
        case Load():
            return replace(expr, index=tuple(rewrite(i, change) for i in expr.index))
        case Pointer():
            return replace(expr, offset=rewrite(expr.offset, change))
        case Unary() | Cast():
            return replace(expr, arg=rewrite(expr.arg, change))
        case Binary():
            return replace(expr, left=rewrite(expr.left, change), right=rewrite(expr.right, change))
        case Cond():
            test, then, other = (rewrite(e, change) for e in (expr.test, expr.then, expr.other))
            return Cond(test, then, other, expr.type)
        case Call():
            return replace(expr, args=tuple(rewrite(a, change) for a in expr.args))
        case _:
            return expr


def substitute(expr: Expr, values: dict[str, Expr]) -> Expr:
    """Scalars by name; an empty table gives the same tree."""

    def change(node: Expr) -> Expr | None:
        return values.get(node.name) if isinstance(node, Var) else None

    return rewrite(expr, change) if values else expr


def blocks(stmt: Stmt) -> tuple[Body, ...]:
    """The statement lists inside a statement."""
    match stmt:
        case If():
            return (stmt.then, stmt.other)
        case For() | While():
            return (stmt.body,)
        case Switch():
            return tuple(body for _, body in stmt.cases)
        case _:
            return ()


def with_blocks(stmt: Stmt, change: Callable[[Body], Body]) -> Stmt:
    """The same statement over changed inner lists."""
    match stmt:
        case If():
            return replace(stmt, then=change(stmt.then), other=change(stmt.other))
        case For():
            return replace(stmt, body=change(stmt.body))
        case While():
            return replace(stmt, body=change(stmt.body))
        case Switch():
            return replace(stmt, cases=tuple((label, change(body)) for label, body in stmt.cases))
        case _:
            return stmt


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of the statement itself (not of inner statements) that are read."""
    match stmt:
        case Assign():
            target = stmt.target.index if isinstance(stmt.target, Load) else ()
            own = (stmt.target,) if stmt.op else ()
            return (*target, *own, stmt.value)
        case If() | While():
            return (stmt.test,)
        case For():
            return (stmt.lo, stmt.bound, stmt.step, *((stmt.extra,) if stmt.extra is not None else ()))
        case Switch():
            return (stmt.value,)
        case Return():
            return (stmt.value,) if stmt.value is not None else ()
        case CallStmt():
            return (stmt.call,)
        case ArrayDecl():
            return stmt.dims
        case _:
            return ()


def map_expressions(stmt: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """The same statement with its expressions (and those of inner statements) changed; targets' names too."""
    match stmt:
        case Assign():
            target = change(stmt.target)
            assert isinstance(target, Var | Load), "a target stays a target"
            return replace(stmt, target=target, value=change(stmt.value))
        case If():
            stmt = replace(stmt, test=change(stmt.test))
        case While():
            stmt = replace(stmt, test=change(stmt.test))
        case For():
            extra = change(stmt.extra) if stmt.extra is not None else None
            stmt = replace(
                stmt, lo=change(stmt.lo), bound=change(stmt.bound), step=change(stmt.step), extra=extra
            )
        case Switch():
            stmt = replace(stmt, value=change(stmt.value))
        case Return() if stmt.value is not None:
            return replace(stmt, value=change(stmt.value))
        case CallStmt():
            call = change(stmt.call)
            assert isinstance(call, Call), "a call stays a call"
            return replace(stmt, call=call)
        case ArrayDecl():
            return replace(stmt, dims=tuple(change(d) for d in stmt.dims))
        case _:
            return stmt
    return with_blocks(stmt, lambda body: tuple(map_expressions(s, change) for s in body))


def walk_statements(body: Body) -> Iterator[Stmt]:
    """Every statement, outer ones first."""
    for stmt in body:
        yield stmt
        for inner in blocks(stmt):
            yield from walk_statements(inner)


def all_expressions(body: Body) -> Iterator[Expr]:
    """Every expression node that is read anywhere in the statements."""
    for stmt in walk_statements(body):
        for expr in expressions(stmt):
            yield from walk(expr)


def contains_loop(body: Body) -> bool:
    return any(isinstance(s, For | While) for s in walk_statements(body))


# Small builders, which fold constants so that emitted text stays as short as a person's ---------------------
def number(value: int, kind: Scalar = INT) -> Num:
    return Num(str(value), kind)


def constant(expr: Expr) -> int | None:
    """The value of an integer constant expression."""
    match expr:
        case Num():
            return expr.value
        case Unary(op="-"):
            value = constant(expr.arg)
            return None if value is None else -value
        case Unary(op="+"):
            return constant(expr.arg)
        case Cast() if expr.type.is_integer:
            return constant(expr.arg)
        case Binary():
            left, right = constant(expr.left), constant(expr.right)
            if left is None or right is None or not expr.type.is_integer:
                return None
            match expr.op:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case "<<":
                    return left << right if 0 <= right < 64 else None
                case ">>":
                    return left >> right if 0 <= right < 64 else None
                case "/":
                    return int(left / right) if right else None
                case "%":
                    return left - int(left / right) * right if right else None
        case _:
            pass
    return None


def add(left: Expr, right: Expr, kind: Scalar | None = None) -> Expr:
    if constant(left) == 0:
        return right
    value = constant(right)
    if value == 0:
        return left
    if (both := constant(left)) is not None and value is not None:
        return number(both + value, kind or INT)
    if value is not None and value < 0:
        return Binary("-", left, number(-value), kind or left.type)
    if value is not None and isinstance(left, Binary) and left.op in "+-":
        inner = constant(left.right)
        if inner is not None:
            return add(left.left, number((inner if left.op == "+" else -inner) + value), kind)
    return Binary("+", left, right, kind or common(left.type, right.type))


def sub(left: Expr, right: Expr) -> Expr:
    value = constant(right)
    if value is not None:
        return add(left, number(-value))
    if left == right:
        return number(0)
    return Binary("-", left, right, common(left.type, right.type))


def mul(left: Expr, right: Expr, kind: Scalar | None = None) -> Expr:
    if constant(left) == 1:
        return right
    if constant(right) == 1:
        return left
    both, value = constant(left), constant(right)
    if both == 0 or value == 0:
        return number(0)
    if both is not None and value is not None:
        return number(both * value)
    return Binary("*", left, right, kind or common(left.type, right.type))


def negate(test: Expr) -> Expr:
    """Logical not; comparisons of integers are turned, those of floats are not (NaN)."""
    flipped = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
    match test:
        case Unary(op="!"):
            return test.arg
        case Binary() if test.op in ("==", "!=") or (
            test.op in flipped and test.left.type.is_integer and test.right.type.is_integer
        ):
            return replace(test, op=flipped[test.op])
        case _:
            return Unary("!", test, INT)


def both(left: Expr, right: Expr) -> Expr:
    return Binary("&&", left, right, BOOL)

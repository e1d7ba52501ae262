"""Expressions and statements as CUDA text, the way a person would write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agent.translator.c.dataflow import flow_of
from agent.translator.c.syntax import (
    AddressOf,
    ArrayDecl,
    Assign,
    Binary,
    Body,
    Break,
    Call,
    CallStmt,
    Cast,
    Cond,
    Continue,
    Decl,
    Expr,
    For,
    If,
    Load,
    Num,
    Pointer,
    Return,
    SameArray,
    Stmt,
    Switch,
    Unary,
    Var,
    While,
    add,
    constant,
    mul,
    number,
    walk,
    walk_statements,
)
from agent.translator.c.types import Scalar

_PRECEDENCE = {
    "*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "==": 6, "!=": 6, "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1,
}  # fmt: skip
_CONDITIONAL, _UNARY, _PRIMARY = 0, 11, 12
#: Mixing these without parentheses is legal, and what compilers warn about.
_CONFUSING = {("&&", "||"), ("+", "<<"), ("-", "<<"), ("+", ">>"), ("-", ">>"), ("*", "<<"), ("*", ">>")}

Dims = Mapping[str, tuple[Expr | None, ...]]


@dataclass
class Printer:
    """Prints for one function. `dims`: extents of arrays; `shaped`: arrays declared with their dimensions."""

    dims: Dims
    shaped: frozenset[str]
    atomics: frozenset[str] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)  # arrays that stand under another name here
    exact: bool = False  # products are rounded before they are added, as C does (no fused multiply-add)
    changing: frozenset[str] = frozenset()  # scalars that change later, in code that is printed apart
    load: Callable[[Load], str | None] | None = None  # overrides how an element is read
    store: Callable[[Assign], list[str] | None] | None = None  # overrides an assignment

    # Expressions
    def expr(self, expr: Expr, outer: int = -1) -> str:
        """Text, in parentheses where the surroundings bind more tightly than `outer`."""
        text, own = self._expr(expr)
        return f"({text})" if own < outer else text

    def _expr(self, expr: Expr) -> tuple[str, int]:
        match expr:
            case Num():
                return expr.text, _PRIMARY if not expr.text.startswith("-") else _UNARY
            case Var():
                return expr.name, _PRIMARY
            case Load():
                return self.element(expr), _PRIMARY
            case Pointer():
                base = self.names.get(expr.array, expr.array)
                if constant(expr.offset) == 0:
                    return base, _PRIMARY
                return f"{base} + {self.expr(expr.offset, 10)}", 9
            case AddressOf():
                return f"&{expr.name}", _UNARY
            case SameArray():
                return f"{expr.left} == {expr.right}", _PRECEDENCE["=="]
            case Unary():
                inner = self.expr(expr.arg, _UNARY)
                space = "" if not inner.startswith(expr.op) else " "
                return f"{expr.op}{space}{inner}", _UNARY
            case Cast():
                return f"({expr.type.name}){self.expr(expr.arg, _UNARY)}", _UNARY
            case Cond():
                test = self.expr(expr.test, 1)
                return f"{test} ? {self.expr(expr.then, 1)} : {self.expr(expr.other, 0)}", _CONDITIONAL
            case Call():
                return f"{expr.function}({', '.join(self.expr(a) for a in expr.args)})", _PRIMARY
            case Binary():
                return self._binary(expr)

    def _binary(self, expr: Binary) -> tuple[str, int]:
        own = _PRECEDENCE[expr.op]
        summed = self.exact and expr.op in ("+", "-") and expr.type.is_float
        left = self._term(expr.left, expr.type, own) if summed else self.expr(expr.left, own)
        # The right operand keeps its parentheses at equal precedence: floating point is not associative.
        right = self._term(expr.right, expr.type, own + 1) if summed else self.expr(expr.right, own + 1)
        for side, inner in (("left", expr.left), ("right", expr.right)):
            if isinstance(inner, Binary) and (inner.op, expr.op) in _CONFUSING:
                if side == "left" and not left.startswith("("):
                    left = f"({left})"
                elif side == "right" and not right.startswith("("):
                    right = f"({right})"
        return f"{left} {expr.op} {right}", own

    def _term(self, expr: Expr, kind: Scalar, outer: int) -> str:
        """A term of a sum, as a product that cannot be fused into it."""
        if isinstance(expr, Unary) and expr.op == "-" and isinstance(expr.arg, Binary) and expr.arg.op == "*":
            return f"-{self._term(expr.arg, kind, _UNARY)}"
        if isinstance(expr, Binary) and expr.op == "*" and expr.type == kind and kind.is_float:
            name = "__fmul_rn" if kind.name == "float" else "__dmul_rn"
            return f"{name}({self.expr(expr.left)}, {self.expr(expr.right)})"
        return self.expr(expr, outer)

    def element(self, load: Load) -> str:
        if self.load is not None and (text := self.load(load)) is not None:
            return text
        name = self.names.get(load.array, load.array)
        if load.array in self.shaped:
            dims = self.dims.get(load.array, ())
            if len(load.index) == len(dims):
                return name + "".join(f"[{self.expr(i)}]" for i in load.index)
            if len(dims) > 1:
                return f"(&{name}{'[0]' * len(dims)})[{self.expr(load.index[0])}]"
        return f"{name}[{self.expr(self.flat(load))}]"

    def flat(self, load: Load) -> Expr:
        """The index as one number."""
        if len(load.index) == 1:
            return load.index[0]
        dims = self.dims.get(load.array, ())
        total: Expr = load.index[0]
        for level in range(1, len(load.index)):
            extent = dims[level]
            assert extent is not None, "only the outermost extent may be unknown"
            if constant(extent) is None and level == 1 and total.type.size < 8 and constant(total) is None:
                total = Cast(Scalar("long long"), total)
            total = add(mul(total, extent), load.index[level])
        return total

    # Statements
    def body(self, body: Body, indent: int = 1) -> list[str]:
        """Lines. A declaration and the assignment after it become one line."""
        lines: list[str] = []
        position = 0
        while position < len(body):
            stmt = body[position]
            merged = self._initialised(body, position)
            if merged is not None:
                text, skip = merged
                lines += _indented(text, indent)
                position += skip
                continue
            lines += _indented(self.statement(stmt), indent)
            position += 1
        return lines

    def _initialised(self, body: Body, position: int) -> tuple[list[str], int] | None:
        """(lines, statements taken) for a declaration that its first assignment can absorb."""
        stmt = body[position]
        if not isinstance(stmt, Decl):
            return None
        for ahead in range(position + 1, len(body)):
            later = body[ahead]
            if isinstance(later, Assign) and later.target == Var(stmt.name, stmt.type) and not later.op:
                if any(isinstance(n, Var) and n.name == stmt.name for n in walk(later.value)):
                    return None
                if ahead != position + 1:
                    return None
                changes = sum(stmt.name in flow_of(s).written for s in body[ahead + 1 :])
                const = "const " if not changes and stmt.name not in self.changing else ""
                value = self.expr(later.value)
                return [f"{const}{stmt.type.name} {stmt.name} = {value};"], ahead - position + 1
            if isinstance(later, Decl):
                continue
            break
        return None

    def statement(self, stmt: Stmt) -> list[str]:
        match stmt:
            case Decl():
                return [f"{stmt.type.name} {stmt.name};"]
            case ArrayDecl():
                extents = "".join(f"[{self.expr(d)}]" for d in stmt.dims)
                return [f"{stmt.type.name} {stmt.name}{extents}{' = {}' if stmt.zeroed else ''};"]
            case Assign():
                return self.assign(stmt)
            case If():
                return self._if(stmt)
            case For():
                return [f"{self.for_header(stmt)} {{", *self.body(stmt.body), "}"]
            case While(after=True):
                return ["do {", *self.body(stmt.body), f"}} while ({self.expr(stmt.test)});"]
            case While():
                test = "true" if constant(stmt.test) else self.expr(stmt.test)
                return [f"while ({test}) {{", *self.body(stmt.body), "}"]
            case Switch():
                lines = [f"switch ({self.expr(stmt.value)}) {{"]
                for label, case in stmt.cases:
                    lines.append(f"case {label}: {{" if label is not None else "default: {")
                    lines += [*self.body(case), "}"]
                return [*lines, "}"]
            case Break():
                return ["break;"]
            case Continue():
                return ["continue;"]
            case Return():
                return [f"return {self.expr(stmt.value)};" if stmt.value is not None else "return;"]
            case CallStmt():
                return [self.expr(stmt.call) + ";"]
            case _:
                raise AssertionError(f"{type(stmt).__name__} belongs to host code")

    def assign(self, stmt: Assign) -> list[str]:
        if self.store is not None and (lines := self.store(stmt)) is not None:
            return lines
        if isinstance(stmt.target, Load) and stmt.target.array in self.atomics and stmt.op:
            return [self._atomic(stmt)]
        target = self.expr(stmt.target)
        if stmt.op in ("+", "-") and constant(stmt.value) == 1 and stmt.target.type.is_integer:
            return [f"{stmt.op * 2}{target};"]
        if self.exact and stmt.op in ("+", "-") and stmt.target.type.is_float:
            return [f"{target} {stmt.op}= {self._term(stmt.value, stmt.target.type, -1)};"]
        return [f"{target} {stmt.op}= {self.expr(stmt.value)};"]

    def _atomic(self, stmt: Assign) -> str:
        assert isinstance(stmt.target, Load), "atomics are for memory"
        return atomic_update(self.element(stmt.target), stmt.target.type, stmt.op, self.expr(stmt.value))

    def _if(self, stmt: If) -> list[str]:
        lines = [f"if ({self.expr(stmt.test)}) {{", *self.body(stmt.then)]
        other = stmt.other
        if len(other) == 1 and isinstance(other[0], If):
            inner = self._if(other[0])
            return [*lines, f"}} else {inner[0]}", *inner[1:]]
        if other:
            lines += ["} else {", *self.body(other)]
        return [*lines, "}"]

    def for_header(self, loop: For) -> str:
        name, step = loop.var.name, constant(loop.step)
        own = f"{loop.var.type.name} " if loop.own else ""
        if loop.relation == ">=" and not loop.var.type.signed and constant(loop.bound) == 0 and step == -1:
            return f"for ({own}{name} = {self.expr(add(loop.lo, number(1)))}; {name}-- > 0;)"
        if step is not None and abs(step) == 1:
            advance = f"{'++' if step > 0 else '--'}{name}"
        elif step is not None:
            advance = f"{name} {'+' if step > 0 else '-'}= {abs(step)}"
        elif isinstance(loop.step, Unary) and loop.step.op == "-":
            advance = f"{name} -= {self.expr(loop.step.arg)}"
        else:
            advance = f"{name} += {self.expr(loop.step)}"
        bound = self.expr(loop.bound, 8)
        if loop.extra is not None:
            bound += f" && {self.expr(loop.extra, 2)}"
        return f"for ({own}{name} = {self.expr(loop.lo)}; {name} {loop.relation} {bound}; {advance})"


def atomic_update(place: str, kind: Scalar, op: str, value: str) -> str:
    """`place op= value`, by an atomic function."""
    name = {"+": "atomicAdd", "-": "atomicAdd", "&": "atomicAnd", "|": "atomicOr", "^": "atomicXor"}[op]
    if op == "-":
        value = f"-({value})"
    address = f"&{place}"
    if kind.is_integer and kind.size == 8:
        return f"{name}((unsigned long long *){address}, (unsigned long long)({value}));"
    if kind.is_float:
        return f"{name}({address}, ({kind.name})({value}));"
    return f"{name}({address}, {value});"


def _indented(lines: list[str], indent: int) -> list[str]:
    return ["    " * indent + line if line else line for line in lines]


def private_scalars(body: Body, types: Mapping[str, Var], own: frozenset[str]) -> list[Var]:
    """Scalars that the code writes without declaring them."""
    written: dict[str, Var] = {}
    for stmt in walk_statements(body):
        if isinstance(stmt, Assign) and isinstance(stmt.target, Var):
            written[stmt.target.name] = stmt.target
        elif isinstance(stmt, For) and not stmt.own:
            written[stmt.var.name] = stmt.var
        for name in flow_of(stmt).written if not isinstance(stmt, For | If | While | Switch) else ():
            written.setdefault(name, types.get(name, Var(name, Scalar("int"))))
    return [v for n, v in written.items() if n not in own]

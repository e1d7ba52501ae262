"""Allocations, memory functions and swaps of pointers, lowered."""

from __future__ import annotations

from typing import Any

from pycparser import c_ast

from agent.translator.c.expressions import Expressions
from agent.translator.c.problems import line_of, unsupported
from agent.translator.c.scope import (
    Array,
    Place,
    PointerVar,
)
from agent.translator.c.syntax import (
    ArrayDecl,
    Assign,
    Binary,
    Cast,
    Expr,
    For,
    Load,
    Num,
    Var,
    add,
    constant,
    number,
)
from agent.translator.c.types import INT, SIZE, VOID, Scalar


class Memory(Expressions):
    """The part of lowering that knows malloc, memset, memcpy and swaps. `Declarations` adds binding."""

    swapped: set[str]  # C names of pointers that a swap exchanges

    # Swaps
    def find_swaps(self, body: Any) -> None:
        """Names that the three statements of a swap exchange, anywhere in the function."""

        def visit(node: Any) -> None:
            items = getattr(node, "block_items", None) or []
            for position in range(len(items)):
                names = _swap(items[position : position + 4])
                if names is not None:
                    self.swapped |= set(names[:2])
            for _, child in node.children():
                visit(child)

        visit(body)

    def swap_at(self, nodes: list[Any], position: int) -> int:
        """How many statements a swap at this position takes; 0 for none."""
        found = _swap(nodes[position : position + 4])
        if found is None:
            return 0
        left, right, length = found
        first, second = self.find(c_ast.ID(left)), self.find(c_ast.ID(right))
        if not isinstance(first, Array) or not isinstance(second, Array):
            return 0
        self.pointer_swap(first.name, second.name, line_of(nodes[position]))
        return length

    def pointer_swap(self, left: str, right: str, line: int) -> None:
        raise NotImplementedError

    # Memory functions
    def _allocation(self, node: Any) -> Any:
        while isinstance(node, c_ast.Cast):
            node = node.expr
        if (
            isinstance(node, c_ast.FuncCall)
            and isinstance(node.name, c_ast.ID)
            and node.name.name
            in (
                "malloc",
                "calloc",
            )
        ):
            return node
        return None

    def _allocate(self, c_name: str, pointer: PointerVar, node: Any, line: int) -> None:
        call = self._allocation(node)
        args = call.args.exprs
        if call.name.name == "calloc":
            count: Expr = self.elements(
                Binary("*", self.value(args[0]), self.value(args[1]), SIZE), pointer.type
            )
        else:
            count = self.elements(self.value(args[0]), pointer.type)
        if not isinstance(count, Var | Num):
            count = self.temporary(f"{c_name}_size", count, line)
        name = self.fresh(c_name)
        array = Array(name, pointer.type)
        zeroed = call.name.name == "calloc"
        self.out.append(ArrayDecl(name, pointer.type, (count,), zeroed=zeroed, heap=True, line=line))
        if c_name in self.swapped:
            for scope in reversed(self.scopes):
                if c_name in scope or scope is self.scopes[0]:
                    scope[c_name] = array
                    return
        pointer.place, pointer.offset = Place(array, (), number(0)), None
        for scope in reversed(self.scopes):
            if scope.get(c_name) is pointer:
                scope[c_name] = array
                return
        self.scopes[-1][c_name] = array

    def elements(self, size: Expr, kind: Scalar) -> Expr:
        """Bytes as elements of a type: `n * sizeof(float)` -> `n`."""
        bytes_known = constant(size)
        if bytes_known is not None:
            return number(bytes_known // kind.size)
        if kind.size == 1:
            return size
        stripped = _without_factor(size, kind.size)
        return stripped if stripped is not None else Binary("/", size, number(kind.size, SIZE), SIZE)

    def call_memory(self, node: Any, name: str, args: list[Any]) -> Expr:
        line = line_of(node)
        if name in ("free", "assert", "__assert_fail", "unreachable"):
            return number(0, VOID)
        if name == "expect":
            return self.value(args[0])
        target = self.place(args[0])
        if target is None:
            unsupported(node, f"`{name}` on something that is not an array")
        kind = target.array.type
        count = self.elements(self.value(args[2]), kind)
        index = Var(self.fresh("k"), count.type if isinstance(count.type, Scalar) else INT)
        if isinstance(count, Cast):
            count = count.arg
            index = Var(index.name, count.type)
        flat = add(self.flat(target), index)
        to = Load(target.array.name, (flat,), kind)
        if name == "memset":
            byte = constant(self.value(args[1]))
            if byte != 0 and kind.size != 1:
                unsupported(node, "`memset` of wider elements to bytes other than 0")
            value: Expr = number(byte or 0)
            if kind.size == 1 and byte is None:
                value = self.value(args[1])
        else:
            source = self.place(args[1])
            if source is None or source.array.type != kind:
                unsupported(node, f"`{name}` between arrays of different types")
            value = Load(source.array.name, (add(self.flat(source), index),), kind)
        self.out.append(
            For(index, number(0), "<", count, number(1), (Assign(to, value, line=line),), True, line)
        )
        return number(0, VOID)


def _without_factor(expr: Expr, factor: int) -> Expr | None:
    if isinstance(expr, Cast):
        return _without_factor(expr.arg, factor)
    if not isinstance(expr, Binary) or expr.op != "*":
        return None
    for side, other in ((expr.left, expr.right), (expr.right, expr.left)):
        value = constant(side)
        if value == factor:
            return other.arg if isinstance(other, Cast) and other.type == SIZE else other
        if value is not None and value % factor == 0:
            return Binary("*", other, number(value // factor), other.type)
        inner = _without_factor(side, factor)
        if inner is not None:
            inner_plain, other_plain = (
                e.arg if isinstance(e, Cast) and e.type == SIZE else e for e in (inner, other)
            )
            return Binary("*", inner_plain, other_plain, inner_plain.type)
    return None


def _swap(nodes: list[Any]) -> tuple[str, str, int] | None:
    """`T *t = a; a = b; b = t;` with the temporary declared here or before."""
    if len(nodes) < 3:
        return None
    first, second, third = nodes[:3]
    if (
        isinstance(first, c_ast.Decl)
        and isinstance(first.type, c_ast.PtrDecl)
        and isinstance(first.init, c_ast.ID)
    ):
        temporary, left = first.name, first.init.name
    elif isinstance(first, c_ast.Assignment) and _names(first) is not None:
        temporary, left = _names(first) or ("", "")
    else:
        return None
    middle, last = _names(second), _names(third)
    if middle is None or last is None or middle[0] != left or last != (middle[1], temporary):
        return None
    return left, middle[1], 3


def _names(node: Any) -> tuple[str, str] | None:
    if (
        isinstance(node, c_ast.Assignment)
        and node.op == "="
        and isinstance(node.lvalue, c_ast.ID)
        and isinstance(node.rvalue, c_ast.ID)
    ):
        return node.lvalue.name, node.rvalue.name
    return None

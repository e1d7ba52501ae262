"""Names, places in arrays and structs: what C expressions point at, resolved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pycparser import c_ast

from agent.translator.c.problems import line_of, unsupported
from agent.translator.c.scope import Array, Place, PointerVar, StructVar, Symbol, Unit
from agent.translator.c.syntax import (
    Assign,
    Body,
    Decl,
    Expr,
    Load,
    Stmt,
    Unary,
    Var,
    add,
    constant,
    mul,
    number,
)
from agent.translator.c.types import VOID


class Places:
    """The part of lowering that knows names and pointers. `Expressions` adds values."""

    aliases: dict[str, str]  # pointers that loops swap: name -> first array

    def value(self, node: Any) -> Expr:
        raise NotImplementedError

    def assignment(self, node: Any) -> Expr:
        raise NotImplementedError

    def __init__(self, unit: Unit, taken: set[str]):
        self.unit = unit
        self.scopes: list[dict[str, Symbol]] = [{}]
        self.taken = taken
        self.out: list[Stmt] = []
        self.post: list[Stmt] = []  # increments that happen after the full expression
        self.inlining: list[str] = []  # the functions whose bodies are being inlined, for recursion

    # Names
    def fresh(self, wanted: str) -> str:
        """A name nothing else has."""
        name, count = wanted, 2
        while name in self.taken:
            name, count = f"{wanted}_{count}", count + 1
        self.taken.add(name)
        return name

    def find(self, node: Any) -> Symbol:
        name = node.name
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return self.global_name(node)

    def global_name(self, node: Any) -> Symbol:
        raise NotImplementedError

    def temporary(self, wanted: str, value: Expr, line: int = 0) -> Var:
        var = Var(self.fresh(wanted), value.type)
        self.out += [Decl(var.name, var.type, line), Assign(var, value, line=line)]
        return var

    def captured(self, lower: Callable[[], Expr]) -> tuple[Body, Expr, Body]:
        """Statements before, value, statements after, of something lowered aside."""
        saved_out, saved_post, self.out, self.post = self.out, self.post, [], []
        value = lower()
        before, after, self.out, self.post = tuple(self.out), tuple(self.post), saved_out, saved_post
        return before, value, after

    # Structs
    def struct(self, node: Any) -> StructVar | None:
        """The struct that an expression is, None where it is none."""
        match node:
            case c_ast.ID():
                symbol = self.find(node)
                return symbol if isinstance(symbol, StructVar) else None
            case c_ast.UnaryOp(op="&" | "*"):
                return self.struct(node.expr)
            case c_ast.FuncCall() if self.gives_struct(node):
                return self.call_struct(node)
            case _:
                return None

    def gives_struct(self, node: Any) -> bool:
        function = self.unit.functions.get(getattr(node.name, "name", ""))
        return function is not None and self.unit.declared(function.decl.type.type).kind == "struct"

    def call_struct(self, node: Any) -> StructVar:
        raise NotImplementedError

    def field(self, node: Any) -> Var | Array:
        whole = self.struct(node.name)
        if whole is None or node.field.name not in whole.fields:
            unsupported(node, f"`{node.field.name}` of something that is not a local struct")
        return whole.fields[node.field.name]

    def copy_struct(self, node: Any, to: StructVar, source: StructVar) -> None:
        """Field by field."""
        for name, field in to.fields.items():
            other = source.fields[name]
            if isinstance(field, Array) or isinstance(other, Array):
                unsupported(node, f"a struct copied with the array `{name}` in it")
            self.out.append(Assign(field, other, line=line_of(node)))

    # Places
    def place(self, node: Any) -> Place | None:
        """The pointer value of an expression, None where it is a number."""
        match node:
            case c_ast.ID():
                symbol = self.find(node)
                if isinstance(symbol, Array):
                    return Place(symbol, (), number(0))
                if isinstance(symbol, PointerVar):
                    return self.pointer_place(node, symbol)
                return None
            case c_ast.StructRef():
                field = self.field(node)
                return Place(field, (), number(0)) if isinstance(field, Array) else None
            case c_ast.ArrayRef():
                if not self.is_pointer(node):
                    return None
                return self._subscript(node)
            case c_ast.UnaryOp(op="&"):
                if isinstance(node.expr, c_ast.ArrayRef | c_ast.UnaryOp):
                    at = self._subscript(node.expr)
                    return Place(at.array, at.indices[:-1], at.indices[-1])
                return None
            case c_ast.UnaryOp(op="*"):
                return self._subscript(node) if self.is_pointer(node) else None
            case c_ast.UnaryOp(op="p++" | "p--" | "++" | "--"):
                return self._step_pointer(node)
            case c_ast.BinaryOp(op="+" | "-"):
                left = self.place(node.left)
                if left is not None:
                    if self.is_pointer(node.right):
                        return None
                    step = self.value(node.right)
                    if node.op == "-":
                        step = (
                            Unary("-", step, step.type)
                            if constant(step) is None
                            else number(-(constant(step) or 0))
                        )
                    return Place(left.array, left.indices, add(left.plus, step))
                right = self.place(node.right) if node.op == "+" and self.is_pointer(node.right) else None
                if right is not None:
                    return Place(right.array, right.indices, add(self.value(node.left), right.plus))
                return None
            case c_ast.Cast():
                return self._cast_place(node)
            case c_ast.Assignment() if self.is_pointer(node.lvalue):
                self.assignment(node)
                return self.place(node.lvalue)
            case c_ast.TernaryOp() if self.is_pointer(node.iftrue):
                unsupported(
                    node, "a pointer chosen by a condition: the accesses behind it cannot be analysed"
                )
            case _:
                return None

    def is_pointer(self, node: Any) -> bool:
        """Whether an expression is a pointer, without lowering it."""
        match node:
            case c_ast.ID():
                return isinstance(self.find(node), Array | PointerVar)
            case c_ast.StructRef():
                return isinstance(self.field(node), Array)
            case c_ast.ArrayRef():
                depth, base = 0, node
                while isinstance(base, c_ast.ArrayRef):
                    depth, base = depth + 1, base.name
                dims = self._rank(base)
                return dims is not None and depth < dims
            case c_ast.UnaryOp(op="&"):
                return not (isinstance(node.expr, c_ast.ID) and isinstance(self.find(node.expr), Var))
            case c_ast.UnaryOp(op="*"):
                dims = self._rank(node.expr)
                return dims is not None and dims > 1
            case c_ast.UnaryOp(op="p++" | "p--" | "++" | "--"):
                return self.is_pointer(node.expr)
            case c_ast.BinaryOp(op="+" | "-"):
                left, right = self.is_pointer(node.left), self.is_pointer(node.right)
                return left != right
            case c_ast.Cast():
                return isinstance(node.to_type.type, c_ast.PtrDecl)
            case c_ast.Assignment():
                return self.is_pointer(node.lvalue)
            case c_ast.TernaryOp():
                return self.is_pointer(node.iftrue)
            case _:
                return False

    def _rank(self, node: Any) -> int | None:
        if isinstance(node, c_ast.ID):
            symbol = self.find(node)
            if isinstance(symbol, Array):
                return len(symbol.dims)
            if isinstance(symbol, PointerVar):
                return len(symbol.place.array.dims) if symbol.place and symbol.offset is None else 1
        if isinstance(node, c_ast.StructRef):
            field = self.field(node)
            return len(field.dims) if isinstance(field, Array) else None
        return 1 if self.is_pointer(node) else None

    def pointer_place(self, node: Any, pointer: PointerVar) -> Place:
        if pointer.place is None:
            unsupported(node, f"the pointer `{pointer.name}` is used before it points anywhere")
        if pointer.offset is None:
            return pointer.place
        flat = Array(pointer.place.array.name, pointer.place.array.type)
        return Place(flat, (), pointer.offset)

    def _step_pointer(self, node: Any) -> Place | None:
        """`p++` and its kin."""
        if not self.is_pointer(node.expr):
            return None
        symbol = self.find(node.expr) if isinstance(node.expr, c_ast.ID) else None
        if not isinstance(symbol, PointerVar):
            unsupported(node, "an increment of this pointer: only local pointers can walk")
        before = self.pointer_place(node, symbol)
        if symbol.offset is None:
            unsupported(node, f"an increment of `{symbol.name}`: only pointers into one array can walk")
        change = Assign(symbol.offset, number(1), "+" if "++" in node.op else "-", line_of(node))
        if node.op.startswith("p"):
            self.post.append(change)
            return before
        self.out.append(change)
        return before

    def _subscript(self, node: Any) -> Place:
        """`a[i]`, `*p`: one level further down."""
        if isinstance(node, c_ast.ArrayRef):
            base, index = self.place(node.name), node.subscript
            if base is None:
                base, index = self.place(node.subscript), node.name
            below = None if base is None else self.value(index)
        elif isinstance(node, c_ast.UnaryOp) and node.op == "*":
            base, below = self.place(node.expr), number(0)
        else:
            unsupported(node, "this is taken as an array, but is none")
        if base is None or below is None:
            unsupported(
                node, "a subscript on something that is not an array the function was given or declared"
            )
        return Place(base.array, (*base.indices, add(base.plus, below)), number(0))

    def _load(self, node: Any, at: Place) -> Load | Var:
        if not at.array.dims:  # a pointer to a local variable, in an inlined function
            return Var(at.array.name, at.array.type)
        if len(at.indices) != len(at.array.dims):
            unsupported(node, f"a row of `{at.array.name}` used as a number")
        return Load(at.array.name, at.indices, at.array.type)

    def flat(self, at: Place) -> Expr:
        """Elements from the start of the array."""
        dims = at.array.dims
        levels = list(at.indices)
        if len(levels) < len(dims):
            levels.append(at.plus)
        total: Expr = number(0)
        for level, dim in enumerate(dims):
            if level:
                assert dim is not None, "only the outermost extent may be unknown"
                total = mul(total, dim)
            if level < len(levels):
                total = add(total, levels[level])
        return total

    def _cast_place(self, node: Any) -> Place | None:
        declared = self.unit.declared(node.to_type.type)
        if declared.kind != "pointer":
            return None
        at = self.place(node.expr)
        if at is None:
            return None
        if declared.type not in (VOID, at.array.type):
            unsupported(
                node,
                f"`{at.array.name}` read through a pointer to {declared.type.name}: "
                "reinterpreted bytes are not translated",
            )
        if len(declared.dims) > 1 and constant(self.flat(at)) == 0:
            dims = (None, *(self.value(d) for d in declared.dims[1:]))
            return Place(Array(at.array.name, at.array.type, dims), (), number(0))
        return at

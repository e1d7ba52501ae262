"""Declarations, pointers and memory functions lowered."""

from __future__ import annotations

from typing import Any

from pycparser import c_ast, c_generator

from agent.translator.c.expressions import convert
from agent.translator.c.library import CONSTANTS
from agent.translator.c.memory import Memory
from agent.translator.c.problems import line_of, unsupported
from agent.translator.c.scope import (
    Array,
    ConstantName,
    Declared,
    Place,
    PointerVar,
    StructVar,
    Symbol,
    Table,
    is_const,
)
from agent.translator.c.syntax import (
    ArrayDecl,
    Assign,
    Call,
    Decl,
    Expr,
    Load,
    Num,
    Var,
    constant,
    number,
)
from agent.translator.c.types import INT, LONG, SIZE, VOID, Scalar


class Declarations(Memory):
    """The part of lowering that binds names."""

    def __init__(self, unit: Any, taken: set[str]):
        super().__init__(unit, taken)
        self.tables: list[Table] = []
        self.table_names: dict[str, Symbol] = {}
        self.helpers: dict[str, Any] = {}
        self.swapped: set[str] = set()  # C names of pointers that a swap exchanges
        self.aliases: dict[str, str] = {}

    # File scope
    def global_name(self, node: Any) -> Symbol:
        name = node.name
        if name in self.table_names:
            return self.table_names[name]
        if name in self.unit.constants:
            symbol = self.constant_symbol(self.unit.constants[name])
        elif name in self.unit.enums:
            symbol = ConstantName(self._enumerator(name))
        elif name in CONSTANTS:
            symbol = ConstantName(CONSTANTS[name])
        elif name in self.unit.mutable:
            decl = self.unit.mutable[name]
            if decl.init is None or "extern" in (decl.storage or []):
                unsupported(
                    node, f"the global variable `{name}`: its value outlives the call; pass it as a parameter"
                )
            symbol = self.constant_symbol(decl)  # never assigned: assignments to tables are refused
        else:
            unsupported(node, f"`{name}` is not declared in this file")
        self.table_names[name] = symbol
        return symbol

    def _enumerator(self, name: str) -> Num:
        entry = self.unit.enums[name]
        if entry is None:
            return number(0)
        if isinstance(entry, str):
            return number((self._enumerator(entry).value or 0) + 1)
        value = constant(self.value(entry))
        return number(value or 0)

    def constant_symbol(self, decl: Any) -> Symbol:
        """A constant scalar becomes its value, a constant array a table."""
        declared = self.unit.declared(decl.type)
        if declared.kind == "scalar":
            if decl.init is None:
                unsupported(decl, f"the constant `{decl.name}` without a value")
            _, value, _ = self.captured(lambda: self.value(decl.init))
            known = constant(value)
            if known is not None and declared.type.is_integer:
                return ConstantName(number(known, declared.type))
            if isinstance(value, Num) and value.type == declared.type:
                return ConstantName(value)
            return ConstantName(convert(value, declared.type))
        if declared.kind == "pointer" or decl.init is None:
            unsupported(
                decl, f"the file-level pointer or array `{decl.name}`: only constant tables are translated"
            )
        name = self.fresh(decl.name)
        dims: list[Expr | None] = []
        init = decl.init
        for dim in declared.dims:
            if dim is not None:
                known = constant(self.value(dim))
                dims.append(number(known) if known is not None else self.value(dim))
            else:
                dims.append(number(len(init.exprs)))
        array = Array(name, declared.type, tuple(dims))
        self.tables.append(Table(array, self._text(init)))
        return array

    def _text(self, init: Any) -> str:
        """An initialiser as it stands, with names of constants replaced."""
        if isinstance(init, c_ast.InitList):
            return "{" + ", ".join(self._text(e) for e in init.exprs) + "}"
        if isinstance(init, c_ast.NamedInitializer):
            unsupported(init, "a designated initialiser")
        _, value, _ = self.captured(lambda: self.value(init))
        known = constant(value)
        if known is not None:
            return str(known)
        return str(c_generator.CGenerator().visit(init))

    # Locals
    def declaration(self, node: Any) -> None:
        if isinstance(node.type, c_ast.FuncDecl):
            return
        if node.name is None:
            self.unit._enumerate(node.type)
            return
        storage = node.storage or []
        if "static" in storage or "extern" in storage:
            if not is_const(node):
                unsupported(node, f"the static variable `{node.name}`: its value outlives the call")
            self.scopes[-1][node.name] = self.constant_symbol(node)
            return
        declared = self.unit.declared(node.type)
        line = line_of(node)
        match declared.kind:
            case "scalar":
                self._scalar(node, declared.type, line)
            case "array":
                self._array(node, declared, line)
            case "struct":
                self._struct(node, declared)
            case "struct pointer":
                whole = self.struct(node.init) if node.init is not None else None
                if whole is None:
                    unsupported(node, f"the pointer `{node.name}`: it does not point at a local struct")
                self.scopes[-1][node.name] = whole
            case _:
                self._pointer(node, declared, line)

    def _scalar(self, node: Any, kind: Scalar, line: int) -> None:
        value = self.value(node.init) if node.init is not None else None
        var = Var(self.fresh(node.name), kind)
        self.scopes[-1][node.name] = var
        self.out.append(Decl(var.name, kind, line))
        if value is not None:
            self.out.append(Assign(var, value, line=line))
        self.flush()

    def new_struct(self, name: str, declared: Declared, line: int) -> StructVar:
        """Declares a variable for each field."""
        fields: dict[str, Var | Array] = {}
        for field, kind in declared.fields:
            own = self.fresh(f"{name}_{field}")
            if kind.kind == "scalar":
                fields[field] = Var(own, kind.type)
                self.out.append(Decl(own, kind.type, line))
            else:
                dims = tuple(number(constant(self.value(d)) or 0) for d in kind.dims)
                fields[field] = Array(own, kind.type, dims)
                self.out.append(ArrayDecl(own, kind.type, dims, line=line))
        return StructVar(name, fields)

    def _struct(self, node: Any, declared: Declared) -> None:
        line = line_of(node)
        given: StructVar | None = None
        if node.init is not None and not isinstance(node.init, c_ast.InitList):
            given = self.struct(node.init)
        whole = self.new_struct(node.name, declared, line)
        if isinstance(node.init, c_ast.InitList):
            order = list(whole.fields.values())
            for position, field in enumerate(order):
                init = node.init.exprs[position] if position < len(node.init.exprs) else None
                if isinstance(init, c_ast.NamedInitializer):
                    field, init = whole.fields[init.name[0].name], init.expr
                if isinstance(field, Array):
                    self._fill(field, (), init if init is not None else c_ast.InitList([]), line)
                else:
                    value = self.value(init) if init is not None else number(0)
                    self.out.append(Assign(field, value, line=line))
        elif given is not None:
            self.copy_struct(node, whole, given)
        elif node.init is not None:
            unsupported(node, f"what `{node.name}` is set to: not a struct")
        self.scopes[-1][node.name] = whole
        self.flush()

    def _array(self, node: Any, declared: Any, line: int) -> None:
        dims: list[Expr] = []
        for dim in declared.dims:
            if dim is None:
                assert node.init is not None, "C wants an extent or an initialiser"
                dims.append(number(len(node.init.exprs)))
                continue
            value = self.value(dim)
            known = constant(value)
            if known is not None:
                value = number(known)
            elif not isinstance(value, Var | Num):
                value = self.temporary(f"{node.name}_size", value, line)
            dims.append(value)
        name = self.fresh(node.name)
        self.scopes[-1][node.name] = Array(name, declared.type, tuple(dims))
        if is_const(node) and node.init is not None:
            try_table = all(constant(d) is not None for d in dims) and self._is_constant(node.init)
            if try_table:
                self.tables.append(Table(Array(name, declared.type, tuple(dims)), self._text(node.init)))
                return
        zeroed = node.init is not None and _all_zero(node.init)
        self.out.append(ArrayDecl(name, declared.type, tuple(dims), zeroed=zeroed, line=line))
        if node.init is not None and not zeroed:
            self._fill(Array(name, declared.type, tuple(dims)), (), node.init, line)

    def _is_constant(self, init: Any) -> bool:
        match init:
            case c_ast.InitList():
                return all(self._is_constant(e) for e in init.exprs)
            case c_ast.Constant():
                return True
            case c_ast.UnaryOp(op="-" | "+"):
                return self._is_constant(init.expr)
            case c_ast.BinaryOp():
                return self._is_constant(init.left) and self._is_constant(init.right)
            case _:
                return False

    def _fill(self, array: Array, indices: tuple[Expr, ...], init: Any, line: int) -> None:
        """An initialiser as assignments; what it does not mention is zero."""
        level = len(indices)
        extent = constant(array.dims[level] or number(0))
        if extent is None or extent > 256:
            unsupported(init, f"the initialiser of `{array.name}`: too long to write out")
        for position in range(extent):
            at = (*indices, number(position))
            given = (
                init.exprs[position]
                if isinstance(init, c_ast.InitList) and position < len(init.exprs)
                else None
            )
            if level + 1 < len(array.dims):
                self._fill(array, at, given if given is not None else c_ast.InitList([]), line)
            else:
                value = self.value(given) if given is not None else number(0)
                self.out.append(Assign(Load(array.name, at, array.type), value, line=line))

    # Pointers
    def _pointer(self, node: Any, declared: Any, line: int) -> None:
        pointer = PointerVar(node.name, declared.type)
        if node.init is None:
            self.scopes[-1][node.name] = pointer
            return
        if self._allocation(node.init) is not None:
            self.scopes[-1][node.name] = pointer  # its size may be said by `sizeof *p`
            self._allocate(node.name, pointer, node.init, line)
            return
        if node.name in self.swapped:
            at = self.place(node.init)
            if at is None or constant(self.flat(at)) != 0:
                unsupported(
                    node, f"the pointer `{node.name}` is swapped and does not start at an array's beginning"
                )
            name = self.fresh(node.name)
            self.aliases[name] = at.array.name
            self.scopes[-1][node.name] = Array(name, declared.type)
            return
        self.scopes[-1][node.name] = pointer
        if not (
            isinstance(node.init, c_ast.Constant | c_ast.ID | c_ast.Cast) and not self.is_pointer(node.init)
        ) or (isinstance(node.init, c_ast.Cast) and self.place(node.init) is not None):
            self.point(node, pointer, self.place(node.init), line)
        self.flush()

    def point(self, node: Any, pointer: PointerVar, at: Place | None, line: int) -> None:
        """`pointer = at`."""
        if at is None:
            unsupported(node, f"what `{pointer.name}` is set to: not a place in an array")
        if at.array.type != pointer.type and pointer.type != VOID:
            unsupported(
                node,
                f"`{at.array.name}` read through `{pointer.name}`: reinterpreted bytes are not translated",
            )
        whole = not at.indices and constant(at.plus) == 0
        if whole and pointer.offset is None and len(at.array.dims) > 1:
            pointer.place = at  # a view of all of it keeps its shape
            return
        offset = self.flat(at)
        if pointer.offset is None:
            kind = offset.type if offset.type in (LONG, SIZE) or offset.type.size == 8 else INT
            pointer.offset = Var(self.fresh(pointer.name), kind)
            self.out.append(Decl(pointer.offset.name, kind, line))
        pointer.place = at
        if offset != pointer.offset:
            self.out.append(Assign(pointer.offset, offset, line=line))

    def assign_pointer(self, node: Any) -> None:
        symbol = self.find(node.lvalue) if isinstance(node.lvalue, c_ast.ID) else None
        line = line_of(node)
        if not isinstance(symbol, PointerVar):
            unsupported(node, "an assignment to this pointer: only local pointers can be moved")
        if node.op in ("+=", "-="):
            self.pointer_place(node, symbol)
            if symbol.offset is None:
                unsupported(node, f"`{symbol.name}` moved over rows")
            self.out.append(Assign(symbol.offset, self.value(node.rvalue), node.op[0], line))
            return
        if self._allocation(node.rvalue) is not None:
            self._allocate(node.lvalue.name, symbol, node.rvalue, line)
            return
        if not self.is_pointer(node.rvalue):
            return  # p = NULL
        self.point(node, symbol, self.place(node.rvalue), line)

    def pointer_state(self) -> dict[int, tuple[PointerVar, str | None]]:
        found: dict[int, tuple[PointerVar, str | None]] = {}
        for scope in self.scopes:
            for symbol in scope.values():
                if isinstance(symbol, PointerVar):
                    found[id(symbol)] = (symbol, symbol.place.array.name if symbol.place else None)
        return found

    def check_pointers(self, node: Any, before: dict[int, tuple[PointerVar, str | None]]) -> None:
        """After a branch or a loop body: a pointer must still be in the array it was in."""
        for symbol, name in before.values():
            now = symbol.place.array.name if symbol.place else None
            if name is not None and now != name:
                unsupported(
                    node,
                    f"the pointer `{symbol.name}` points into `{name}` or `{now}`, as the way taken decides",
                )

    def bind(self, parameter: Any, arg: Any) -> tuple[str, Symbol]:
        """A parameter of an inlined function."""
        declared = self.unit.declared(parameter.type)
        line = line_of(arg)
        if declared.kind in ("struct", "struct pointer"):
            whole = self.struct(arg)
            if whole is None:
                unsupported(arg, f"the argument for `{parameter.name}`: not a local struct")
            if declared.kind == "struct pointer":
                return parameter.name, whole
            own = self.new_struct(parameter.name, declared, line)
            self.copy_struct(arg, own, whole)
            return parameter.name, own
        if declared.kind == "scalar":
            var = Var(self.fresh(parameter.name), declared.type)
            value = self.value(arg)
            self.out += [Decl(var.name, var.type, line), Assign(var, value, line=line)]
            return parameter.name, var
        if isinstance(arg, c_ast.UnaryOp) and arg.op == "&" and isinstance(arg.expr, c_ast.ID):
            target = self.find(arg.expr)
            if isinstance(target, Var):
                return parameter.name, Array(target.name, target.type, ())  # one element: the variable itself
        at = self.place(arg)
        if at is None:
            unsupported(arg, f"the argument for `{parameter.name}`: not a place in an array")
        if at.array.type != declared.type:
            unsupported(arg, f"`{at.array.name}` passed as a pointer to {declared.type.name}")
        if not at.array.dims or (
            len(declared.dims) == 1 and len(at.array.dims) == 1 and constant(at.plus) == 0
        ):
            return parameter.name, at.array
        if len(declared.dims) > 1 and constant(self.flat(at)) == 0:
            return parameter.name, at.array
        pointer = PointerVar(parameter.name, declared.type)
        self.point(arg, pointer, at, line)
        return parameter.name, pointer

    def device_call(self, node: Any, function: Any, args: list[Any]) -> Expr:
        values = (
            tuple(convert(self.value(a), p.type) for a, p in zip(args, function.parameters, strict=True))
            if function.parameters
            else tuple(self.value(a) for a in args)
        )
        return Call(function.name, values, function.type)


def _all_zero(init: Any) -> bool:
    if isinstance(init, c_ast.InitList):
        return all(_all_zero(e) for e in init.exprs)
    return isinstance(init, c_ast.Constant) and init.value.strip("fFlLuU").strip("0") in ("", ".")

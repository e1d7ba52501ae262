"""What names mean while a function is lowered, and the file's own types, constants and functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pycparser import c_ast

from agent.translator.c.problems import unsupported
from agent.translator.c.syntax import Expr, Var
from agent.translator.c.types import VOID, Scalar, from_words


@dataclass(frozen=True)
class Array:
    """Memory with a name: a parameter, a local array, a constant table, or a pointer that loops swap."""

    name: str
    type: Scalar
    dims: tuple[Expr | None, ...] = (None,)  # None: not known (a plain pointer)


@dataclass(frozen=True)
class Place:
    """A pointer's value: into `array`, below the leading `indices`, `plus` further on at that level."""

    array: Array
    indices: tuple[Expr, ...]
    plus: Expr


@dataclass
class PointerVar:
    """A local pointer: where it points and the variable that holds its offset."""

    name: str
    type: Scalar
    place: Place | None = None
    offset: Var | None = None


@dataclass(frozen=True)
class ConstantName:
    value: Expr


@dataclass
class StructVar:
    """A local struct, taken apart: each field is a variable of its own."""

    name: str
    fields: dict[str, Var | Array]


Symbol = Var | Array | PointerVar | ConstantName | StructVar


@dataclass(frozen=True)
class Declared:
    """A declarator read: `kind` scalar, array, pointer (over an arithmetic type), struct, struct pointer."""

    kind: str
    type: Scalar
    dims: tuple[Any, ...] = ()  # pycparser expressions or None
    fields: tuple[tuple[str, Declared], ...] = ()  # of a struct


@dataclass(frozen=True)
class Table:
    """A constant table of the file: emitted as it stands."""

    array: Array
    init: str


@dataclass
class Unit:
    """One C file."""

    functions: dict[str, Any] = field(default_factory=dict)  # pycparser FuncDef by name
    typedefs: dict[str, Any] = field(default_factory=dict)  # type nodes
    constants: dict[str, Any] = field(default_factory=dict)  # pycparser Decl of const scalars and tables
    mutable: dict[str, Any] = field(default_factory=dict)  # Decl of file-level variables that may change
    enums: dict[str, Any] = field(default_factory=dict)  # name -> value expression or (previous name)
    structs: dict[str, Any] = field(default_factory=dict)  # pycparser Struct with its fields, by tag

    @staticmethod
    def of(tree: Any) -> Unit:
        unit = Unit()
        for item in tree.ext:
            if isinstance(item, c_ast.FuncDef):
                unit.functions[item.decl.name] = item
            elif isinstance(item, c_ast.Typedef):
                unit.typedefs[item.name] = item.type
                unit._enumerate(item.type)
            elif isinstance(item, c_ast.Decl):
                unit._enumerate(item.type)
                if item.name and not isinstance(item.type, c_ast.FuncDecl):
                    kept = unit.constants if is_const(item) else unit.mutable
                    kept[item.name] = item
        return unit

    def _enumerate(self, node: Any) -> None:
        while hasattr(node, "type") and not isinstance(node, c_ast.Enum | c_ast.Struct):
            node = node.type
        if isinstance(node, c_ast.Struct) and node.name and node.decls:
            self.structs[node.name] = node
        if isinstance(node, c_ast.Enum) and node.values is not None:
            previous: str | None = None
            for entry in node.values.enumerators:
                self.enums[entry.name] = entry.value if entry.value is not None else previous
                previous = entry.name

    def _struct(self, node: Any) -> Declared:
        whole = node if node.decls else self.structs.get(node.name)
        if whole is None:
            unsupported(node, f"`struct {node.name}` is not defined in this file")
        fields = tuple((d.name, self.declared(d.type)) for d in whole.decls)
        for name, each in fields:
            if each.kind not in ("scalar", "array"):
                unsupported(node, f"the field `{name}`: only numbers and arrays of numbers are taken apart")
        return Declared("struct", VOID, (), fields)

    def declared(self, node: Any, depth: int = 0) -> Declared:
        """Reads a type. Raises TaskProblem for structs, unions, complex and function pointers."""
        match node:
            case c_ast.TypeDecl():
                return self.declared(node.type, depth)
            case c_ast.IdentifierType():
                if len(node.names) == 1 and node.names[0] in self.typedefs and depth < 20:
                    return self.declared(self.typedefs[node.names[0]], depth + 1)
                kind = from_words(node.names)
                if kind is None:
                    words = " ".join(node.names)
                    unsupported(node, f"the type `{words}`: only integers, float and double are translated")
                return Declared("scalar", kind)
            case c_ast.Enum():
                return Declared("scalar", Scalar("int"))
            case c_ast.ArrayDecl():
                inner = self.declared(node.type, depth)
                if inner.kind == "struct":
                    unsupported(node, "an array of structs: only single structs are taken apart")
                if inner.kind == "pointer":
                    unsupported(
                        node, "an array of pointers: rows may lie anywhere, so accesses cannot be analysed"
                    )
                return Declared("array", inner.type, (node.dim, *inner.dims))
            case c_ast.PtrDecl():
                inner = self.declared(node.type, depth)
                if inner.kind == "struct":
                    return Declared("struct pointer", VOID, (), inner.fields)
                if inner.kind == "pointer":
                    unsupported(
                        node,
                        "a pointer to pointers: rows may lie anywhere, so accesses cannot be analysed",
                        "Pass one flat array and its row length.",
                    )
                return Declared("pointer", inner.type, (None, *inner.dims))
            case c_ast.Struct():
                return self._struct(node)
            case c_ast.Union():
                unsupported(node, "a union: the same bytes read as two types")
            case c_ast.FuncDecl():
                unsupported(node, "a function pointer: what it calls is not known before it runs")
            case _:
                unsupported(node, f"the type {type(node).__name__}: it is not translated")


def numbers_only(declared: Declared) -> bool:
    """Scalar, array or pointer, but no struct."""
    return declared.kind in ("scalar", "array", "pointer")


def is_const(decl: Any) -> bool:
    """Whether the declared thing itself (an array's elements) can never change."""
    node = decl.type
    while isinstance(node, c_ast.ArrayDecl):
        node = node.type
    if isinstance(node, c_ast.TypeDecl | c_ast.PtrDecl):
        return "const" in (node.quals or [])
    return False

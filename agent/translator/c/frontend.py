"""Functions read as a whole, `read_function` being the way in; helpers called, or put in place of calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pycparser import c_ast

from agent.translator.c.control import Control
from agent.translator.c.exits import without_returns
from agent.translator.c.headers import moved
from agent.translator.c.problems import line_of, unsupported
from agent.translator.c.scope import Array, Place, PointerVar, StructVar, Table, Unit, numbers_only
from agent.translator.c.syntax import Assign, Body, Decl, Expr, Load, Var, number
from agent.translator.c.types import INT, VOID, Scalar


@dataclass(frozen=True)
class DeviceFunction:
    """A helper that works on numbers alone: it stays a function."""

    name: str
    type: Scalar
    parameters: tuple[Var, ...]
    body: Body


@dataclass(frozen=True)
class Function:
    """The entry function, lowered. Arrays by name: parameters first, then tables; locals are in the body."""

    name: str
    scalars: tuple[Var, ...]
    arrays: dict[str, Array]
    tables: tuple[Table, ...]
    helpers: tuple[DeviceFunction, ...]
    body: Body
    taken: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)  # pointers that loops swap: name -> first array


def read_function(unit: Unit, name: str, result: str = "result") -> Function:
    """`result` names the array that a returned value goes to. Raises TaskProblem: construct, line and why."""
    lowering = Lowering(unit, set(RESERVED))
    return lowering.entry(unit.functions[name], result)


class Lowering(Control):
    """Functions. One per function that is emitted (the entry, each device function)."""

    last_struct: StructVar | None = None  # what the last inlined function gave

    def entry(self, node: Any, result_name: str) -> Function:
        declaration = node.decl.type
        kind = self.unit.declared(declaration.type)
        if kind.kind != "scalar":
            unsupported(node, f"a returned {kind.kind}: results go to arrays that the caller gave")
        scalars, arrays = self.parameters(node)
        self.find_swaps(node.body)
        self.statement_list(node.body.block_items or [])
        result = Load(result_name, (number(0),), kind.type) if kind.type != VOID else None
        if result is not None:
            arrays.append(Array(result_name, kind.type))
        body = without_returns(tuple(self.out), result, self.fresh("returned"))
        return Function(
            node.decl.name,
            tuple(scalars),
            {a.name: a for a in arrays},
            tuple(self.tables),
            tuple(self.helpers.values()),
            body,
            self.taken,
            self.aliases,
        )

    def parameters(self, node: Any) -> tuple[list[Var], list[Array]]:
        scalars: list[Var] = []
        arrays: list[tuple[Any, Any]] = []
        listed = node.decl.type.args.params if node.decl.type.args is not None else []
        for parameter in listed:
            if isinstance(parameter, c_ast.EllipsisParam):
                unsupported(parameter, "a variable number of arguments")
            if parameter.name is None:
                continue  # (void)
            declared = self.unit.declared(parameter.type)
            self.taken.add(parameter.name)
            if declared.kind == "scalar":
                var = Var(parameter.name, declared.type)
                scalars.append(var)
                self.scopes[-1][parameter.name] = var
            elif numbers_only(declared):
                arrays.append((parameter, declared))
            else:
                unsupported(
                    parameter, f"the parameter `{parameter.name}`: structs are only translated as locals"
                )
        made: list[Array] = []
        walking = moved(node.body)
        for parameter, declared in arrays:  # extents may name any scalar parameter
            dims = (None, *(self.value(d) for d in declared.dims[1:]))
            array = Array(parameter.name, declared.type, dims)
            made.append(array)
            self.scopes[-1][parameter.name] = array
            if parameter.name in walking:
                pointer = PointerVar(parameter.name, declared.type, Place(array, (), number(0)))
                pointer.offset = Var(self.fresh(parameter.name + "_at"), INT)
                self.out += [Decl(pointer.offset.name, INT), Assign(pointer.offset, number(0))]
                self.scopes[-1][parameter.name] = pointer
        return scalars, made

    def device_function(self, name: str) -> DeviceFunction:
        """A helper over numbers. Raises TaskProblem where it has pointers."""
        known: DeviceFunction | None = self.helpers.get(name)
        if known is not None:
            return known
        node = self.unit.functions[name]
        kind = self.unit.declared(node.decl.type.type)
        self.helpers[name] = DeviceFunction(name, kind.type, (), ())  # stands while its own body is read
        inner = Lowering(self.unit, set(RESERVED))
        inner.helpers, inner.tables, inner.table_names = self.helpers, self.tables, self.table_names
        scalars, _ = inner.parameters(node)
        inner.statement_list(node.body.block_items or [])
        function = DeviceFunction(name, kind.type, tuple(scalars), tuple(inner.out))
        self.helpers.pop(name)
        self.helpers[name] = function
        return function

    def call_user(self, node: Any, name: str) -> Expr:
        function = self.unit.functions[name]
        args = node.args.exprs if node.args is not None else []
        listed = function.decl.type.args.params if function.decl.type.args is not None else []
        parameters = [p for p in listed if getattr(p, "name", None)]
        if len(args) != len(parameters):
            unsupported(node, f"`{name}` called with {len(args)} arguments instead of {len(parameters)}")
        plain = all(self.unit.declared(p.type).kind == "scalar" for p in parameters)
        if plain and self.unit.declared(function.decl.type.type).type != VOID:
            return self.device_call(node, self.device_function(name), args)
        return self.inline(node, name, function, parameters, args)

    def inline(self, node: Any, name: str, function: Any, parameters: list[Any], args: list[Any]) -> Expr:
        """The helper's body in place of the call."""
        if name in self.inlining:
            unsupported(node, f"`{name}` calls itself over arrays: recursion has no parallel form here")
        kind = self.unit.declared(function.decl.type.type)
        bound = [self.bind(p, a) for p, a in zip(parameters, args, strict=True)]
        outer = self.scopes
        self.scopes = [{}, dict(bound)]
        self.inlining.append(name)
        outer_struct, self.returned_struct = self.returned_struct, None
        if kind.kind == "struct":
            self.returned_struct = self.new_struct(f"{name}_value", kind, line_of(node))
        saved, self.out = self.out, []
        saved_post, self.post = self.post, []
        self.statement_list(function.body.block_items or [])
        body, self.out, self.post = tuple(self.out), saved, saved_post
        self.inlining.pop()
        self.scopes = outer
        self.last_struct, self.returned_struct = self.returned_struct, outer_struct
        result = Var(self.fresh(name + "_value"), kind.type) if kind.type != VOID else None
        if result is not None:
            self.out.append(Decl(result.name, result.type, line_of(node)))
        self.out += without_returns(body, result, self.fresh(name + "_returned"))
        return result if result is not None else number(0, VOID)

    def call_struct(self, node: Any) -> StructVar:
        self.call_user(node, node.name.name)
        assert self.last_struct is not None, "the function returns a struct"
        return self.last_struct


#: Names that mean something in CUDA C++ and nothing in C, and those that emitted code uses for itself.
RESERVED = [
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "class",
    "new",
    "delete",
    "template",
    "this",
    "typename",
    "namespace",
    "operator",
    "private",
    "public",
    "protected",
    "virtual",
    "friend",
    "try",
    "catch",
    "throw",
    "using",
    "bool",
    "true",
    "false",
    "and",
    "or",
    "not",
    "xor",
    "launch",
    "block",
    "grid",
    "blocks",
    "blocks_for",
    "point",
    "points",
    "rest",
    "items",
    "warp",
    "half",
    "shared_bytes",
    "scalars",
    "min",
    "max",
    "abs",
]

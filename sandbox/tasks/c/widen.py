"""The same program in wider arithmetic, rewritten on the syntax tree: `float` becomes `double`, and in
programs whose parameters are all double, `double` becomes `long double`.

Types, literals, casts and calls of the maths library change; `sizeof` follows by itself. Where a program
looks at the bits of a floating-point number, widening would change its meaning, so `reinterprets` says why
it is not done.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

from pycparser import c_ast, c_generator

from sandbox.tasks.c.ctype import resolve
from sandbox.tasks.c.parse import Program

#: Functions of <math.h>, by the name of their double form.
MATHS = frozenset(
    (
        *("acos", "asin", "atan", "cos", "sin", "tan", "acosh", "asinh", "atanh", "cosh", "sinh", "tanh"),
        *(
            "exp",
            "exp2",
            "expm1",
            "log",
            "log10",
            "log1p",
            "log2",
            "logb",
            "cbrt",
            "fabs",
            "sqrt",
            "erf",
            "erfc",
        ),
        *(
            "lgamma",
            "tgamma",
            "ceil",
            "floor",
            "nearbyint",
            "rint",
            "round",
            "trunc",
            "atan2",
            "pow",
            "hypot",
        ),
        *(
            "fmod",
            "remainder",
            "copysign",
            "nextafter",
            "fdim",
            "fmax",
            "fmin",
            "fma",
            "ldexp",
            "frexp",
            "modf",
        ),
        *("lround", "lrint", "llround", "llrint", "ilogb"),
    )
)
_BUILTINS = {"__builtin_inff": "__builtin_inf", "__builtin_nanf": "__builtin_nan"}
_PRELUDE = "".join(
    f"#include <{name}.h>\n"
    for name in (
        "math",
        "stdlib",
        "stdint",
        "stddef",
        "stdbool",
        "string",
        "stdio",
        "float",
        "limits",
        "time",
    )
)
_MOVES_BYTES = frozenset({"memcpy", "memmove", "memset", "memcmp", "qsort"})
_ALLOCATES = frozenset({"malloc", "calloc", "realloc", "aligned_alloc"})


@dataclass(frozen=True)
class Widened:
    text: str  # a C file, headers included
    long_double: bool  # the entry's double parameters are long double now


def widen(program: Program, *, long_double: bool) -> Widened:
    """The user's own declarations and functions, rewritten; coordinates and comments are lost."""
    own = c_ast.FileAST([_copy(node) for node in program.own()])
    names = {"double": "long double"} if long_double else {"float": "double"}
    _Widener(program, names).visit(own)
    return Widened(_PRELUDE + c_generator.CGenerator().visit(own), long_double)


def reinterprets(program: Program) -> str | None:
    """Why the meaning of the program hangs on the bits of its floating-point numbers, or None."""
    finder = _BitFinder(program)
    for node in program.own():
        finder.visit(node)
    return finder.found


def _copy(node: c_ast.Node) -> c_ast.Node:
    return copy.deepcopy(node)


class _Widener(c_ast.NodeVisitor):  # type: ignore[misc]
    def __init__(self, program: Program, names: dict[str, str]) -> None:
        self._names = names
        self._own = program.functions
        self._long = "double" in names

    def visit_IdentifierType(self, node: c_ast.IdentifierType) -> None:
        if "long" not in node.names:
            node.names = [self._names.get(name, name) for name in node.names]

    def visit_Constant(self, node: c_ast.Constant) -> None:
        if node.type not in ("float", "double", "long double"):
            return
        digits = node.value if node.value[:2].lower() == "0x" else node.value.rstrip("fF")
        digits = digits.rstrip("fF") if "p" in digits.lower() else digits
        node.value = digits + "L" if self._long and digits[-1] not in "lL" else digits
        node.type = "double"

    def visit_FuncCall(self, node: c_ast.FuncCall) -> None:
        if isinstance(node.name, c_ast.ID) and node.name.name not in self._own:
            node.name = c_ast.ID(self._renamed(node.name.name))
        self.generic_visit(node)

    def _renamed(self, name: str) -> str:
        if name in _BUILTINS:
            return _BUILTINS[name]
        plain = name[:-1] if name.endswith("f") and name[:-1] in MATHS else name
        if plain not in MATHS:
            return name
        return plain + "l" if self._long else plain


class _BitFinder(c_ast.NodeVisitor):  # type: ignore[misc]
    """Casts between pointers to different types, unions with floats, bytes moved by a literal count."""

    def __init__(self, program: Program) -> None:
        self._typedefs = program.typedefs
        self.found: str | None = None

    def visit_Cast(self, node: c_ast.Cast) -> None:
        target = resolve(node.to_type, self._typedefs)
        allocated = (
            isinstance(node.expr, c_ast.FuncCall)
            and isinstance(node.expr.name, c_ast.ID)
            and node.expr.name.name in _ALLOCATES
        )
        plain = target.target is not None and target.target.kind == "void"
        if target.kind == "pointer" and not allocated and not plain:
            self._note(node, "a pointer is cast to another type")
        self.generic_visit(node)

    def visit_Union(self, node: c_ast.Union) -> None:
        self._note(node, "a union")

    def visit_FuncCall(self, node: c_ast.FuncCall) -> None:
        if isinstance(node.name, c_ast.ID) and node.name.name in _MOVES_BYTES and node.args is not None:
            sized = _SizeofFinder()
            sized.visit(node.args)
            if not sized.found:
                self._note(node, f"{node.name.name} counts bytes without sizeof")
        self.generic_visit(node)

    def _note(self, node: c_ast.Node, what: str) -> None:
        line = f" (line {node.coord.line})" if node.coord is not None else ""
        self.found = self.found or what + line


class _SizeofFinder(c_ast.NodeVisitor):  # type: ignore[misc]
    found = False

    def visit_UnaryOp(self, node: c_ast.UnaryOp) -> None:
        self.found = self.found or node.op == "sizeof"
        self.generic_visit(node)

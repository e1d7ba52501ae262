"""Which function is the task, and what its parameters are once they cross the device boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pycparser import c_ast

from sandbox.errors import TaskProblem
from sandbox.tasks.c.ctype import CType, resolve
from sandbox.tasks.c.parse import Program
from sandbox.types import Problem

MAX_PARAMETERS = 64
#: Names that C allows and CUDA C++ does not.
_RESERVED = frozenset(
    (
        *(
            "new",
            "delete",
            "class",
            "template",
            "typename",
            "this",
            "private",
            "public",
            "protected",
            "virtual",
        ),
        *(
            "operator",
            "namespace",
            "using",
            "try",
            "catch",
            "throw",
            "friend",
            "explicit",
            "export",
            "mutable",
        ),
        *("and", "or", "not", "xor", "bool", "true", "false"),
    )
)


@dataclass(frozen=True)
class Formal:
    """One parameter of the task, or (last) its return value as one more pointer."""

    name: str
    dtype: str  # numpy's, of the element
    cuda: str  # element type in CUDA C++
    is_array: bool
    const: bool  # arrays: the elements cannot be written through it
    dims: tuple[c_ast.Node | None, ...] = ()  # as written, outermost first; None for `*` and `[]`
    is_result: bool = False
    line: int | None = None

    @property
    def is_integer_scalar(self) -> bool:
        return not self.is_array and not self.dtype.startswith("float")

    @property
    def c_type(self) -> str:
        """As in the prototype of `launch`: "const float *"."""
        return f"{'const ' if self.const else ''}{self.cuda} *" if self.is_array else self.cuda


def choose_entry(program: Program, wished: str | None) -> str:
    """The function to translate. Raises TaskProblem asking which, where that is open."""
    names = [name for name in program.functions if name != "main"]
    if wished is not None:
        if wished in names:
            return wished
        raise _asking(program, "unknown_entry", f"there is no function {wished!r}", names)
    if not names:
        if "main" in program.functions:
            raise TaskProblem(
                Problem(
                    kind="whole_program",
                    message="only main is defined, and whole programs are not judged yet",
                    hint="put the computation into a function of its own; its parameters become the kernel's",
                    file=program.filename,
                    line=_line(program.functions["main"]),
                )
            )
        raise TaskProblem(
            Problem(
                kind="no_function",
                message="no function is defined",
                hint="a task is one C function, such as void scale(int n, float a, float *x) { ... }",
                file=program.filename,
            )
        )
    called = {
        callee
        for name in names
        for callee in _mentions(program.functions[name], set(names))
        if callee != name
    }
    roots = [name for name in names if name not in called]
    if len(roots) == 1:
        return roots[0]
    message = f"{len(roots or names)} functions could be the task"
    raise _asking(program, "several_functions", message, roots or names)


def formals(program: Program, entry: str) -> list[Formal]:
    """In order, the result last. Raises TaskProblem for a type that cannot cross the device boundary."""
    node = program.functions[entry]
    declared: c_ast.FuncDecl = node.decl.type
    found: list[Formal] = []
    parameters: Sequence[c_ast.Node] = declared.args.params if declared.args is not None else ()
    for parameter in parameters:
        if isinstance(parameter, c_ast.EllipsisParam):
            raise _unsupported(parameter, program, "a variable number of arguments", entry, node)
        if isinstance(parameter, c_ast.ID):
            raise _unsupported(parameter, program, "old-style parameters without types", entry, node)
        kind = resolve(parameter.type, program.typedefs)
        if kind.kind == "void":
            continue
        found.append(_formal(parameter, kind, program, entry, node))
    returned = resolve(declared.type, program.typedefs)
    if returned.kind == "scalar":
        taken = {f.name for f in found}
        name = next(n for n in ("result", "result_", "returned", "returned_value_") if n not in taken)
        found.append(Formal(name, returned.dtype, returned.cuda, True, False, (), True, _line(node)))
    elif returned.kind != "void":
        raise _unsupported(node, program, f"the return type {returned.words}", entry, node)
    if len(found) > MAX_PARAMETERS:
        raise _unsupported(node, program, f"more than {MAX_PARAMETERS} parameters", entry, node)
    if not any(f.is_array and (f.is_result or not f.const) for f in found):
        raise TaskProblem(
            Problem(
                kind="no_output",
                message=f"{entry} returns nothing and can write to nothing",
                hint="a task needs a return value or an array that is not const",
                file=program.filename,
                line=_line(node),
            )
        )
    return found


def prototype(parameters: Sequence[Formal]) -> str:
    """`extern "C" void launch(...)`: what a candidate must define."""
    words = [f"{f.c_type}{'' if f.is_array else ' '}{f.name}" for f in parameters]
    return f'extern "C" void launch({", ".join(words)})'


def _formal(node: c_ast.Node, kind: CType, program: Program, entry: str, function: c_ast.FuncDef) -> Formal:
    name = getattr(node, "name", None)
    if not name:
        raise _unsupported(node, program, "a parameter without a name", entry, function)
    if name in _RESERVED:
        raise TaskProblem(
            Problem(
                kind="reserved_name",
                message=f"the parameter {name!r} of {entry} is a keyword in CUDA C++",
                hint="rename it",
                file=program.filename,
                line=_line(node) or _line(function),
            )
        )
    if kind.kind == "scalar":
        return Formal(name, kind.dtype, kind.cuda, False, False, (), False, _line(node))
    if kind.is_address and kind.target is not None:
        dims: list[c_ast.Node | None] = [kind.dim if kind.kind == "array" else None]
        inner = kind.target
        while inner.kind == "array" and inner.target is not None:
            dims.append(inner.dim)
            inner = inner.target
        if inner.kind == "scalar" and all(dim is not None for dim in dims[1:]):
            return Formal(name, inner.dtype, inner.cuda, True, inner.const, tuple(dims), False, _line(node))
    what = {
        "pointer": f"{kind.words.strip()}, a pointer to {_pointee(kind)}",
        "array": f"{kind.words}, an array of {_pointee(kind)}",
    }.get(kind.kind, kind.words)
    raise _unsupported(node, program, f"the type of {name} ({what})", entry, function)


def _pointee(kind: CType) -> str:
    target = kind.target
    assert target is not None
    known = {
        "pointer": "pointers",
        "struct": target.words,
        "function": "a function",
        "void": "anything",
    }
    return known.get(target.kind, target.words or "an unknown type")


def _mentions(node: c_ast.Node, names: set[str]) -> set[str]:
    """Functions that are called or whose address is taken."""
    found = set()
    waiting: list[c_ast.Node] = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, c_ast.ID) and current.name in names:
            found.add(current.name)
        waiting.extend(child for _, child in current.children())
    return found


def _asking(program: Program, kind: str, message: str, names: Sequence[str]) -> TaskProblem:
    shown = ", ".join(f"{name} (line {_line(program.functions[name])})" for name in names)
    return TaskProblem(
        Problem(
            kind=kind,
            message=f"{message}: {shown}" if names else message,
            hint="say which with --entry NAME",
            file=program.filename,
            line=_line(program.functions[names[0]]) if names else None,
            choices=list(names),
        )
    )


def _unsupported(
    node: c_ast.Node, program: Program, what: str, entry: str, function: c_ast.FuncDef
) -> TaskProblem:
    place = node.coord or function.coord
    return TaskProblem(
        Problem(
            kind="unsupported_parameter",
            message=f"{what} cannot cross to the device: {entry} may take numbers and flat arrays of numbers",
            hint="pass the arrays inside a struct one by one, rows of a double pointer as one flat array",
            file=program.filename,
            line=place.line if place is not None else None,
            column=place.column if place is not None else None,
        )
    )


def _line(node: c_ast.Node) -> int | None:
    return node.coord.line if node.coord is not None else None

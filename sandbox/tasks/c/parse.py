"""From the user's C to a syntax tree: preprocessed by gcc in the jail, parsed by pycparser.

Standard headers are replaced by small ones of our own that pycparser can read; line markers stay, so every
coordinate is a line of the user's own file.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pycparser import c_ast, c_parser

from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, TaskProblem, ToolchainMissing
from sandbox.jail import Bind, Finished, run
from sandbox.limits import GIB, MIB, Limits
from sandbox.types import Problem

HEADERS = Path(__file__).parent / "headers"
_HEADERS_INSIDE = Path("/tmp/headers")
LIMITS = Limits(
    wall_seconds=10,
    cpu_seconds=10,
    memory_bytes=GIB,
    output_bytes=16 * MIB,
    file_bytes=16 * MIB,
    processes=16,
)
#: Spellings of gcc that pycparser does not know, and that mean nothing to us.
_DEFINES = (
    "__attribute__(x)=",
    "__extension__=",
    "__restrict=restrict",
    "__restrict__=restrict",
    "__inline=inline",
    "__inline__=inline",
    "__const=const",
    "__const__=const",
    "__volatile__=volatile",
    "__signed__=signed",
    "__builtin_expect(x, y)=(x)",
    "__builtin_assume_aligned(x, ...)=(x)",
)
_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<message>.*)$", re.M
)
_PARSER_PLACE = re.compile(r":(?P<line>\d+):(?P<column>\d+): (?P<message>.*)$", re.S)


@dataclass(frozen=True)
class Program:
    """One C file, parsed."""

    source: str  # the user's own, unchanged
    filename: str  # how messages and coordinates call it
    tree: c_ast.FileAST  # headers' declarations included
    functions: Mapping[str, c_ast.FuncDef]  # the user's own definitions, in order; not those of headers
    typedefs: Mapping[str, c_ast.Node]  # name -> type node, headers' included
    globals: Mapping[str, c_ast.Decl]  # the user's own variables at file scope

    def own(self) -> list[c_ast.Node]:
        """What the user's file itself says at file scope, without the headers."""
        return [node for node in self.tree.ext if _is_own(node, self.filename)]


def parse(source: str, *, filename: str, cancel: Cancellation) -> Program:
    """Raises TaskProblem with line and column where gcc or pycparser does not understand the text."""
    name = Path(filename).name.replace('"', "_").replace("\\", "_") or "task.c"
    text = preprocess(source, name, cancel)
    try:
        tree = c_parser.CParser().parse(text, name)
    except (c_parser.ParseError, RecursionError) as error:
        raise _unreadable(source, name, error, cancel) from error
    return _program(source, name, tree)


def host_gcc() -> str:
    """Path of gcc. Raises ToolchainMissing."""
    found = shutil.which("gcc")
    if found is None:
        raise ToolchainMissing("no gcc: install a C compiler (Debian: apt-get install gcc)")
    return found


def preprocess(source: str, name: str, cancel: Cancellation) -> str:
    """The text after gcc's preprocessor, with line markers. Raises TaskProblem."""
    command = [host_gcc(), "-E", "-std=gnu11", "-nostdinc", "-isystem", str(_HEADERS_INSIDE), "-x", "c"]
    command += [part for define in _DEFINES for part in ("-D", define)]
    done = run(
        [*command, "-"],
        binds=[Bind(HEADERS, _HEADERS_INSIDE)],
        limits=LIMITS,
        cancel=cancel,
        stdin=_marked(source, name),
    )
    _ended(done)
    if not done.ok:
        problem = _gcc_problem(done, name, "preprocessor_error")
        if "No such file" in problem.message:
            known = ", ".join(sorted(header.name for header in HEADERS.glob("*.h")))
            problem = problem.model_copy(update={"hint": f"one file is a whole task; known headers: {known}"})
        raise TaskProblem(problem)
    return done.stdout.decode(errors="replace")


def compiler_problem(log: str, name: str, kind: str) -> Problem:
    """The first error in a gcc log, as a problem."""
    match = _DIAGNOSTIC.search(log)
    if match is None:
        first = next((line for line in log.splitlines() if line.strip()), "gcc failed without a message")
        return Problem(kind=kind, message=first[:300], file=name)
    return Problem(
        kind=kind,
        message=match["message"][:300],
        file=match["file"],
        line=int(match["line"]),
        column=int(match["column"]),
    )


def _marked(source: str, name: str) -> bytes:
    return f'# 1 "{name}"\n{source}\n'.encode()


def _gcc_problem(done: Finished, name: str, kind: str) -> Problem:
    return compiler_problem(done.stderr.decode(errors="replace"), name, kind)


def _ended(done: Finished) -> None:
    if done.reason == "cancelled":
        raise Cancelled
    if done.reason != "exited":
        raise TaskProblem(
            Problem(
                kind="parse_error", message=f"gcc did not get through the text ({done.reason} limit reached)"
            )
        )


def _unreadable(source: str, name: str, error: Exception, cancel: Cancellation) -> TaskProblem:
    """gcc explains better than pycparser; where gcc is content, the construct is one that we do not know."""
    done = run(
        [host_gcc(), "-fsyntax-only", "-std=gnu11", "-x", "c", "-"],
        limits=LIMITS,
        cancel=cancel,
        stdin=_marked(source, name),
    )
    _ended(done)
    if not done.ok:
        return TaskProblem(_gcc_problem(done, name, "parse_error"))
    place = _PARSER_PLACE.search(str(error))
    said = (
        "nested too deeply"
        if isinstance(error, RecursionError)
        else place["message"]
        if place
        else str(error)
    )
    return TaskProblem(
        Problem(
            kind="unsupported_construct",
            message=f"gcc accepts this, but it is not C that Kernelwright can read: {said}",
            hint="plain C99 is understood; GNU extensions such as statement expressions and typeof are not",
            file=name,
            line=int(place["line"]) if place else None,
            column=int(place["column"]) if place else None,
        )
    )


def _program(source: str, name: str, tree: c_ast.FileAST) -> Program:
    functions: dict[str, c_ast.FuncDef] = {}
    typedefs: dict[str, c_ast.Node] = {}
    variables: dict[str, c_ast.Decl] = {}
    for node in tree.ext:
        if isinstance(node, c_ast.Typedef):
            typedefs[node.name] = node.type
        elif isinstance(node, c_ast.FuncDef) and _is_own(node, name):
            functions[node.decl.name] = node
        elif isinstance(node, c_ast.Decl) and _is_own(node, name) and _is_variable(node):
            variables[node.name] = node
    return Program(source, name, tree, functions, typedefs, variables)


def _is_own(node: c_ast.Node, name: str) -> bool:
    return node.coord is None or node.coord.file == name


def _is_variable(node: c_ast.Decl) -> bool:
    return node.name is not None and not isinstance(node.type, c_ast.FuncDecl)

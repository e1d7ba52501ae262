"""The skeleton of a program's loops: what is left when names, types, numbers and layout are gone.

    for (i = 0; i < n; i++) { s = 0; for (k = 0; k < i; k++) s += a[i * n + k]; y[i] = s; }

is `for[set for~[add] store]`: a loop over a fixed range holding an assignment, a loop whose range hangs on
another loop's variable, and a store. Counted `while` loops are loops like any other. Runs of equal parts are
one part; so two programs with one skeleton loop in the same way over the same kinds of work.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from pycparser import c_ast

from sandbox.cancellation import Cancellation
from sandbox.tasks.c.formals import choose_entry
from sandbox.tasks.c.parse import parse

_COUNTING = ("++", "--", "p++", "p--")


def structure(source: str, entry: str | None, cancel: Cancellation) -> str:
    """Of a C function and the functions it calls. Raises TaskProblem where the text cannot be read, or
    where it is open which function is the task."""
    program = parse(source, filename="task.c", cancel=cancel)
    return _Skeleton(dict(program.functions)).function(choose_entry(program, entry))


class _Skeleton:
    def __init__(self, functions: dict[str, c_ast.FuncDef]) -> None:
        self.functions = functions
        self.active: list[str] = []  # functions being read: a recursive call is only named
        self.counters: list[str] = []  # variables of the loops around
        self.loaded: set[str] = set()  # scalars that hold something out of memory

    def function(self, name: str) -> str:
        if name in self.active:
            return "recurse"
        self.active.append(name)
        parts = self._parts(self.functions[name].body.block_items or [])
        self.active.pop()
        return " ".join(parts)

    def _parts(self, items: Iterable[c_ast.Node]) -> list[str]:
        """Of statements in order; equal neighbours are one."""
        found = [part for item in items for part in self._statement(item)]
        return [key for key, _ in groupby(found)]

    def _body(self, node: c_ast.Node | None) -> str:
        if node is None:
            return ""
        items = node.block_items or [] if isinstance(node, c_ast.Compound) else [node]
        return " ".join(self._parts(items))

    def _statement(self, node: c_ast.Node) -> list[str]:
        match node:
            case c_ast.For():
                return [self._for(node)]
            case c_ast.While():
                return [self._while(node)]
            case c_ast.DoWhile():
                return [f"do[{self._body(node.stmt)}]"]
            case c_ast.If():
                other = f"|{self._body(node.iffalse)}" if node.iffalse is not None else ""
                return [f"if({self._body(node.iftrue)}{other})"]
            case c_ast.Switch():
                return [f"switch({self._body(node.stmt)})"]
            case c_ast.Case() | c_ast.Default():
                return self._parts(node.stmts or [])
            case c_ast.Compound():
                return self._parts(node.block_items or [])
            case c_ast.Assignment():
                return [*self._calls(node.rvalue), self._assignment(node)]
            case c_ast.UnaryOp() if node.op in _COUNTING:
                return ["update" if _memory(node.expr) else "count"]
            case c_ast.Decl():
                return self._declaration(node)
            case c_ast.DeclList():
                return self._parts(node.decls)
            case c_ast.Break():
                return ["break"]
            case c_ast.Continue():
                return ["continue"]
            case c_ast.Return():
                return [*self._calls(node.expr), "return"] if self.counters else []
            case c_ast.ExprList():
                return self._parts(node.exprs)
            case c_ast.FuncCall():
                return self._calls(node)
            case _:
                return []

    def _declaration(self, node: c_ast.Decl) -> list[str]:
        if isinstance(node.type, c_ast.ArrayDecl):
            return ["array"]
        if node.init is None:
            return []
        if _loads(node.init) and node.name:
            self.loaded.add(node.name)
        return [*self._calls(node.init), "load" if _loads(node.init) else "set"]

    def _assignment(self, node: c_ast.Assignment) -> str:
        if _memory(node.lvalue):
            place = "@" if any(_memory(n) for n in _walk(_subscript(node.lvalue))) else ""
            return ("update" if node.op != "=" or _mentions(node.rvalue, node.lvalue) else "store") + place
        if node.op != "=" or _mentions(node.rvalue, node.lvalue):
            return "add"
        if _loads(node.rvalue) and isinstance(node.lvalue, c_ast.ID):
            self.loaded.add(node.lvalue.name)
        return "load" if _loads(node.rvalue) else "set"

    def _calls(self, node: c_ast.Node | None) -> list[str]:
        """What the user's own functions do, where they are called."""
        found = []
        for part in _walk(node):
            if isinstance(part, c_ast.FuncCall) and isinstance(part.name, c_ast.ID):
                name = part.name.name
                if name in self.functions:
                    found.append(f"call({self.function(name)})")
        return found

    def _for(self, node: c_ast.For) -> str:
        variable = _counter(node.next)
        mark = self._range(node.init, node.cond) + _direction(node.next)
        self.counters.append(variable or "")
        inner = self._body(node.stmt)
        self.counters.pop()
        return f"for{mark}[{inner}]"

    def _while(self, node: c_ast.While) -> str:
        """`while (i < n) { ...; i++; }` is a counted loop when nothing else decides its end."""
        items = list(node.stmt.block_items or []) if isinstance(node.stmt, c_ast.Compound) else [node.stmt]
        variable = _counter(items[-1]) if items else None
        plain = isinstance(node.cond, c_ast.BinaryOp) and node.cond.op in ("<", "<=", ">", ">=", "!=")
        if variable and plain and _name(node.cond.left) == variable:
            mark = self._range(None, node.cond) + _direction(items[-1])
            self.counters.append(variable)
            inner = " ".join(self._parts(items[:-1]))
            self.counters.pop()
            return f"for{mark}[{inner}]"
        self.counters.append("")
        inner = self._body(node.stmt)
        self.counters.pop()
        return f"while[{inner}]"

    def _range(self, init: c_ast.Node | None, test: c_ast.Node | None) -> str:
        """ "": fixed; "~": hangs on a loop around; "?": hangs on what is in memory; "#": a constant."""
        parts = [*_walk(init), *_walk(test)]
        if any(_memory(n) for n in parts) or any(_name(n) in self.loaded for n in parts):
            return "?"
        if any(_name(n) in self.counters for n in parts if _name(n)):
            return "~"
        if isinstance(test, c_ast.BinaryOp) and isinstance(test.right, c_ast.Constant):
            return "#"
        return "&" if isinstance(test, c_ast.BinaryOp) and test.op in ("&&", "||") else ""


def _direction(step: c_ast.Node | None) -> str:
    """ "": one up; "-": down; "*": by a factor; "s": by more than one."""
    moved = _moved(step)
    if moved is None:
        return ""
    _, op, by = moved
    if op in ("*", "/", "<<", ">>"):
        return "*"
    one = by is None or (isinstance(by, c_ast.Constant) and by.value == "1")
    return ("-" if op == "-" else "") + ("" if one else "s")


def _counter(step: c_ast.Node | None) -> str | None:
    """The variable that a loop's last part moves on."""
    moved = _moved(step)
    return moved[0] if moved is not None else None


def _moved(step: c_ast.Node | None) -> tuple[str, str, c_ast.Node | None] | None:
    """(variable, operator, by what): `i++`, `i += 2`, `i = i * 2`."""
    if isinstance(step, c_ast.UnaryOp) and step.op in _COUNTING:
        name = _name(step.expr)
        return (name, step.op[-1], None) if name else None
    if not isinstance(step, c_ast.Assignment):
        return None
    name = _name(step.lvalue)
    if name and step.op != "=":
        return name, step.op[:-1], step.rvalue
    value = step.rvalue
    if name and isinstance(value, c_ast.BinaryOp) and _name(value.left) == name:
        return name, value.op, value.right
    return None


def _name(node: c_ast.Node | None) -> str | None:
    return node.name if isinstance(node, c_ast.ID) else None


def _memory(node: c_ast.Node | None) -> bool:
    return isinstance(node, c_ast.ArrayRef) or (isinstance(node, c_ast.UnaryOp) and node.op == "*")


def _subscript(node: c_ast.Node) -> c_ast.Node | None:
    """Everything that says where in its array an element lies."""
    if not isinstance(node, c_ast.ArrayRef):
        return node.expr if isinstance(node, c_ast.UnaryOp) else None
    inner = _subscript(node.name)
    return node.subscript if inner is None else c_ast.ExprList([inner, node.subscript])


def _loads(node: c_ast.Node | None) -> bool:
    return any(_memory(part) for part in _walk(node))


def _mentions(node: c_ast.Node, target: c_ast.Node) -> bool:
    """Whether the value contains what it is assigned to."""
    wanted = _shape(target)
    return any(type(part) is type(target) and _shape(part) == wanted for part in _walk(node))


def _shape(node: c_ast.Node) -> tuple[object, ...]:
    own = tuple(getattr(node, name) for name in node.attr_names)
    return (type(node).__name__, own, *(_shape(child) for _, child in node.children()))


def _walk(node: c_ast.Node | None) -> Iterable[c_ast.Node]:
    if node is None:
        return
    yield node
    for _, child in node.children():
        yield from _walk(child)

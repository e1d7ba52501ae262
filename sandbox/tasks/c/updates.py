"""Which variables a loop changes, and by how much: plain counters are told from everything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pycparser import c_ast

_STEPS = {"++": 1, "p++": 1, "--": -1, "p--": -1}
_BRANCHES = (c_ast.If, c_ast.For, c_ast.While, c_ast.DoWhile, c_ast.Switch, c_ast.TernaryOp)


@dataclass
class Updates:
    """What happens to one variable inside a loop."""

    all: list[c_ast.Node] = field(default_factory=list)
    unconditional: list[c_ast.Node] = field(default_factory=list)  # run once in every iteration

    @property
    def only(self) -> c_ast.Node | None:
        """The one change, when there is exactly one and every iteration makes it."""
        return self.unconditional[0] if len(self.all) == 1 and self.unconditional else None


def updates(body: c_ast.Node | None, rest: Sequence[c_ast.Node | None]) -> dict[str, Updates]:
    """Variables that a loop's body changes, or its condition and step (`rest`), and that it does not
    declare."""
    found: dict[str, Updates] = {}
    skips = body is not None and leaves(body, (c_ast.Continue,))
    for node in (*rest, body):
        if node is None:
            continue
        for name, change in _changes(node):
            found.setdefault(name, Updates()).all.append(change)
        if node is not body or not skips:
            for name, change in _changes(node, branches=False):
                found.setdefault(name, Updates()).unconditional.append(change)
    for name in declared(body) if body is not None else ():
        found.pop(name, None)
    return found


def step(change: c_ast.Node) -> tuple[str, c_ast.Node | int] | None:
    """("+", amount) or ("-", amount) for counters, ("*", ...) or ("/", ...) for scaling; else None."""
    match change:
        case c_ast.UnaryOp(op=op) if op in _STEPS:
            return ("+", 1) if _STEPS[op] > 0 else ("-", 1)
        case c_ast.Assignment(op="+=" | "-=" | "*=" | "/=" as op, rvalue=amount):
            return op[0], amount
        case c_ast.Assignment(op="<<=", rvalue=amount):
            return "*", amount
        case c_ast.Assignment(op=">>=", rvalue=amount):
            return "/", amount
        case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=name), rvalue=c_ast.BinaryOp() as sum_):
            if sum_.op in ("+", "-", "*", "/") and isinstance(sum_.left, c_ast.ID) and sum_.left.name == name:
                return sum_.op, sum_.right
            if sum_.op in ("+", "*") and isinstance(sum_.right, c_ast.ID) and sum_.right.name == name:
                return sum_.op, sum_.left
    return None


def carried(nodes: Sequence[c_ast.Node | None]) -> set[str]:
    """What goes from one trip of a loop to the next: variables that its parts, in the order in which they
    run, use before they set them. An element of an array may always be an old one."""
    assigned: set[str] = set()
    used_first: set[str] = set()
    for node in nodes:
        for name, is_set in _uses(node) if node is not None else ():
            if is_set:
                assigned.add(name)
            elif name not in assigned:
                used_first.add(name)
    return used_first & assigned


def leaves(body: c_ast.Node, kinds: tuple[type, ...]) -> bool:
    """Whether the body of a loop has such a statement that belongs to this loop."""
    inside = _walk(body, stop=(c_ast.For, c_ast.While, c_ast.DoWhile))
    return any(isinstance(node, kinds) for node in inside)


def declared(node: c_ast.Node) -> set[str]:
    return {found.name for found in _walk(node) if isinstance(found, c_ast.Decl) and found.name}


def mentions(node: c_ast.Node, name: str) -> bool:
    return any(isinstance(found, c_ast.ID) and found.name == name for found in _walk(node))


def _uses(node: c_ast.Node) -> Iterator[tuple[str, bool]]:
    """Names in the order in which they are used (False) and set (True)."""
    match node:
        case c_ast.ID(name=name):
            yield name, False
        case c_ast.Assignment(op=op, lvalue=target, rvalue=value):
            yield from _uses(value)
            plain = isinstance(target, c_ast.ID)
            if op != "=" or not plain:
                yield from _uses(target)
            while isinstance(target, c_ast.ArrayRef):
                target = target.name
            if isinstance(target, c_ast.ID):
                yield target.name, True
        case _:
            for _, child in node.children():
                yield from _uses(child)


def _changes(node: c_ast.Node, branches: bool = True) -> Iterator[tuple[str, c_ast.Node]]:
    if not branches and isinstance(node, _BRANCHES):
        return
    for found in _walk(node, stop=() if branches else _BRANCHES, logical=branches):
        match found:
            case c_ast.Assignment(lvalue=c_ast.ID(name=name)):
                yield name, found
            case c_ast.UnaryOp(op="++" | "--" | "p++" | "p--" | "&", expr=c_ast.ID(name=name)):
                yield name, found


def _walk(node: c_ast.Node, stop: tuple[type, ...] = (), logical: bool = True) -> Iterator[c_ast.Node]:
    yield node
    for _, child in node.children():
        if isinstance(child, stop):
            continue
        if not logical and isinstance(child, c_ast.BinaryOp) and child.op in ("&&", "||"):
            continue
        yield from _walk(child, stop, logical)

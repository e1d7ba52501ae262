"""Pointers that change hands inside a loop: what each may point to at the start of any trip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pycparser import c_ast

from sandbox.tasks.c.ranges import Ranges
from sandbox.tasks.c.values import Address, Value, join


def pointees(
    entry: Mapping[str, Value], nodes: Sequence[c_ast.Node | None], ranges: Ranges
) -> dict[str, Value]:
    """New values for the pointers that the loop `nodes` may hand to each other: any of what those point to
    that `entry` holds, at an offset that is known only where they are handed on as they are."""
    passed = handed(nodes)
    starts: dict[str, Value] = {}
    for name in passed.sources:
        sources = passed.reach(name)
        value = entry.get(name)
        if not isinstance(value, Address):
            continue
        for source in sorted(sources):
            other = entry.get(source)
            value = join(value, other, ranges) if isinstance(other, Address) else value
        if isinstance(value, Address) and sources & passed.moved:
            value = replace(value, offset=None)
        starts[name] = value
    return starts


@dataclass
class Handed:
    """Which variables a loop may give each other's values."""

    sources: dict[str, set[str]] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)  # that are also given other places than others hold

    def reach(self, name: str) -> set[str]:
        """All whose value may end up in `name`, itself included."""
        seen, waiting = {name}, [name]
        while waiting:
            new = self.sources.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        return seen


def handed(nodes: Sequence[c_ast.Node | None]) -> Handed:
    """Variables whose address is taken may be given each other's values."""
    found = Handed()
    exposed: set[str] = set()
    for node in (inner for root in nodes if root is not None for inner in _walk(root)):
        match node:
            case (
                c_ast.Assignment(op="=", lvalue=c_ast.ID(name=name), rvalue=value)
                | c_ast.Decl(name=str(name), init=c_ast.Node() as value)
            ):
                found.sources.setdefault(name, set()).update(_pointers(value))
                if not isinstance(value, c_ast.ID):
                    found.moved.add(name)
            case c_ast.UnaryOp(op="&", expr=c_ast.ID(name=name)):
                exposed.add(name)
            case (
                c_ast.Assignment(lvalue=c_ast.ID(name=name))
                | c_ast.UnaryOp(op="++" | "--" | "p++" | "p--", expr=c_ast.ID(name=name))
            ):
                found.moved.add(name)
    for name in exposed:
        found.sources.setdefault(name, set()).update(exposed)
    return found


def _pointers(value: c_ast.Node | None) -> set[str]:
    """Variables that the value may be, or be at some distance from."""
    match value:
        case c_ast.ID(name=name):
            return {name}
        case c_ast.BinaryOp(op="+" | "-", left=left, right=right):
            return _pointers(left) | _pointers(right)
        case c_ast.TernaryOp(iftrue=left, iffalse=right):
            return _pointers(left) | _pointers(right)
        case c_ast.Cast(expr=inner) | c_ast.Assignment(rvalue=inner):
            return _pointers(inner)
        case c_ast.UnaryOp(op="&", expr=c_ast.ArrayRef(name=base)):
            return _pointers(base)
        case c_ast.UnaryOp(op="++" | "--" | "p++" | "p--", expr=inner):
            return _pointers(inner)
        case c_ast.ExprList(exprs=exprs):
            return _pointers(exprs[-1])
        case c_ast.FuncCall(args=c_ast.ExprList(exprs=exprs)):
            return {name for argument in exprs for name in _pointers(argument)}
    return set()


def _walk(node: c_ast.Node) -> Iterator[c_ast.Node]:
    yield node
    for _, child in node.children():
        yield from _walk(child)

"""Statements of C as data, and how a style writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Union

from trainer.data.grammar.style import Style

#: A line of C as it stands, a statement with blocks, or several of them.
Code = Union[str, "Loop", "If", "While", Sequence["Code"]]


@dataclass(frozen=True)
class Loop:
    """`var` from `low` up to, not including, `high`; or with `down` from `high` - 1 down to `low`."""

    var: str
    low: str
    high: str
    body: Code
    step: str = "1"
    down: bool = False


@dataclass(frozen=True)
class If:
    test: str
    then: Code
    other: Code = ()


@dataclass(frozen=True)
class While:
    test: str
    body: Code
    after: bool = False  # do { } while (test)


@dataclass
class Writer:
    """Writes statements in one style; collects the loop variables that are to be declared on top."""

    style: Style
    variables: list[str] = field(default_factory=list)

    def block(self, code: Code, depth: int) -> list[str]:
        lines: list[str] = []
        for statement in statements(code):
            lines += self._statement(statement, depth)
        return lines

    def _statement(self, code: str | Loop | If | While, depth: int) -> list[str]:
        pad = self.style.indent * depth
        match code:
            case str():
                return [pad + line if line else "" for line in code.split("\n")]
            case Loop():
                return self._loop(code, depth)
            case While():
                return self._while(code, depth)
            case If():
                return self._if(code, depth)

    def _loop(self, loop: Loop, depth: int) -> list[str]:
        style, v = self.style, loop.var
        kind = f"{style.index} " if style.declare == "loop" else ""
        if style.declare == "top" and v not in self.variables:
            self.variables.append(v)
        start = loop.low
        if loop.down:
            start = minus_one(loop.high)
            test = f"{v} >= {loop.low}"
        elif style.relation == "<=" and loop.step == "1":
            test = f"{v} <= {minus_one(loop.high)}"
        else:
            test = f"{v} < {loop.high}"
        step = style.increment.format(v=v)
        if loop.down:
            step = step.replace("++", "--").replace("+=", "-=")
        if loop.step != "1":
            step = f"{v} {'-' if loop.down else '+'}= {loop.step}"
        plain = not any(isinstance(s, str) and "continue;" in s for s in every(loop.body))
        if style.loop == "while" and plain:
            first = f"{v} = {start};"
            inner = [*statements(loop.body), f"{step};"]
            lines = self._with_block(f"while{style.space}({test})", inner, depth)
            return [style.indent * depth + first, *lines]
        header = f"for{style.space}({kind}{v} = {start}; {test}; {step})"
        return self._with_block(header, loop.body, depth)

    def _while(self, loop: While, depth: int) -> list[str]:
        if loop.after:
            lines = self._with_block("do", loop.body, depth, braces=True)
            return [*lines[:-1], f"{lines[-1]} while{self.style.space}({loop.test});"]
        return self._with_block(f"while{self.style.space}({loop.test})", loop.body, depth)

    def _if(self, branch: If, depth: int) -> list[str]:
        other = list(statements(branch.other))
        braces = bool(other) and len(list(statements(branch.then))) > 1
        lines = self._with_block(f"if{self.style.space}({branch.test})", branch.then, depth, braces=braces)
        if not other:
            return lines
        pad = self.style.indent * depth
        chained = len(other) == 1 and isinstance(other[0], If)
        if chained:
            rest = self._statement(other[0], depth)
            rest[0] = "else " + rest[0].lstrip()
        else:
            rest = self._with_block("else", other, depth, braces=braces)
            rest[0] = rest[0].lstrip()
        if lines[-1] == pad + "}" and self.style.braces != "allman":
            return [*lines[:-1], f"{pad}}} {rest[0]}", *rest[1:]]
        return [*lines, pad + rest[0], *rest[1:]]

    def _with_block(self, header: str, body: Code, depth: int, braces: bool = False) -> list[str]:
        pad = self.style.indent * depth
        inner = list(statements(body))
        # A dangling else would belong to the inner `if`.
        single = len(inner) == 1 and isinstance(inner[0], str) and "\n" not in inner[0]
        single = single and not str(inner[0]).startswith(("/*", "//"))
        if not self.style.always_braces and not braces and single:
            return [pad + header, *self.block(inner, depth + 1)]
        if self.style.braces == "allman":
            return [pad + header, pad + "{", *self.block(inner, depth + 1), pad + "}"]
        return [f"{pad}{header} {{", *self.block(inner, depth + 1), pad + "}"]


def statements(code: Code) -> Iterator[str | Loop | If | While]:
    """Flat, in order."""
    if isinstance(code, str | Loop | If | While):
        yield code
        return
    for part in code:
        yield from statements(part)


def every(code: Code) -> Iterator[str | Loop | If | While]:
    """All statements of this loop's own level and of branches in it, but of no inner loop."""
    for statement in statements(code):
        yield statement
        if isinstance(statement, If):
            yield from every(statement.then)
            yield from every(statement.other)


def minus_one(expression: str) -> str:
    """The expression less one, as a person would write it."""
    if expression.isdigit():
        return str(int(expression) - 1)
    match = re.fullmatch(r"(.*) ([+-]) (\d+)", expression)
    if match and not re.search(r"[-+?<>]", match[1]):
        value = int(match[3]) * (1 if match[2] == "+" else -1) - 1
        return match[1] if value == 0 else f"{match[1]} {'+' if value > 0 else '-'} {abs(value)}"
    return f"{expression} - 1"

"""What two CUDA sources have in common to a reviewer: their tokens, without comments and white space."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

#: Where the line or the spelling of white space decides what is compiled, every character is material.
_SPELLING_MATTERS = frozenset({"__LINE__", "__builtin_LINE", "source_location"})

_TOKEN = re.compile(
    r"""
      (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^\s()\\"]{0,16})\((?:.|\n)*?\)(?P=mark)")
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?)
    | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?)
    | (?P<comment>//[^\n]*|/\*(?:.|\n)*?(?:\*/|\Z))
    | (?P<number>\.?\d(?:[eEpP][+-]|'[0-9A-Za-z]|[0-9A-Za-z_.])*)
    | (?P<word>[A-Za-z_$\u0080-\U0010ffff][\w$]*)
    | (?P<newline>\n)
    | (?P<space>[^\S\n]+)
    | (?P<sign><<<|>>>|<<=|>>=|<=>|->\*|\.\.\.|\#\#|::|\.\*|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||
        \+=|-=|\*=|/=|%=|&=|\|=|\^=|(?:.))
    """,
    re.VERBOSE,
)
_INCLUDE = re.compile(r"(?m)^([^\S\n]*\#[^\S\n]*include[^\S\n]*)<([^>\n]*)>")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def one_line_ends(source: str) -> str:
    """With line feeds alone, as the judge reads it."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


def material(source: str) -> str:
    """What is left of a source when comments and white space do not count: one token a line."""
    source = one_line_ends(source)
    tokens = list(_tokens(source.replace("\\\n", "")))
    if _SPELLING_MATTERS.intersection(tokens) or _makes_strings(tokens):
        return source
    return "\n".join(tokens)


def material_sha256(source: str) -> str:
    """The same for two sources that differ in comments and white space alone."""
    return sha256(material(source))


def _tokens(source: str) -> Iterator[str]:
    """Directives end with their line; elsewhere lines do not count."""
    # Slashes in the name of a header begin no comment.
    source = _INCLUDE.sub(lambda m: f'{m[1]}"<{m[2]}>"', source)
    at_start, directive = True, False
    for match in _TOKEN.finditer(source):
        kind, text = match.lastgroup, match[0]
        match kind:
            case "newline":
                if directive:
                    yield "end of directive"
                at_start, directive = True, False
            case "space":
                pass
            case "comment":
                # A comment over several lines inside of a directive does not end it.
                pass
            case _:
                if at_start and text == "#":
                    directive = True
                at_start = False
                yield text
    if directive:
        yield "end of directive"


def _makes_strings(tokens: list[str]) -> bool:
    """Whether a macro turns its argument's spelling into a string: `#x` inside of a directive."""
    directive = False
    for token, following in zip(tokens, [*tokens, ""][1:], strict=True):
        if token == "end of directive":
            directive = False
        elif token == "#" and not directive:
            directive = True
        elif token == "#" and following.isidentifier():
            return True
    return False

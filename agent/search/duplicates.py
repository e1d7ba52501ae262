"""Which candidates are the same program: equal once comments, layout and the names it gives itself are gone.

Only names that the source declares are renamed, in the order in which they come, so two candidates that call
different functions or use different fields stay different. What is equal here compiles to the same code.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)"  # comments
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    r"|[A-Za-z_]\w*|\.?\d(?:[eEpP][-+]|[\w.])*|->|<<<|>>>|::|\s+|.",
    re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
#: What stands before a name that is being declared, besides a name: `float *x`, `T &y`, `vector<int> z`.
_BEFORE = frozenset("*&>")
_AFTER = frozenset("=;,)[({:")
#: Words before a name that make it a use, not a declaration.
_USES = frozenset(
    ("return", "else", "case", "goto", "sizeof", "new", "delete", "throw", "typename", "class", "struct")
)
_KEPT = frozenset(("launch", "main"))  # names with a meaning outside of the source


def normalised(source: str) -> str:
    """The source as its bare tokens. Preprocessor lines keep their ends, since those mean something."""
    tokens = _tokens(source)
    declared = _declared(tokens)
    numbers: dict[str, str] = {}
    said = []
    for before, token in zip(["", *tokens], tokens, strict=False):
        if token in declared and before not in (".", "->", "::"):
            token = numbers.setdefault(token, f"v{len(numbers)}")
        said.append(token)
    return " ".join(said)


def _tokens(source: str) -> list[str]:
    tokens: list[str] = []
    directive = False
    for match in _TOKEN.finditer(source):
        token = match.group()
        if token.isspace() or token.startswith(("//", "/*")):
            if directive and "\n" in token and not token.startswith("/*"):
                tokens.append("\n")
                directive = False
            continue
        if token == "\\" and directive:  # the line goes on
            continue
        directive = directive or token == "#"
        tokens.append(token)
    return tokens


def _declared(tokens: list[str]) -> frozenset[str]:
    """Names that stand where a declaration puts one. A product (`a * b;`) looks the same; then one name more
    is renamed, consistently, which makes no two programs equal that are not."""
    found = set()
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if not _NAME.match(token) or after not in _AFTER or token in _KEPT:
            continue
        named = _NAME.match(before) is not None and before not in _USES
        if named or before in _BEFORE:
            found.add(token)
    return frozenset(found - _functions_used_only(tokens))


def _functions_used_only(tokens: list[str]) -> set[str]:
    """Names called and never declared: `x * expf(y)` declares no expf."""
    called: set[str] = set()
    declared: set[str] = set()
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if after == "(" and _NAME.match(token):
            typed = _NAME.match(before) is not None and before not in _USES
            (declared if typed else called).add(token)
    return called - declared

"""Declarations of parameters and variables, with their initialisers."""

from __future__ import annotations

import re

from sandbox.ptx.model import Parameter, PtxError, Symbol, Variable
from sandbox.ptx.words import IDENTIFIER, number, type_bytes

_VARIABLE = re.compile(
    rf"(?P<linkage>(?:\.(?:visible|extern|weak|common)\s+)*)\.(?P<space>global|const|shared|local)\s*"
    rf"(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+(?P<align>\d+)\s*)?\.(?P<type>[a-z]\d+)\s+"
    rf"(?P<name>{IDENTIFIER})\s*(?P<dims>(?:\[[^\]]*\]\s*)*)(?:=\s*(?P<init>.*))?$",
    re.S,
)
_PARAMETER = re.compile(
    rf"\.param\s*(?:\.align\s+(?P<align>\d+)\s*)?\.(?P<type>[a-z]\d+)\s+"
    rf"(?:\.ptr\s*(?:\.[a-z]+\s*)*(?:\.align\s+(?P<pointee>\d+)\s*)?)?(?P<name>{IDENTIFIER})\s*"
    rf"(?P<dims>(?:\[[^\]]*\])*)$"
)
_ADDRESS = re.compile(rf"(?:generic\s*\(\s*({IDENTIFIER})\s*\)|({IDENTIFIER}))\s*(?:\+\s*(\d+))?$")


def parse_parameter(declaration: str, name: str | None = None, offset: int = 0) -> Parameter:
    """One `.param` declaration; it starts at `offset` or where its alignment allows."""
    match = _PARAMETER.match(declaration)
    if match is None:
        raise PtxError(f"parameter declaration not understood: {declaration!r}")
    size = type_bytes(match["type"])
    align = int(match["align"] or size)
    return Parameter(name or match["name"], size * _count(match["dims"]), align, -(-offset // align) * align)


def parse_parameters(text: str) -> tuple[Parameter, ...]:
    """A parameter list, without its parentheses."""
    found: list[Parameter] = []
    offset = 0
    for declaration in filter(None, map(str.strip, text.split(","))):
        found.append(parse_parameter(declaration, offset=offset))
        offset = found[-1].offset + found[-1].size
    return tuple(found)


def parameter_name(declaration: str) -> str:
    match = _PARAMETER.match(declaration)
    if match is None:
        raise PtxError(f"parameter declaration not understood: {declaration!r}")
    return match["name"]


def parse_variable(statement: str) -> Variable | None:
    """A variable declaration with its initialiser, without the semicolon."""
    match = _VARIABLE.match(statement)
    if match is None:
        return None
    size = type_bytes(match["type"])
    data: bytes | None = None
    addresses: tuple[tuple[int, Symbol], ...] = ()
    count = _count(match["dims"])
    if match["init"]:
        data, addresses = _initialiser(match["init"].strip(), match["type"])
        if match["dims"].replace(" ", "").startswith("[]"):
            count = len(data) // size
        data = data.ljust(size * count, b"\0")
    return Variable(
        name=match["name"],
        space=match["space"],
        size=size * count,
        align=int(match["align"] or size),
        data=data,
        addresses=addresses,
        external=".extern" in match["linkage"],
        visible=".visible" in match["linkage"] or ".weak" in match["linkage"],
    )


def _count(dims: str) -> int:
    """Elements of `[4][5]`; an empty extent counts as zero (dynamic shared memory)."""
    total = 1
    for extent in re.findall(r"\[([^\]]*)\]", dims):
        total *= int(extent.strip(), 0) if extent.strip() else 0
    return total


def _initialiser(text: str, kind: str) -> tuple[bytes, tuple[tuple[int, Symbol], ...]]:
    size = type_bytes(kind)
    data = bytearray()
    addresses: list[tuple[int, Symbol]] = []
    for item in filter(None, (part.strip() for part in text.replace("{", " ").replace("}", " ").split(","))):
        value = number(item)
        if value is None:
            inner = _ADDRESS.match(item)
            if inner is None or size != 8:
                raise PtxError(f"initialiser not understood: {item!r}")
            addresses.append((len(data), Symbol(inner[1] or inner[2], int(inner[3] or 0))))
            data += bytes(8)
        else:
            data += (value.value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return bytes(data), tuple(addresses)

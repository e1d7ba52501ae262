"""A parser of PTX as nvcc emits it.

`parse(text)` gives a `Module`. It accepts inline assembly too: several statements on one
line, nested scopes. What it does not understand raises PtxError, function bodies when they are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sandbox.ptx.body import BodyParser
from sandbox.ptx.declarations import parse_parameters, parse_variable
from sandbox.ptx.model import Files, Function, Functions, Module, PtxError, Variable
from sandbox.ptx.words import IDENTIFIER, skip_space, statement, strip_comments, type_bytes

__all__ = ["parameter_layout", "parse", "type_bytes"]

_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"[^\n]*')
_HEADER = re.compile(
    rf"(?P<linkage>(?:\.(?:visible|extern|weak)\s+)*)\.(?P<kind>entry|func)\s+"
    rf"(?:\.attribute\s*\([^)]*\)+\s*)?(?:\((?P<returns>[^)]*)\)\s*)?"
    rf"(?P<name>{IDENTIFIER})\s*(?:\((?P<parameters>[^)]*)\))?(?P<rest>[^{{;]*)",
    re.S,
)
_CLUSTER = re.compile(r"\.reqnctapercluster\s+([\d\s,]+)")
_MAXNTID = re.compile(r"\.maxntid\s+([\d\s,]+)")
_BRACE = re.compile(r"[{}]")
_ADDRESS_TAKEN = re.compile(rf"\b(?:mov|cvta)[\w.]*\s+[^,;]+,\s*({IDENTIFIER})\s*;")


# Where headers of the system and of CUDA are installed, by packages of either kind.
_TOOLKIT = re.compile(
    r"^/usr/(?!local/src/)|/cuda(?:-[\d.]+)?/(?:.*/)?include/|/site-packages/nvidia/|/targets/[^/]+/include/"
)


def parse(text: str, files: Files | None = None) -> Module:
    """Parses one PTX module; adds to `files`. Raises PtxError."""
    return _ModuleParser(text, files or Files()).parse()


def parameter_layout(text: str) -> dict[str, list[tuple[int, int]]]:
    """{mangled kernel: [(offset, bytes) of each parameter]} of a module, from its `.entry` headers alone."""
    stripped = strip_comments(text)
    layout: dict[str, list[tuple[int, int]]] = {}
    for header in _HEADER.finditer(stripped):
        if header["kind"] == "entry":
            parameters = parse_parameters(header["parameters"] or "")
            layout[header["name"]] = [(parameter.offset, parameter.size) for parameter in parameters]
    return layout


class _ModuleParser:
    def __init__(self, text: str, files: Files) -> None:
        self.text = strip_comments(text)
        self.files = files
        self.position = 0
        self.variables: dict[str, Variable] = {}
        self.headers: dict[str, re.Match[str]] = {}  # of functions with a body; the first of a name counts
        self.order: dict[str, int] = {}
        self.own_files = {
            number: name for number, name in _FILE.findall(self.text) if not _TOOLKIT.search(name)
        }
        self.version = ""
        self.target = ""

    def parse(self) -> Module:
        while True:
            self.position = skip_space(self.text, self.position)
            if self.position >= len(self.text):
                break
            self._item()
        return Module(
            self.version,
            self.target,
            tuple(self.variables.values()),
            Functions({name: self._later(header) for name, header in self.headers.items()}),
            frozenset(name for name, header in self.headers.items() if header["kind"] == "entry"),
            self.order,
            self._addressed(),
        )

    def _line(self) -> str:
        end = self.text.find("\n", self.position)
        end = len(self.text) if end < 0 else end
        line, self.position = self.text[self.position : end], end
        return line.strip()

    def _statement(self) -> str:
        text, self.position = statement(self.text, self.position)
        return text

    def _item(self) -> None:
        text, at = self.text, self.position
        if text.startswith((".version", ".target", ".address_size", ".file", ".loc ", ".loc\t"), at):
            line = self._line().split()
            if line[0] == ".version":
                self.version = line[1]
            elif line[0] == ".target":
                self.target = line[1].rstrip(",")
            return
        if text.startswith(".section", at):
            self.position = text.index("}", at) + 1
            return
        header = _HEADER.match(text, at)
        if header is not None:
            self._function(header)
            return
        if text.startswith((".pragma", ".alias"), at):
            self._statement()
            return
        declaration = self._statement()
        variable = parse_variable(declaration)
        if variable is None:
            raise PtxError(f"declaration not understood: {declaration[:80]!r}")
        if variable.name not in self.variables or self.variables[variable.name].external:
            self.variables[variable.name] = variable

    def _function(self, header: re.Match[str]) -> None:
        name = header["name"]
        self.order.setdefault(name, len(self.order))
        if self.text.startswith(";", header.end()):  # a declaration: a prototype or an external function
            self.position = header.end() + 1
            return
        self.headers.setdefault(name, header)
        depth = 0
        for brace in _BRACE.finditer(self.text, header.end()):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                self.position = brace.end()
                return
        raise PtxError("function body without an end")

    def _later(self, header: re.Match[str]) -> _LaterFunction:
        return _LaterFunction(self.text, header, self.own_files, self.files)

    def _addressed(self) -> frozenset[str]:
        found = set(_ADDRESS_TAKEN.findall(self.text))
        for variable in self.variables.values():
            found.update(symbol.name for _, symbol in variable.addresses)
        return frozenset(
            found & self.headers.keys() - {n for n, h in self.headers.items() if h["kind"] == "entry"}
        )


class _LaterFunction:
    """A function of which only the header was read."""

    def __init__(self, text: str, header: re.Match[str], own_files: Mapping[str, str], files: Files) -> None:
        self.text = text
        self.header = header
        self.own_files = own_files
        self.files = files

    def __call__(self) -> Function:
        header = self.header
        cluster = _product(_CLUSTER.search(header["rest"]))
        if cluster is not None and cluster > 1:
            raise PtxError(f"unsupported: a cluster of {cluster} blocks")
        body = BodyParser(self.text, header.end() + 1, self.own_files, self.files)
        body.parse()
        return Function(
            name=header["name"],
            entry=header["kind"] == "entry",
            parameters=parse_parameters(header["parameters"] or ""),
            returns=parse_parameters(header["returns"] or ""),
            registers=body.registers,
            variables=tuple(body.variables),
            locals=body.locals,
            body=tuple(body.items),
            max_threads=_product(_MAXNTID.search(header["rest"])),
            visible=bool(header["linkage"]),
        )


def _product(limits: re.Match[str] | None) -> int | None:
    if limits is None:
        return None
    threads = 1
    for extent in limits[1].split(","):
        threads *= int(extent)
    return threads

"""A parser of PTX as nvcc emits it.

`parse(text)` gives a `Module`. It accepts inline assembly too: several statements on one
line, nested scopes. What it does not understand raises PtxError.
"""

from __future__ import annotations

import re
import struct

from sandbox.ptx.model import (
    Address,
    Call,
    Function,
    Immediate,
    Instruction,
    Label,
    Module,
    Negated,
    Operand,
    Pair,
    Parameter,
    PtxError,
    Register,
    Symbol,
    Variable,
    Vector,
)

_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)
_SPACE = re.compile(r"\s*")
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_LOC = re.compile(
    r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:\s*,\s*function_name\s+[^,\n]+,\s*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?"
)
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"[^\n]*')
_GUARD = re.compile(r"@(!?)\s*(%?[\w$]+)\s+")
_OPCODE = re.compile(r"[a-z][\w.:]*")
_IDENTIFIER = r"[A-Za-z_$%][\w$.]*"
_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")
_FLOAT = re.compile(r"(-?)0([fFdD])([0-9a-fA-F]+)$")
_DECIMAL = re.compile(r"[-+]?\d+\.\d*(?:[eE][-+]?\d+)?$")
_NAME = re.compile(rf"({_IDENTIFIER})\s*(?:([+-])\s*(\d+|0[xX][0-9a-fA-F]+))?$")
_VARIABLE = re.compile(
    rf"(?P<linkage>(?:\.(?:visible|extern|weak|common)\s+)*)\.(?P<space>global|const|shared|local)\s*"
    rf"(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+(?P<align>\d+)\s*)?\.(?P<type>[a-z]\d+)\s+"
    rf"(?P<name>{_IDENTIFIER})\s*(?P<dims>(?:\[[^\]]*\]\s*)*)(?:=\s*(?P<init>.*))?$",
    re.S,
)
_PARAMETER = re.compile(
    rf"\.param\s*(?:\.align\s+(?P<align>\d+)\s*)?\.(?P<type>[a-z]\d+)\s+"
    rf"(?:\.ptr\s*(?:\.[a-z]+\s*)*(?:\.align\s+(?P<pointee>\d+)\s*)?)?(?P<name>{_IDENTIFIER})\s*"
    rf"(?P<dims>(?:\[[^\]]*\])*)$"
)
_HEADER = re.compile(
    rf"(?:\.(?:visible|extern|weak)\s+)*\.(?P<kind>entry|func)\s+(?:\((?P<returns>[^)]*)\)\s*)?"
    rf"(?P<name>{_IDENTIFIER})\s*(?:\((?P<parameters>[^)]*)\))?(?P<rest>[^{{;]*)",
    re.S,
)
_REG = re.compile(r"\.reg\s*\.(\w+)\s+(.*)$", re.S)
_CALL = re.compile(
    rf"(?:\((?P<returns>[^)]*)\)\s*,\s*)?(?P<callee>{_IDENTIFIER})\s*(?:,\s*\((?P<arguments>[^)]*)\))?"
    rf"\s*(?:,\s*(?P<prototype>{_IDENTIFIER}))?$",
    re.S,
)
_MAXNTID = re.compile(r"\.maxntid\s+([\d\s,]+)")


def parse(text: str) -> Module:
    """Parses one PTX module. Raises PtxError."""
    return _ModuleParser(text).parse()


def parameter_layout(text: str) -> dict[str, list[tuple[int, int]]]:
    """{mangled kernel: [(offset, bytes) of each parameter]} of a module, from its `.entry` headers alone."""
    stripped = _strip_comments(text)
    layout: dict[str, list[tuple[int, int]]] = {}
    for header in _HEADER.finditer(stripped):
        if header["kind"] == "entry":
            parameters = _parameters(header["parameters"] or "")
            layout[header["name"]] = [(parameter.offset, parameter.size) for parameter in parameters]
    return layout


def type_bytes(name: str) -> int:
    """Size of a PTX type: "b32" -> 4."""
    digits = name.lstrip("abcdefghijklmnopqrstuvwxyz")
    if not digits.isdigit():
        raise PtxError(f"unknown type .{name}")
    return int(digits) // 8


def _strip_comments(text: str) -> str:
    return _COMMENT.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)


def _count(dims: str) -> int:
    """Elements of `[4][5]`; an empty extent counts as zero (dynamic shared memory)."""
    total = 1
    for extent in re.findall(r"\[([^\]]*)\]", dims):
        total *= int(extent.strip(), 0) if extent.strip() else 0
    return total


def _parameters(text: str) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    offset = 0
    for declaration in filter(None, map(str.strip, text.split(","))):
        match = _PARAMETER.match(declaration)
        if match is None:
            raise PtxError(f"parameter declaration not understood: {declaration}")
        size = type_bytes(match["type"])
        align = int(match["align"] or size)
        offset = -(-offset // align) * align
        found.append(Parameter(match["name"], size * _count(match["dims"]), align, offset))
        offset += found[-1].size
    return tuple(found)


def number(text: str) -> Immediate | None:
    """An integer or floating-point literal, or None."""
    if _NUMBER.match(text):
        digits = text.rstrip("U")
        sign = -1 if digits[0] == "-" else 1
        digits = digits.lstrip("+-")
        octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
        return Immediate(sign * int(digits, 8 if octal else 0))
    match = _FLOAT.match(text)
    if match:
        bits = 32 if match[2] in "fF" else 64
        value = int(match[3], 16)
        return Immediate(value ^ (1 << (bits - 1)) if match[1] else value, bits)
    if _DECIMAL.match(text):
        return Immediate(int.from_bytes(struct.pack("<d", float(text)), "little"), 64)
    return None


class _ModuleParser:
    def __init__(self, text: str) -> None:
        self.text = _strip_comments(text)
        self.position = 0
        self.variables: list[Variable] = []
        self.functions: dict[str, Function] = {}
        self.files = {int(number_): name for number_, name in _FILE.findall(self.text)}
        self.version = ""
        self.target = ""

    def parse(self) -> Module:
        while self._skip_space():
            self._item()
        return Module(self.version, self.target, tuple(self.variables), self.functions, self.files)

    def _skip_space(self) -> bool:
        self.position = _SPACE.match(self.text, self.position).end()  # type: ignore[union-attr]
        return self.position < len(self.text)

    def _line(self) -> str:
        end = self.text.find("\n", self.position)
        end = len(self.text) if end < 0 else end
        line, self.position = self.text[self.position : end], end
        return line.strip()

    def _statement(self) -> str:
        end = self.text.find(";", self.position)
        if end < 0:
            raise PtxError(f"statement without an end: {self.text[self.position : self.position + 60]!r}")
        statement, self.position = self.text[self.position : end], end + 1
        return statement.strip()

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
        statement = self._statement()
        variable = parse_variable(statement)
        if variable is None:
            raise PtxError(f"declaration not understood: {statement[:80]!r}")
        self.variables.append(variable)

    def _function(self, header: re.Match[str]) -> None:
        self.position = header.end()
        entry = header["kind"] == "entry"
        if self.text[self.position] == ";":  # a declaration: a prototype or an external function
            self.position += 1
            return
        self.position += 1
        limits = _MAXNTID.search(header["rest"])
        threads = None
        if limits:
            threads = 1
            for extent in limits[1].split(","):
                threads *= int(extent)
        body = _BodyParser(self.text, self.position, self.files)
        body.parse()
        self.position = body.position
        name = header["name"]
        self.functions.setdefault(
            name,
            Function(
                name=name,
                entry=entry,
                parameters=_parameters(header["parameters"] or ""),
                returns=_parameters(header["returns"] or ""),
                registers=body.registers,
                variables=tuple(body.variables),
                locals=body.locals,
                body=tuple(body.items),
                max_threads=threads,
            ),
        )


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
    )


def _initialiser(text: str, kind: str) -> tuple[bytes, tuple[tuple[int, Symbol], ...]]:
    size = type_bytes(kind)
    data = bytearray()
    addresses: list[tuple[int, Symbol]] = []
    for item in filter(None, (part.strip() for part in text.replace("{", " ").replace("}", " ").split(","))):
        value = number(item)
        if value is None:
            inner = re.match(
                rf"(?:generic\s*\(\s*({_IDENTIFIER})\s*\)|({_IDENTIFIER}))\s*(?:\+\s*(\d+))?$", item
            )
            if inner is None or size != 8:
                raise PtxError(f"initialiser not understood: {item!r}")
            name = inner[1] or inner[2]
            addresses.append((len(data), Symbol(name, int(inner[3] or 0))))
            data += bytes(8)
        else:
            data += (value.value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return bytes(data), tuple(addresses)


class _BodyParser:
    """One function body: from after its opening brace to its closing one."""

    def __init__(self, text: str, position: int, files: dict[int, str]) -> None:
        self.text = text
        self.position = position
        self.own_files = {number_ for number_, name in files.items() if "/include/" not in name}
        self.scopes: list[dict[str, str]] = [{}]
        self.families: list[dict[str, str]] = [{}]  # "%r" -> unique prefix, of `.reg .b32 %r<61>`
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.locals: dict[str, Parameter] = {}
        self.items: list[Instruction | Label] = []
        self.line = 0
        self.seen: dict[tuple[str, str, str], int] = {}  # place -> line in the candidate's file
        self.scope_count = 0
        self.cache: dict[str, Operand] = {}

    def parse(self) -> None:
        text = self.text
        while True:
            self.position = _SPACE.match(text, self.position).end()  # type: ignore[union-attr]
            at = self.position
            if at >= len(text):
                raise PtxError("function body without an end")
            character = text[at]
            if character == "{":
                self.scopes.append({})
                self.families.append({})
                self.scope_count += 1
                self.cache = {}
                self.position += 1
            elif character == "}":
                self.position += 1
                self.scopes.pop()
                self.families.pop()
                self.cache = {}
                if not self.scopes:
                    return
            elif character == ";":
                self.position += 1
            elif character == ".":
                self._directive()
            else:
                label = _LABEL.match(text, at)
                if label is not None:
                    self.items.append(Label(label[1]))
                    self.position = label.end()
                    self._skip_label_directive(label[1])
                else:
                    self._instruction(self._statement())

    def _skip_label_directive(self, label: str) -> None:
        """`name: .branchtargets ...;` and `name: .callprototype ...;` are not code."""
        at = _SPACE.match(self.text, self.position).end()  # type: ignore[union-attr]
        if self.text.startswith((".branchtargets", ".callprototype", ".calltargets"), at):
            self.items.pop()
            self.position = at
            statement = self._statement()
            raise PtxError(
                f"unsupported: {statement.split()[0]} (indirect branch or call, {label})", self.line
            )

    def _statement(self) -> str:
        end = self.text.find(";", self.position)
        if end < 0:
            raise PtxError("statement without an end", self.line)
        statement, self.position = self.text[self.position : end], end + 1
        return statement.strip()

    def _directive(self) -> None:
        text = self.text
        loc = _LOC.match(text, self.position)
        if loc is not None:
            self._loc(loc)
            return
        if text.startswith((".loc ", ".loc\t", ".file"), self.position):
            self.position = text.find("\n", self.position)
            return
        statement = self._statement()
        if statement.startswith(".reg"):
            self._declare_registers(statement)
        elif statement.startswith(".param"):
            self._declare_parameter(statement)
        elif not statement.startswith((".pragma", ".noreturn")):
            variable = parse_variable(statement)
            if variable is None:
                raise PtxError(f"declaration not understood: {statement[:80]!r}", self.line)
            self.variables.append(variable)

    def _loc(self, match: re.Match[str]) -> None:
        """The innermost place in the candidate's own file: the place itself, else where it was inlined."""
        self.position = match.end()
        place = (match[1], match[2], match[3])
        line = 0
        if int(match[1]) in self.own_files:
            line = int(match[2])
        if line == 0 and match[4]:
            outer = (match[4], match[5], match[6])
            line = int(match[5]) if int(match[4]) in self.own_files else self.seen.get(outer, 0)
        if line == 0:
            line = self.line  # "line 0" marks code that nvcc moved: it stays with what comes before
        self.seen[place] = line
        self.line = line

    def _declare_registers(self, statement: str) -> None:
        match = _REG.match(statement)
        if match is None:
            raise PtxError(f"register declaration not understood: {statement!r}", self.line)
        if match[1].startswith("v"):
            raise PtxError(f"unsupported: vector register {statement!r}", self.line)
        kind = match[1] if match[1] == "pred" else f"b{type_bytes(match[1]) * 8}"
        suffix = f"@{self.scope_count}" if len(self.scopes) > 1 else ""
        for name in (part.strip() for part in match[2].split(",")):
            family = re.match(r"(%?[\w$]+)<(\d+)>$", name)
            if family is not None:
                self.families[-1][family[1]] = suffix
                for index in range(int(family[2])):
                    self.registers[f"{family[1]}{index}{suffix}"] = kind
                    if suffix:
                        self.scopes[-1][f"{family[1]}{index}"] = f"{family[1]}{index}{suffix}"
            else:
                self.registers[name + suffix] = kind
                self.scopes[-1][name] = name + suffix
        self.cache = {}

    def _declare_parameter(self, statement: str) -> None:
        match = _PARAMETER.match(statement)
        if match is None:
            raise PtxError(f"parameter declaration not understood: {statement!r}", self.line)
        size = type_bytes(match["type"])
        unique = f"{match['name']}@{self.scope_count}"
        self.locals[unique] = Parameter(
            unique, size * _count(match["dims"]), int(match["align"] or size), offset=0
        )
        self.scopes[-1][match["name"]] = unique
        self.cache = {}

    def _resolve(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def _name(self, name: str, offset: int = 0) -> Register | Symbol:
        resolved = self._resolve(name)
        if resolved in self.registers:
            return Register(resolved)
        return Symbol(resolved, offset)

    def _instruction(self, statement: str) -> None:
        guard, negated = None, False
        match = _GUARD.match(statement)
        if match is not None:
            guard, negated = Register(self._resolve(match[2])), match[1] == "!"
            statement = statement[match.end() :]
        opcode_match = _OPCODE.match(statement)
        if opcode_match is None:
            raise PtxError(f"statement not understood: {statement[:80]!r}", self.line)
        opcode = opcode_match[0]
        rest = statement[opcode_match.end() :].strip()
        parts = tuple(opcode.split("."))
        if parts[0] == "call":
            call = self._call(rest)
            self.items.append(Instruction(opcode, parts, (), guard, negated, self.line, call))
            return
        try:
            operands = tuple(self._operand(part) for part in _split_operands(rest)) if rest else ()
        except PtxError as error:
            raise PtxError(f"unsupported: {opcode}: {error.message}", self.line) from error
        self.items.append(Instruction(opcode, parts, operands, guard, negated, self.line))

    def _call(self, text: str) -> Call:
        match = _CALL.match(text)
        if match is None:
            raise PtxError(f"call not understood: {text[:80]!r}", self.line)
        if match["prototype"] or self._resolve(match["callee"]) in self.registers:
            raise PtxError("unsupported: call through a function pointer", self.line)

        def names(group: str) -> tuple[str, ...]:
            return tuple(
                self._resolve(part.strip()) for part in (match[group] or "").split(",") if part.strip()
            )

        return Call(names("returns"), match["callee"], names("arguments"))

    def _operand(self, text: str) -> Operand:
        cached = self.cache.get(text, self)
        if cached is not self:
            return cached  # type: ignore[return-value]
        operand = self._parse_operand(text)
        self.cache[text] = operand
        return operand

    def _parse_operand(self, text: str) -> Operand:
        if text == "_":
            return None
        if text[0] == "[":
            return self._address(text[1:-1].strip())
        if text[0] == "{":
            return Vector(tuple(self._operand(part) for part in _split_operands(text[1:-1])))
        if text[0] == "!":
            return Negated(Register(self._resolve(text[1:].strip())))
        value = number(text)
        if value is not None:
            return value
        if "|" in text:
            first, second = (
                None if part.strip() == "_" else Register(self._resolve(part.strip()))
                for part in text.split("|")
            )
            return Pair(first, second)
        match = _NAME.match(text)
        if match is None:
            raise PtxError(f"operand not understood: {text!r}", self.line)
        offset = int(match[3], 0) * (-1 if match[2] == "-" else 1) if match[3] else 0
        return self._name(match[1], offset)

    def _address(self, text: str) -> Address:
        absolute = number(text)
        if absolute is not None:
            return Address(absolute)
        base, separator, offset_text = text.partition("+")
        if not separator and (match := re.match(rf"({_IDENTIFIER})\s*-\s*(\d+)$", text)):
            base, offset_text = match[1], f"-{match[2]}"
        offset = number(offset_text.strip()) if offset_text else Immediate(0)
        if offset is None or "," in text:
            raise PtxError(f"address [{text}] not understood", self.line)
        name = self._name(base.strip())
        return Address(name, offset.value)


def _split_operands(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    if "{" not in text and "[" not in text and "(" not in text:
        return [part.strip() for part in text.split(",")]
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return parts

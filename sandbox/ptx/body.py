"""Parsing of one function body: statements, scopes, source lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from sandbox.ptx.declarations import parameter_name, parse_parameter, parse_parameters, parse_variable
from sandbox.ptx.model import (
    Address,
    Call,
    Files,
    Immediate,
    Instruction,
    Label,
    Minus,
    Negated,
    Operand,
    Pair,
    Parameter,
    Part,
    Prototype,
    PtxError,
    Register,
    Symbol,
    Texel,
    Variable,
    Vector,
)
from sandbox.ptx.words import IDENTIFIER, number, skip_space, split_operands, statement, type_bytes

_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_LOC = re.compile(
    r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:\s*,\s*function_name\s+[^,\n]+,\s*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?"
)
_GUARD = re.compile(r"@(!?)\s*(%?[\w$]+)\s+")
_OPCODE = re.compile(r"[a-z][\w.:]*")
_NAME = re.compile(rf"({IDENTIFIER})\s*(?:([+-])\s*(\d+|0[xX][0-9a-fA-F]+))?$")
_REG = re.compile(r"\.reg\s*\.(\w+)\s+(.*)$", re.S)
_CALL = re.compile(
    rf"(?:\((?P<returns>[^)]*)\)\s*,\s*)?(?P<callee>{IDENTIFIER})\s*(?:,\s*\((?P<arguments>[^)]*)\))?"
    rf"\s*(?:,\s*(?P<prototype>{IDENTIFIER}))?$",
    re.S,
)
_PROTOTYPE = re.compile(r"\.callprototype\s*(?:\((?P<returns>[^)]*)\))?\s*_\s*(?:\((?P<parameters>[^)]*)\))?")


class BodyParser:
    """One function body: from after its opening brace to its closing one."""

    def __init__(self, text: str, position: int, own_files: Mapping[str, str], files: Files) -> None:
        self.text = text
        self.position = position
        self.own_files = own_files  # name of each of the user's, by number in the PTX
        self.files = files
        self.scopes: list[dict[str, str]] = [{}]
        self.scope_numbers = [0]
        self.parameter_ends = [0]  # of the `.param` variables of each open scope; closed ones give room back
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.locals: dict[str, Parameter] = {}
        self.items: list[Instruction | Label] = []
        self.line = 0
        self.seen: dict[tuple[str, str, str], int] = {}  # `.loc` -> place in the user's files
        self.scope_count = 0
        self.cache: dict[str, Operand] = {}
        self.prototypes: dict[str, Prototype] = {}  # of `.callprototype`, by label
        self.lists: dict[str, tuple[str, ...]] = {}  # of `.branchtargets` and `.calltargets`
        self.inner_labels: set[str] = set()  # unique names of labels in nested scopes
        self.branches: list[tuple[int, tuple[int, ...]]] = []  # in nested scopes: item, scopes around it

    def parse(self) -> None:
        text = self.text
        while True:
            self.position = skip_space(text, self.position)
            at = self.position
            if at >= len(text):
                raise PtxError("function body without an end")
            character = text[at]
            if character == "{":
                self.scope_count += 1
                self.scopes.append({})
                self.scope_numbers.append(self.scope_count)
                self.parameter_ends.append(self.parameter_ends[-1])
                self.cache = {}
                self.position += 1
            elif character == "}":
                self.position += 1
                self.scopes.pop()
                self.scope_numbers.pop()
                self.parameter_ends.pop()
                self.cache = {}
                if not self.scopes:
                    self._resolve_labels()
                    return
            elif character == ";":
                self.position += 1
            elif character == ".":
                self._directive()
            else:
                label = _LABEL.match(text, at)
                if label is not None:
                    self.position = label.end()
                    if not self._label_directive(label[1]):
                        self._place_label(label[1])
                else:
                    self._instruction(self._statement())

    def _label_directive(self, label: str) -> bool:
        """`name: .branchtargets ...;` and its like are not code."""
        at = skip_space(self.text, self.position)
        if not self.text.startswith((".branchtargets", ".callprototype", ".calltargets"), at):
            return False
        text, self.position = statement(self.text, at)
        if text.startswith(".callprototype"):
            match = _PROTOTYPE.match(text)
            if match is None:
                raise PtxError(f"declaration not understood: {text[:80]!r}", self.line)
            returns, parameters = (
                tuple(parameter.size for parameter in parse_parameters(match[group] or ""))
                for group in ("returns", "parameters")
            )
            self.prototypes[label] = Prototype(returns, parameters)
        else:
            self.lists[label] = tuple(part.strip() for part in text.split(None, 1)[1].split(","))
        return True

    def _statement(self) -> str:
        try:
            text, self.position = statement(self.text, self.position)
        except PtxError as error:
            raise PtxError(error.message, self.line) from error
        return text

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
            self._declare_variable(statement)

    def _loc(self, match: re.Match[str]) -> None:
        """The innermost place in the user's own files: the place itself, else where it was inlined."""
        self.position = match.end()
        here = (match[1], match[2], match[3])
        place = self._own_place(match[1], match[2])
        if place == 0 and match[4]:
            outer = (match[4], match[5], match[6])
            place = self._own_place(match[4], match[5]) or self.seen.get(outer, 0)
        if place == 0:
            place = self.line  # "line 0" marks code that nvcc moved: it stays with what comes before
        self.seen[here] = place
        self.line = place

    def _own_place(self, file: str, line: str) -> int:
        name = self.own_files.get(file)
        return 0 if name is None or line == "0" else self.files.place(name, int(line))

    def _declare_registers(self, statement: str) -> None:
        match = _REG.match(statement)
        if match is None:
            raise PtxError(f"register declaration not understood: {statement!r}", self.line)
        if match[1].startswith("v"):
            raise PtxError(f"unsupported: vector register {statement!r}", self.line)
        kind = match[1] if match[1] == "pred" else f"b{type_bytes(match[1]) * 8}"
        suffix = f"@{self.scope_numbers[-1]}" if len(self.scopes) > 1 else ""
        for name in (part.strip() for part in match[2].split(",")):
            family = re.match(r"(%?[\w$]+)<(\d+)>$", name)
            if family is not None:
                for index in range(int(family[2])):
                    self.registers[f"{family[1]}{index}{suffix}"] = kind
                    if suffix:
                        self.scopes[-1][f"{family[1]}{index}"] = f"{family[1]}{index}{suffix}"
            else:
                self.registers[name + suffix] = kind
                self.scopes[-1][name] = name + suffix
        self.cache = {}

    def _declare_parameter(self, statement: str) -> None:
        name = parameter_name(statement)
        unique = f"{name}@{self.scope_numbers[-1]}"
        parameter = parse_parameter(statement, unique, self.parameter_ends[-1])
        self.parameter_ends[-1] = parameter.offset + parameter.size
        self.locals[unique] = parameter
        self.scopes[-1][name] = unique
        self.cache = {}

    def _declare_variable(self, statement: str) -> None:
        variable = parse_variable(statement)
        if variable is None:
            raise PtxError(f"declaration not understood: {statement[:80]!r}", self.line)
        if len(self.scopes) > 1:
            unique = f"{variable.name}@{self.scope_numbers[-1]}"
            self.scopes[-1][variable.name] = unique
            variable = replace(variable, name=unique)
            self.cache = {}
        self.variables.append(variable)

    # Labels ---------------------------------------------------------------------------------------------

    def _place_label(self, name: str) -> None:
        if len(self.scopes) > 1:
            name = f"{name}@{self.scope_numbers[-1]}"
            self.inner_labels.add(name)
        self.items.append(Label(name))

    def _resolve_labels(self) -> None:
        """Branches in nested scopes go to the label of the innermost scope around them that has it."""
        for index, scopes in self.branches:
            item = self.items[index]
            assert isinstance(item, Instruction)

            def inner(name: str, scopes: tuple[int, ...] = scopes) -> str:
                names = (f"{name}@{scope}" for scope in reversed(scopes))
                return next((unique for unique in names if unique in self.inner_labels), name)

            operands = tuple(
                Symbol(inner(operand.name)) if isinstance(operand, Symbol) else operand
                for operand in item.operands
            )
            self.items[index] = replace(item, operands=operands, targets=tuple(map(inner, item.targets)))

    # Names ----------------------------------------------------------------------------------------------

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

    def _part(self, name: str) -> Part | None:
        """Of a register that is declared: `%tid.x` is no part of `%tid`."""
        base, _, selector = name.rpartition(".")
        register = self._resolve(base)
        return Part(Register(register), selector) if register in self.registers else None

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
            operands = tuple(self._operand(part) for part in split_operands(rest)) if rest else ()
        except PtxError as error:
            raise PtxError(f"unsupported: {opcode}: {error.message}", self.line) from error
        targets: tuple[str, ...] = ()
        if parts[0] in ("bra", "brx"):
            if len(self.scopes) > 1:
                self.branches.append((len(self.items), tuple(self.scope_numbers)))
            if parts[0] == "brx":
                operands, targets = operands[:1], self._branch_targets(operands)
        self.items.append(Instruction(opcode, parts, operands, guard, negated, self.line, targets=targets))

    def _branch_targets(self, operands: tuple[Operand, ...]) -> tuple[str, ...]:
        name = operands[1] if len(operands) == 2 else None
        if not isinstance(name, Symbol) or name.name not in self.lists:
            raise PtxError("unsupported: brx.idx without its list of targets", self.line)
        return self.lists[name.name]

    def _call(self, text: str) -> Call:
        match = _CALL.match(text)
        if match is None:
            raise PtxError(f"call not understood: {text[:80]!r}", self.line)

        def names(group: str) -> tuple[str, ...]:
            return tuple(
                self._resolve(part.strip()) for part in (match[group] or "").split(",") if part.strip()
            )

        callee = self._resolve(match["callee"])
        if callee not in self.registers:
            return Call(names("returns"), match["callee"], names("arguments"))
        prototype, targets = self.prototypes.get(match["prototype"]), self.lists.get(match["prototype"], ())
        if prototype is None and not targets:
            raise PtxError("unsupported: call through a register without its prototype", self.line)
        return Call(names("returns"), Register(callee), names("arguments"), prototype, targets)

    def _operand(self, text: str) -> Operand:
        cached = self.cache.get(text, self)
        if cached is not self:
            return cached  # type: ignore[return-value]
        operand = self._parse_operand(text)
        self.cache[text] = operand
        return operand

    def _parse_operand(self, text: str) -> Operand:
        if not text:
            raise PtxError("an operand is missing", self.line)
        if text == "_":
            return None
        if text[0] == "[":
            return self._address(text[1:-1].strip())
        if text[0] == "{":
            return Vector(tuple(self._operand(part) for part in split_operands(text[1:-1])))
        if text[0] == "!":
            return Negated(Register(self._resolve(text[1:].strip())))
        value = number(text)
        if value is not None:
            return value
        if text[0] == "-":
            inner = self._operand(text[1:].strip())
            if isinstance(inner, Register | Part):
                return Minus(inner)
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
        return self._part(match[1]) or self._name(match[1], offset)

    def _address(self, text: str) -> Address | Texel:
        image, comma, coordinates = text.partition(",")
        if comma and (given := coordinates.strip()).startswith("{"):
            items = tuple(self._operand(part) for part in split_operands(given[1:-1]))
            return Texel(self._name(image.strip()), Vector(items))
        absolute = number(text)
        if absolute is not None:
            return Address(absolute)
        base, separator, offset_text = text.partition("+")
        if not separator and (match := re.match(rf"({IDENTIFIER})\s*-\s*(\d+)$", text)):
            base, offset_text = match[1], f"-{match[2]}"
        offset = number(offset_text.strip()) if offset_text else Immediate(0)
        if offset is None or "," in text:
            raise PtxError(f"address [{text}] not understood", self.line)
        name = self._name(base.strip())
        return Address(name, offset.value)

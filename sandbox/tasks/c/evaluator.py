"""Expressions of the user's C, evaluated to polynomials and addresses; every load and store is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Literal

from pycparser import c_ast

from sandbox.tasks.c.ctype import CType, resolve
from sandbox.tasks.c.facts import Access, Analysis, IndexUse, Loop
from sandbox.tasks.c.formals import Formal
from sandbox.tasks.c.parse import Program
from sandbox.tasks.c.polynomial import ONE, ZERO, Polynomial
from sandbox.tasks.c.ranges import NOTHING, ZERO_OR_ONE, Range, Ranges
from sandbox.tasks.c.updates import mentions
from sandbox.tasks.c.values import UNKNOWN, Address, Number, Value, divide, join, lone, pinned, remainder

Fact = tuple[str, bool, Polynomial]

_COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
_FLIPPED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_LARGEST_CONSTANT = 1 << 40
_SMALL_TYPES = {"uint8": 255, "bool": 1}  # whose largest value bounds what they index
LOCAL_INTEGERS = "#integers"  # an Address in an integer array of the function's own


class Evaluator:
    """Holds what is known while the walk goes on. Statements are `sandbox.tasks.c.walk.Walker`'s."""

    def __init__(self, program: Program, formals: list[Formal]) -> None:
        self.program = program
        self.formals = {formal.name: formal for formal in formals}
        self.ranges = Ranges()
        self.analysis = Analysis()
        self.env: dict[str, Value] = {}
        self.loops: list[Loop] = []
        self.since: dict[str, int] = {}  # local variable -> number of loops around its last fresh value
        self.branches = 0  # conditional statements around where the walk stands
        self.operations = 0  # since the innermost loop began, without inner loops
        self._loaded: dict[tuple[str, Polynomial], Polynomial] = {}  # values of integer arrays
        self._origins: dict[str, tuple[str, Polynomial]] = {}  # symbol of a loaded value -> array, offset
        self._silent = 0
        self._constants = _enumerators(program)

    # ---- values

    def evaluate(self, node: c_ast.Node | None) -> Value:
        match node:
            case None:
                return UNKNOWN
            case c_ast.Constant():
                return self._constant(node)
            case c_ast.ID(name=name):
                return self.env.get(name) or Number(self._constants.get(name))
            case c_ast.BinaryOp():
                return self._binary(node)
            case c_ast.UnaryOp():
                return self._unary(node)
            case c_ast.Assignment():
                return self._assignment(node)
            case c_ast.ArrayRef():
                return self._element(node)
            case c_ast.TernaryOp():
                return self._ternary(node)
            case c_ast.Cast():
                return self._cast(node)
            case c_ast.FuncCall():
                return self.call(node)
            case c_ast.ExprList():
                values = [self.evaluate(part) for part in node.exprs]
                return values[-1] if values else UNKNOWN
            case _:
                for _, child in node.children():
                    self.evaluate(child)
                return UNKNOWN

    def call(self, node: c_ast.FuncCall) -> Value:
        raise NotImplementedError

    def number(self, node: c_ast.Node | None) -> Polynomial | None:
        value = self.evaluate(node)
        return value.poly if isinstance(value, Number) else None

    def peek(self, node: c_ast.Node | None) -> Value:
        """The value without a trace: nothing is recorded, no variable changes."""
        with self.silence():
            before = dict(self.env)
            value = self.evaluate(node)
            self.env = before
        return value

    @contextmanager
    def silence(self) -> Iterator[None]:
        self._silent += 1
        operations = self.operations
        try:
            yield
        finally:
            self._silent -= 1
            self.operations = operations

    def _constant(self, node: c_ast.Constant) -> Number:
        if node.type == "char":
            text = node.value.strip("'")
            return Number(Polynomial.constant(ord(text)) if len(text) == 1 else None)
        if "int" not in node.type and "long" not in node.type:
            return UNKNOWN
        digits = node.value.rstrip("uUlL")
        base = 8 if len(digits) > 1 and digits[0] == "0" and digits[1:].isdigit() else 0
        value = int(digits, base)
        return Number(Polynomial.constant(value) if value < _LARGEST_CONSTANT else None)

    def _binary(self, node: c_ast.BinaryOp) -> Value:
        self.operations += 1
        if node.op in ("&&", "||"):
            self.evaluate(node.left)
            with self.ranges.assuming(self.facts(node.left, node.op == "&&")):
                self.evaluate(node.right)
            return Number(self.ranges.fresh("logical", ZERO_OR_ONE))
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        if isinstance(left, Address) or isinstance(right, Address):
            return _pointer_sum(node.op, left, right)
        if left.poly is None or right.poly is None:
            if node.op == "%" and right.poly is not None:
                return Number(self.ranges.fresh("remainder", Range((1 - right.poly,), (right.poly - 1,))))
            if node.op == "&" and right.poly is not None:
                return Number(self.ranges.fresh("masked", Range((ZERO,), (right.poly,))))
            return Number(self.ranges.fresh("compared", ZERO_OR_ONE)) if node.op in _COMPARISONS else UNKNOWN
        return Number(self._arithmetic(node.op, left.poly, right.poly))

    def _arithmetic(self, op: str, left: Polynomial, right: Polynomial) -> Polynomial | None:
        shift = right.as_constant
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return divide(left, right, self.ranges)
            case "%":
                return remainder(left, right, self.ranges)
            case "<<" if shift is not None and 0 <= shift < 32:
                return left * (1 << shift)
            case ">>" if shift is not None and 0 <= shift < 32:
                return divide(left, Polynomial.constant(1 << shift), self.ranges)
            case "&":
                return self.ranges.fresh("masked", Range((ZERO,), (right,)))
            case _ if op in _COMPARISONS:
                return self.ranges.fresh("compared", ZERO_OR_ONE)
        return None

    def _unary(self, node: c_ast.UnaryOp) -> Value:
        match node.op:
            case "sizeof":
                return Number(_size_of(node.expr, self.program))
            case "*":
                pointer = self.evaluate(node.expr)
                if isinstance(pointer, Address):
                    return pointer.item(ZERO) if pointer.dims else self._loaded_from(pointer.item(ZERO), node)
                return UNKNOWN
            case "&":
                return self._place(node.expr)
            case "++" | "--" | "p++" | "p--":
                return self._crement(node)
        value = self.evaluate(node.expr)
        self.operations += 1
        if isinstance(value, Number) and value.poly is not None:
            if node.op == "-":
                return Number(-value.poly)
            if node.op == "+":
                return value
            if node.op == "!":
                return Number(self.ranges.fresh("logical", ZERO_OR_ONE))
        return UNKNOWN

    def _crement(self, node: c_ast.UnaryOp) -> Value:
        by = 1 if "+" in node.op else -1
        before = self.evaluate(node.expr)
        self.operations += 1
        after: Value
        if isinstance(before, Address):
            after = before.moved(Polynomial.constant(by))
        else:
            after = Number(before.poly + by) if before.poly is not None else UNKNOWN
        self.store(node.expr, after, accumulates=True)
        return before if node.op.startswith("p") else after

    def _assignment(self, node: c_ast.Assignment) -> Value:
        value = self.evaluate(node.rvalue)
        accumulates = node.op != "="
        if accumulates:
            before = self.evaluate(node.lvalue)
            self.operations += 1
            op = node.op[:-1]
            if isinstance(before, Address) or isinstance(value, Address):
                value = _pointer_sum(op, before, value)
            elif before.poly is not None and value.poly is not None:
                value = Number(self._arithmetic(op, before.poly, value.poly))
            else:
                value = UNKNOWN
        elif isinstance(node.lvalue, c_ast.ID):
            accumulates = mentions(node.rvalue, node.lvalue.name)
        self.store(node.lvalue, value, accumulates)
        return value

    def _ternary(self, node: c_ast.TernaryOp) -> Value:
        self.evaluate(node.cond)
        with self.ranges.assuming(self.facts(node.cond, True)):
            first = pinned(self.evaluate(node.iftrue), self.ranges)
        with self.ranges.assuming(self.facts(node.cond, False)):
            second = pinned(self.evaluate(node.iffalse), self.ranges)
        return join(first, second, self.ranges)

    def _cast(self, node: c_ast.Cast) -> Value:
        value = self.evaluate(node.expr)
        target = resolve(node.to_type, self.program.typedefs)
        if isinstance(value, Number) and value.poly is None and target.is_integer:
            self.analysis.float_to_integer = True
            return Number(self.ranges.fresh("cast", NOTHING))
        return UNKNOWN if target.is_float else value

    # ---- memory

    def _element(self, node: c_ast.ArrayRef) -> Value:
        """`a[i]`: a load, or for arrays of arrays the row."""
        start, index = self.evaluate(node.name), self.number(node.subscript)
        if not isinstance(start, Address):
            return UNKNOWN
        place = start.item(index)
        return place if start.dims else self._loaded_from(place, node)

    def _place(self, node: c_ast.Node) -> Value:
        """The address of an lvalue."""
        match node:
            case c_ast.ArrayRef(name=base, subscript=subscript):
                start, index = self.evaluate(base), self.number(subscript)
                return start.item(index) if isinstance(start, Address) else Address("", None)
            case c_ast.UnaryOp(op="*", expr=pointer):
                start = self.evaluate(pointer)
                return start.item(ZERO) if isinstance(start, Address) else Address("", None)
            case c_ast.ID(name=name):
                value = self.env.get(name)
                return value if isinstance(value, Address) and value.dims else Address("", None)
            case _:
                self.evaluate(node)
                return Address("", None)

    def store(self, target: c_ast.Node, value: Value, accumulates: bool) -> None:
        if isinstance(target, c_ast.ID):
            name = target.name
            if name not in self.env and name in self.program.globals and not self._silent:
                line = target.coord.line if target.coord is not None else None
                self.analysis.written_globals.append((name, line))
            self.env[name] = value
            depth = self.since.get(name, len(self.loops))
            if self.branches and depth < len(self.loops):
                accumulates = True  # one candidate of many is kept: a minimum, a maximum, where it stands
            elif isinstance(value, Address) or value.poly is not None:
                return  # a counter, not a sum
            if accumulates:
                self.note_reduction(self.loops[depth:])
            else:
                self.since[name] = len(self.loops)
            return
        place = self._place(target)
        for one in place.each() if isinstance(place, Address) else ():
            if one.array in self.formals:
                self._store_at(one, value, target)

    def _store_at(self, place: Address, value: Value, target: c_ast.Node) -> None:
        if value == UNKNOWN and not self.formals[place.array].dtype.startswith("float"):
            self.analysis.float_to_integer = True
        self.touch(place, "write", target)
        if place.offset is not None:
            used = place.offset.symbols
            if self.ranges.varies(place.offset) and not any(loop.symbols & used for loop in self.loops):
                self.analysis.scattered.add(place.array)
            self.note_reduction([loop for loop in self.loops if not loop.symbols & used])

    def touch(
        self, place: Address, kind: Literal["read", "write"], node: c_ast.Node, span: Polynomial = ONE
    ) -> None:
        """Records an access to `span` elements from `place` on."""
        self.operations += 1
        if self._silent:
            return
        first = last = None
        if place.offset is not None:
            self._note_index(place.array, place.offset, kind)
            first, last = self.ranges.lower(place.offset), self.ranges.upper(place.offset + span - 1)
        line = node.coord.line if node.coord is not None else None
        self.analysis.accesses.append(Access(place.array, kind, place.offset, last, first, line))
        if kind == "write":
            self._loaded = {key: value for key, value in self._loaded.items() if key[0] != place.array}

    def note_reduction(self, loops: list[Loop]) -> None:
        """One place takes something from every trip of these loops."""
        if self._silent:
            return
        length = ONE
        for loop in loops:
            if loop.trips is not None:
                length = length * loop.trips
        if length != ONE:
            self.analysis.reductions.append(length)

    def _loaded_from(self, place: Value, node: c_ast.Node) -> Value:
        if not isinstance(place, Address):
            return UNKNOWN
        if place.others:
            found = [self._loaded_from(one, node) for one in place.each()]
            return reduce(lambda a, b: join(a, b, self.ranges), found)
        if place.array == "":
            return UNKNOWN
        if place.array == LOCAL_INTEGERS:
            return Number(self.ranges.fresh("local", NOTHING))
        self.touch(place, "read", node)
        formal = self.formals[place.array]
        if formal.dtype.startswith("float"):
            return UNKNOWN
        if place.offset is None:
            return self._data(place.array, None)
        key = (place.array, place.offset)
        if key not in self._loaded:
            self._loaded[key] = self._data(place.array, place.offset).poly or ZERO
        return Number(self._loaded[key])

    def _data(self, array: str, offset: Polynomial | None) -> Number:
        small = _SMALL_TYPES.get(self.formals[array].dtype)
        known = Range((ZERO,), (Polynomial.constant(small),)) if small is not None else NOTHING
        poly = self.ranges.fresh("data", known)
        if offset is not None:
            (symbol,) = poly.symbols
            self._origins[symbol] = (array, offset)
        return Number(poly)

    def _note_index(self, array: str, offset: Polynomial, kind: Literal["read", "write"]) -> None:
        """Where a loaded value takes part in an offset, its array holds indices."""
        for symbol in offset.symbols:
            origin = self._origins.get(symbol)
            if origin is None or offset.degree(symbol) != 1:
                continue
            rest = self.ranges.upper(offset.without(symbol))
            factor = offset.coefficient(symbol)
            if rest is None or self.ranges.varies(factor):
                continue
            known = self.ranges.of(symbol)
            of_type = _SMALL_TYPES.get(self.formals[origin[0]].dtype)
            guarded = of_type is None and known is not None and bool(known.lows) and bool(known.highs)
            self.analysis.index_uses.append(IndexUse(origin[0], array, factor, rest, guarded, kind))

    def origin(self, value: Polynomial) -> tuple[str, Polynomial] | None:
        """Array and offset that `value` was loaded from, when it is just that."""
        return self._origins.get(lone(value))

    # ---- conditions

    def facts(self, condition: c_ast.Node | None, truth: bool) -> list[Fact]:
        """What the condition being true (or false) says of varying symbols."""
        match condition:
            case c_ast.BinaryOp(op="&&" | "||" as op) if (op == "&&") == truth:
                return self.facts(condition.left, truth) + self.facts(condition.right, truth)
            case c_ast.UnaryOp(op="!"):
                return self.facts(condition.expr, not truth)
            case c_ast.UnaryOp(op="p--") if truth:
                value = self.peek(condition)
                if isinstance(value, Number) and value.poly is not None:
                    return self.ranges.facts(value.poly - 1)
            case c_ast.BinaryOp(op=op) if op in _COMPARISONS:
                left, right = _comparable(self.peek(condition.left), self.peek(condition.right))
                if left is not None and right is not None:
                    return self._compared(op if truth else _FLIPPED[op], left, right)
        return []

    def _compared(self, op: str, left: Polynomial, right: Polynomial) -> list[Fact]:
        match op:
            case "<":
                return self.ranges.facts(right - left - 1)
            case "<=":
                return self.ranges.facts(right - left)
            case ">":
                return self.ranges.facts(left - right - 1)
            case ">=":
                return self.ranges.facts(left - right)
            case "==":
                return self.ranges.facts(right - left) + self.ranges.facts(left - right)
        return []


def _pointer_sum(op: str, left: Value, right: Value) -> Value:
    if isinstance(left, Address) and isinstance(right, Number) and op in ("+", "-"):
        by = right.poly
        return left.moved(by if op == "+" or by is None else -by)
    if isinstance(left, Number) and isinstance(right, Address) and op == "+":
        return right.moved(left.poly)
    return UNKNOWN


def _comparable(left: Value, right: Value) -> tuple[Polynomial | None, Polynomial | None]:
    """Two numbers, or the places of two pointers into one array."""
    if isinstance(left, Number) and isinstance(right, Number):
        return left.poly, right.poly
    if isinstance(left, Address) and isinstance(right, Address) and left.array == right.array:
        return left.offset, right.offset
    return None, None


def _size_of(node: c_ast.Node, program: Program) -> Polynomial | None:
    if not isinstance(node, c_ast.Typename):
        return None
    kind: CType = resolve(node.type, program.typedefs)
    sizes = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "float32": 4}
    return Polynomial.constant(sizes.get(kind.dtype, 8)) if kind.kind == "scalar" else None


def _enumerators(program: Program) -> dict[str, Polynomial]:
    """Enumeration constants with plain values."""
    found: dict[str, Polynomial] = {}
    waiting = list(program.own())
    while waiting:
        node = waiting.pop()
        if isinstance(node, c_ast.Enum) and node.values is not None:
            following: int | None = 0
            for item in node.values.enumerators:
                if item.value is not None:
                    plain = isinstance(item.value, c_ast.Constant) and item.value.value.isdigit()
                    following = int(item.value.value) if plain else None
                if following is not None:
                    found[item.name] = Polynomial.constant(following)
                    following += 1
        if not isinstance(node, c_ast.FuncDef):
            waiting.extend(child for _, child in node.children())
    return found

"""One walk through the entry function: every access to a parameter's array, with its loops and its bounds.

An abstract interpreter over polynomials. What it does not follow becomes unknown, never wrong by intent;
whoever uses the result runs the program against guard pages before believing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pycparser import c_ast

from sandbox.tasks.c.ctype import CType, resolve
from sandbox.tasks.c.evaluator import LOCAL_INTEGERS, Evaluator, Fact
from sandbox.tasks.c.facts import ROW_LENGTH, Analysis, Loop
from sandbox.tasks.c.formals import Formal
from sandbox.tasks.c.parse import Program
from sandbox.tasks.c.pointers import pointees
from sandbox.tasks.c.polynomial import ONE, ZERO, Polynomial
from sandbox.tasks.c.ranges import NOTHING, Range
from sandbox.tasks.c.updates import Updates, carried, declared, leaves, step, updates
from sandbox.tasks.c.values import UNKNOWN, Address, Number, Value, divide, join, pinned
from sandbox.tasks.c.widen import MATHS

_DEEPEST_CALL = 8
_LIBM_OPERATIONS = 12  # what a call of exp, sin or pow is worth in simple operations
_CHEAP = frozenset(
    {"fabs", "fmax", "fmin", "sqrt", "floor", "ceil", "rint", "round", "trunc", "fma", "copysign"}
)
_TO_INTEGER = frozenset({"lround", "lrint", "llround", "llrint", "ilogb"})
_UNKNOWN_TRIPS = Polynomial.constant(32)
_ROW_TRIPS = Polynomial.constant(ROW_LENGTH)
_LOGARITHMIC_TRIPS = Polynomial.constant(10)
_ALLOCATES = frozenset({"malloc", "calloc", "realloc", "aligned_alloc"})
_COPIES = frozenset({"memcpy", "memmove"})
_HARMLESS = frozenset(
    {
        "free",
        "abs",
        "labs",
        "llabs",
        "isnan",
        "isinf",
        "isfinite",
        "signbit",
        "printf",
        "fprintf",
        "puts",
        "exit",
    }
)
_LEAVING = (c_ast.Break, c_ast.Continue, c_ast.Return, c_ast.Goto)


def analyse(program: Program, entry: str, formals: list[Formal]) -> Analysis:
    return Walker(program, formals).run(entry)


class Walker(Evaluator):
    def __init__(self, program: Program, formals: list[Formal]) -> None:
        super().__init__(program, formals)
        self._calls: list[str] = []
        self._returned: Value = UNKNOWN

    def run(self, entry: str) -> Analysis:
        for formal in self.formals.values():
            if formal.is_array:
                self.env[formal.name] = Address(formal.name, ZERO)
            else:
                value = Number(Polynomial.symbol(formal.name)) if formal.is_integer_scalar else UNKNOWN
                self.env[formal.name] = value
        for formal in self.formals.values():
            if formal.is_array and not formal.is_result:
                inner = tuple(self.number(dim) for dim in formal.dims[1:])
                self.env[formal.name] = Address(formal.name, ZERO, inner)
                self._note_declared(formal, inner)
        self.operations = 0
        self._calls.append(entry)
        self.statement(self.program.functions[entry].body)
        self.analysis.work.append((ONE, self.operations))
        return self.analysis

    def _note_declared(self, formal: Formal, inner: tuple[Polynomial | None, ...]) -> None:
        extent = self.number(formal.dims[0]) if formal.dims and formal.dims[0] is not None else None
        for dim in inner:
            extent = extent * dim if extent is not None and dim is not None else None
        if extent is not None:
            self.analysis.declared[formal.name] = extent

    # ---- statements

    def statement(self, node: c_ast.Node | None) -> None:
        match node:
            case None | c_ast.Pragma() | c_ast.EmptyStatement() | c_ast.Typedef():
                return
            case c_ast.Compound():
                self._compound(node)
            case c_ast.DeclList():
                for declaration in node.decls:
                    self._declare(declaration)
            case c_ast.Decl():
                self._declare(node)
            case c_ast.If():
                self._if(node)
            case c_ast.For():
                self._for(node)
            case c_ast.While():
                self._loop(node.cond, None, node.stmt, sequential=True)
            case c_ast.DoWhile():
                self._loop(None, node.cond, node.stmt, sequential=True)
            case c_ast.Return():
                self._returned = self.evaluate(node.expr) if node.expr is not None else UNKNOWN
                if self.branches:  # left early at a place that hangs on the data
                    self.note_reduction(self.loops)
            case c_ast.Switch():
                self.evaluate(node.cond)
                self._either([node.stmt, None])
            case c_ast.Case() | c_ast.Default():
                for part in node.stmts or ():
                    self.statement(part)
            case c_ast.Label():
                self.analysis.not_followed.append("goto")
                self.statement(node.stmt)
            case c_ast.Break() | c_ast.Continue() | c_ast.Goto():
                return
            case _:
                self.evaluate(node)

    def _compound(self, node: c_ast.Compound) -> None:
        """Facts of `if (...) continue;` and its kind hold for the rest of the block."""
        outer = dict(self.env)
        items = node.block_items or []
        self._block(items)
        for name in {n for item in items for n in _declares(item)}:
            if name in outer:
                self.env[name] = outer[name]
            else:
                self.env.pop(name, None)

    def _block(self, items: list[c_ast.Node]) -> None:
        for place, item in enumerate(items):
            self.statement(item)
            if isinstance(item, c_ast.If) and item.iffalse is None and _always_leaves(item.iftrue):
                with self.ranges.assuming(self.facts(item.cond, False)):
                    self._block(items[place + 1 :])
                return

    def _declare(self, node: c_ast.Decl) -> None:
        kind = resolve(node.type, self.program.typedefs)
        if kind.kind == "array":
            self.env[node.name] = self._own_memory(kind)
            self.evaluate(node.init)
            return
        value: Value = self.evaluate(node.init) if node.init is not None else UNKNOWN
        if kind.is_float:
            value = UNKNOWN
        elif kind.is_integer and value == UNKNOWN and node.init is not None:
            self.analysis.float_to_integer = True
            value = Number(self.ranges.fresh(node.name, NOTHING))
        self.env[node.name] = value
        self.since[node.name] = len(self.loops)

    def _own_memory(self, kind: CType) -> Address:
        dims: list[Polynomial | None] = []
        inner = kind.target
        while inner is not None and inner.kind == "array":
            dims.append(self.number(inner.dim))
            inner = inner.target
        return Address(LOCAL_INTEGERS if kind.element.is_integer else "", None, tuple(dims))

    def _if(self, node: c_ast.If) -> None:
        self.evaluate(node.cond)
        self._either([node.iftrue, node.iffalse], node.cond)

    def _either(self, branches: list[c_ast.Node | None], condition: c_ast.Node | None = None) -> None:
        """Runs each branch from the same start and keeps what holds after either of them."""
        before = dict(self.env)
        ends: list[dict[str, Value]] = []
        changed = {name for branch in branches if branch is not None for name in updates(branch, ())}
        for truth, branch in zip((True, False), branches, strict=True):
            self.env = dict(before)
            facts: list[Fact] = self.facts(condition, truth) if condition is not None else []
            self.branches += 1
            with self.ranges.assuming(facts):
                self.statement(branch)
                self.env.update((n, pinned(self.env[n], self.ranges)) for n in changed if n in self.env)
            self.branches -= 1
            if branch is None or not _always_leaves(branch):
                ends.append(self.env)
        self.env = before if not ends else ends[0]
        for other in ends[1:]:
            for name in changed & self.env.keys() & other.keys():
                self.env[name] = join(self.env[name], other[name], self.ranges)

    # ---- loops

    def _for(self, node: c_ast.For) -> None:
        outer = dict(self.env)
        declares = isinstance(node.init, c_ast.DeclList)
        self.statement(node.init)
        own = {d.name for d in node.init.decls} if declares and node.init is not None else set()
        self._loop(node.cond, node.next, node.stmt, sequential=False)
        for name in own:
            if name in outer:
                self.env[name] = outer[name]
            else:
                self.env.pop(name, None)

    def _loop(
        self,
        before: c_ast.Node | None,
        after: c_ast.Node | None,
        body: c_ast.Node | None,
        *,
        sequential: bool,
    ) -> None:
        """`before` is evaluated before every trip, `after` behind it."""
        entry = dict(self.env)
        changed = updates(body, (before, after))
        pointers = pointees(entry, (before, after, body), self.ranges)
        entry |= pointers
        self.env |= pointers
        loop = Loop(sequential=sequential or (body is not None and leaves(body, (c_ast.Break, c_ast.Return))))
        self.peek(before)  # values that the condition loads are older than the loop's counter
        counter = self.ranges.fresh("trip", Range((ZERO,)))
        loop.symbols |= counter.symbols
        steps = self._enter(changed, entry, counter, loop)
        # What comes of NaN and infinities would hang on the order of the trips; a kernel has another.
        kept = carried((before, body, after))
        self.analysis.special &= not any(_floating(entry.get(name)) for name in kept)
        facts = self.facts(before, True)
        for symbol, is_high, bound in facts:
            if symbol in loop.symbols:  # its own for good; what it says of outer ones holds inside only
                self.ranges.learn(symbol, is_high, bound)
        rows = self._note_rows(loop)
        loop.trips = _ROW_TRIPS if rows else self._trips(counter, loop, changed, entry)
        self._note_bounds(before)
        outer_operations, self.operations = self.operations, 0
        self.loops.append(loop)
        with self.ranges.assuming([fact for fact in facts if fact[0] not in loop.symbols]):
            self.evaluate(before)
            self.statement(body)
            self.evaluate(after)
        self._record_work()
        self.loops.pop()
        self.operations = outer_operations
        self._leave(entry, steps, counter, changed, early=loop.sequential)

    def _enter(
        self, changed: Mapping[str, Updates], entry: Mapping[str, Value], counter: Polynomial, loop: Loop
    ) -> dict[str, Polynomial]:
        """Sets what every changed variable is at the start of some trip; returns the plain counters'
        steps."""
        steps: dict[str, Polynomial] = {}
        for name, seen in changed.items():
            if name not in self.env:
                continue
            value, by = self._stepped(name, seen, entry[name], changed, counter)
            if by is not None:
                steps[name] = by
            self.env[name] = value
            if isinstance(value, Number) and value.poly is not None:
                loop.symbols |= {s for s in value.poly.symbols if self.ranges.of(s) is not None} - _symbols(
                    entry[name]
                )
        return steps

    def _stepped(
        self,
        name: str,
        seen: Updates,
        start: Value,
        changed: Mapping[str, Updates],
        counter: Polynomial,
    ) -> tuple[Value, Polynomial | None]:
        how = step(seen.only) if seen.only is not None else None
        amount = self._invariant(how[1], changed) if how is not None else None
        if how is None or amount is None:
            return self._anything(name, start), None
        by = -amount if how[0] == "-" else amount
        if how[0] in ("+", "-"):
            if isinstance(start, Address):
                return start.moved(counter * by), by
            if start.poly is None:
                return self._anything(name, start), None
            if by.as_constant in (1, -1):
                return Number(start.poly + counter * by), by
            up = self.ranges.sign(by)
            known = Range((start.poly,)) if up == 1 else Range((), (start.poly,)) if up == -1 else NOTHING
            return Number(self.ranges.fresh(name, known)), None
        if not isinstance(start, Number) or start.poly is None:
            return self._anything(name, start), None
        known = Range((start.poly,)) if how[0] == "*" else Range((ZERO,), (start.poly,))
        return Number(self.ranges.fresh(name, known)), None

    def _invariant(self, amount: c_ast.Node | int, changed: Mapping[str, Updates]) -> Polynomial | None:
        if isinstance(amount, int):
            return Polynomial.constant(amount)
        if any(isinstance(n, c_ast.ID) and n.name in changed for n in _nodes(amount)):
            return None
        value = self.peek(amount)
        return value.poly if isinstance(value, Number) else None

    def _anything(self, name: str, start: Value) -> Value:
        if isinstance(start, Address):
            return start if start.others else replace(start, offset=None)
        return Number(self.ranges.fresh(name, NOTHING)) if start.poly is not None else UNKNOWN

    def _trips(
        self, counter: Polynomial, loop: Loop, changed: Mapping[str, Updates], entry: Mapping[str, Value]
    ) -> Polynomial | None:
        (symbol,) = counter.symbols
        known = self.ranges.of(symbol)
        if known is not None and known.highs:
            most = self.ranges.upper(counter)
            if most is not None:
                self.ranges.assume(most)
            return most + 1 if most is not None else None
        for name, seen in changed.items():
            value = self.env.get(name)
            if not isinstance(value, Number) or value.poly is None or seen.only is None:
                continue
            how = step(seen.only)
            if how is None or value.poly.degree() != 1 or not value.poly.symbols & loop.symbols:
                continue
            if how[0] in ("*", "/"):
                return _LOGARITHMIC_TRIPS
            amount = self._invariant(how[1], changed)
            low, high = self.ranges.lower(value.poly), self.ranges.upper(value.poly)
            if amount is None or low is None or high is None:
                continue
            self.ranges.learn(symbol, True, divide(high - low, amount, self.ranges))
            return divide(high - low, amount, self.ranges) + 1
        return None

    def _note_rows(self, loop: Loop) -> bool:
        """`for (k = start[i]; k < start[i + 1]; k++)`: the array holds where rows begin in a list of all."""
        found_any = False
        for symbol in loop.symbols:
            known = self.ranges.of(symbol)
            if known is None:
                continue
            for bound in known.highs:
                found = self._row_of(bound)
                if found is not None:
                    array, start = found
                    total = self.analysis.offsets.setdefault(array, f"total_{array}")
                    self.ranges.learn(_lone(start), False, ZERO)
                    self.ranges.learn(_lone(start), True, ZERO)
                    # Counted from the row's start, at most everything: the start itself is taken as zero.
                    self.ranges.learn(symbol, True, Polynomial.symbol(total) - 1)
                    found_any = True
        return found_any

    def _row_of(self, bound: Polynomial) -> tuple[str, Polynomial] | None:
        """The array and the row's start, when `bound` is a difference of two of its neighbouring values."""
        parts = [(Polynomial.symbol(m[0][0]), f) for m, f in bound.terms if len(m) == 1 and m[0][1] == 1]
        ends = [(p, self.origin(p)) for p, factor in parts if factor == 1]
        starts = [(p, self.origin(p)) for p, factor in parts if factor == -1]
        for _, end in ends:
            for start, begin in starts:
                if end is not None and begin is not None and end[0] == begin[0] and end[1] - begin[1] == ONE:
                    return end[0], start
        return None

    def _note_bounds(self, condition: c_ast.Node | None) -> None:
        if condition is not None:
            names = {n.name for n in _nodes(condition) if isinstance(n, c_ast.ID)}
            for name in list(names):
                names |= _symbols(self.env.get(name, UNKNOWN))
            self.analysis.bounds |= {
                n for n in names if n in self.formals and self.formals[n].is_integer_scalar
            }

    def _record_work(self) -> None:
        times = ONE
        for loop in self.loops:
            times = times * (loop.trips if loop.trips is not None else _UNKNOWN_TRIPS)
        self.analysis.work.append((times, self.operations + 1))

    def _leave(
        self,
        entry: Mapping[str, Value],
        steps: Mapping[str, Polynomial],
        counter: Polynomial,
        changed: Mapping[str, Updates],
        *,
        early: bool,
    ) -> None:
        (symbol,) = counter.symbols
        known = self.ranges.of(symbol)
        high = known.highs[0] + 1 if known is not None and known.highs else None
        for name in changed:
            if name not in entry:
                self.env.pop(name, None)
                continue
            start, by = entry[name], steps.get(name)
            plain = isinstance(start, Number) and start.poly is not None
            if by is None or high is None or not plain:
                self.env[name] = self._anything(name, start)
                continue
            assert isinstance(start, Number)
            assert start.poly is not None
            end = start.poly + by * high
            if early:
                ordered = (start.poly, end) if self.ranges.sign(by) == 1 else (end, start.poly)
                self.env[name] = Number(self.ranges.fresh(name, Range((ordered[0],), (ordered[1],))))
            else:
                self.env[name] = Number(end)

    # ---- calls

    def call(self, node: c_ast.FuncCall) -> Value:
        name = node.name.name if isinstance(node.name, c_ast.ID) else ""
        arguments = [self.evaluate(a) for a in node.args.exprs] if node.args is not None else []
        if name in self.program.functions and name not in self._calls and len(self._calls) < _DEEPEST_CALL:
            return self._inline(name, arguments)
        plain = name[:-1] if name.endswith("f") and name[:-1] in MATHS else name
        if plain in MATHS:
            self.operations += 1 if plain in _CHEAP else _LIBM_OPERATIONS
            self.analysis.special &= plain not in _TO_INTEGER
            return UNKNOWN
        line = node.coord.line if node.coord is not None else None
        if name in _ALLOCATES:
            return Address("", None)
        if name == "memset" and len(arguments) == 3:
            self._block_access(arguments[0], "write", arguments[2], node)
        elif name in _COPIES and len(arguments) == 3:
            self._block_access(arguments[1], "read", arguments[2], node)
            self._block_access(arguments[0], "write", arguments[2], node)
        elif name.startswith("__builtin_") or name in _HARMLESS:
            return Number(self.ranges.fresh("called", NOTHING)) if "abs" in name else UNKNOWN
        else:
            self.analysis.unknown_calls.append((name or "a function pointer", line))
        return UNKNOWN

    def _block_access(
        self, place: Value, kind: Literal["read", "write"], size: Value, node: c_ast.Node
    ) -> None:
        if not isinstance(place, Address):
            return
        for one in place.each():
            if one.array in self.formals:
                self._block_access_at(one, kind, size, node)

    def _block_access_at(
        self, place: Address, kind: Literal["read", "write"], size: Value, node: c_ast.Node
    ) -> None:
        width = _ITEM_BYTES[self.formals[place.array].dtype]
        count: Polynomial | None = None
        if isinstance(size, Number) and size.poly is not None:
            exact = all(factor % width == 0 for _, factor in size.poly.terms)
            count = Polynomial(tuple((m, f // width) for m, f in size.poly.terms)) if exact else None
        if count is None:
            self.touch(Address(place.array, None), kind, node)
        else:
            self.touch(place, kind, node, count)
            self.analysis.bounds |= {s for s in count.symbols if s in self.formals}
            self.analysis.work.append((count, 1))

    def _inline(self, name: str, arguments: list[Value]) -> Value:
        function = self.program.functions[name]
        outer, outer_since, self.env = self.env, dict(self.since), {}
        parameters: list[Any] = function.decl.type.args.params if function.decl.type.args is not None else []
        for parameter, value in zip(parameters, arguments, strict=False):
            kind = resolve(parameter.type, self.program.typedefs)
            self.env[parameter.name] = UNKNOWN if kind.is_float else value
            self.since[parameter.name] = len(self.loops)
        self._returned = UNKNOWN
        self._calls.append(name)
        self.statement(function.body)
        self._calls.pop()
        value, self._returned = self._returned, UNKNOWN
        self.env, self.since = outer, outer_since
        return UNKNOWN if resolve(function.decl.type.type, self.program.typedefs).is_float else value


_ITEM_BYTES = {
    **dict.fromkeys(("bool", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64"), 8),
}


def _always_leaves(node: c_ast.Node | None) -> bool:
    """Whether control never comes out at the end of this branch."""
    if isinstance(node, c_ast.Compound):
        return bool(node.block_items) and isinstance(node.block_items[-1], _LEAVING)
    return isinstance(node, _LEAVING)


def _declares(node: c_ast.Node) -> set[str]:
    return declared(node) if isinstance(node, c_ast.Decl | c_ast.DeclList) else set()


def _symbols(value: Value) -> frozenset[str]:
    inner = value.poly if isinstance(value, Number) else value.offset
    return inner.symbols if inner is not None else frozenset()


def _floating(value: Value | None) -> bool:
    """A floating-point variable of the function's own, or an array of them."""
    return value == UNKNOWN or (isinstance(value, Address) and value.array == "" and not value.others)


def _lone(value: Polynomial) -> str:
    (symbol,) = value.symbols
    return symbol


def _nodes(node: c_ast.Node) -> list[c_ast.Node]:
    found, waiting = [], [node]
    while waiting:
        current = waiting.pop()
        found.append(current)
        waiting.extend(child for _, child in current.children())
    return found

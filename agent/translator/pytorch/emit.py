"""Writing C expressions for elements of values, inside a kernel that is being written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from agent.translator.pytorch.helpers import HELPERS
from agent.translator.pytorch.index import Ix, flatten, opaque, render, variables
from agent.translator.pytorch.ir import (
    C_TYPES,
    Gather,
    Inside,
    Iota,
    Pointwise,
    Reduce,
    Source,
    Value,
    View,
    plain_name,
)
from agent.translator.pytorch.plan import Kernel, Plan, is_free

Key = tuple[int, tuple[Ix, ...], str]


class Body:
    """The lines of one kernel, and what is already computed in the scope they are in."""

    def __init__(self, plan: Plan, kernel: Kernel) -> None:
        self.kernel = kernel
        self.lines: list[str] = []
        self.helpers: set[str] = set()
        self.reads: dict[str, Value] = {}  # buffer -> value, in order of first use
        self.vectors: dict[tuple[str, Ix], str] = {}  # (buffer, address without the lane) -> local array
        self._plan = plan
        self._mine = {id(v) for v in kernel.outputs}
        self._scopes: list[dict[Key, str]] = [{}]
        self._depth = 1
        self._names: set[str] = set(_TAKEN) | set(plan.buffers.values())
        self._guard = ""

    # Lines and scopes

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text if text else "")

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """`opening {` ... `}`; what is computed inside is forgotten after."""
        self.line(f"{opening} {{".lstrip())
        self._depth += 1
        self._scopes.append({})
        yield
        self._scopes.pop()
        self._depth -= 1
        self.line("}")

    @contextmanager
    def declared(self, name: str, declaration: str) -> Iterator[None]:
        """`declaration` stands before the lines written inside, unless none of them uses `name`."""
        place = len(self.lines)
        yield
        if any(re.search(rf"\b{name}\b", line) for line in self.lines[place:]):
            self.lines.insert(place, "    " * self._depth + declaration)

    def name(self, wished: str) -> str:
        """A local variable's name that is still free in this kernel."""
        base = re.sub(r"\W", "_", wished).strip("_") or "value"
        name, count = base, 1
        while name in self._names:
            count += 1
            name = f"{base}_{count}"
        self._names.add(name)
        return name

    def array(self, value: Value) -> str:
        """What this kernel calls the array that holds the value: its own name, where that hides nothing."""
        name = self._plan.buffers[id(value)]
        return f"{name}_array" if name in _TAKEN else name

    def know(self, value: Value, at: Sequence[Ix], text: str) -> None:
        """From here on, in this scope, the element is this C expression."""
        self._scopes[-1][(id(value), tuple(at), self._guard)] = text

    # Expressions

    def element(self, value: Value, at: Sequence[Ix]) -> str:
        """A C expression for the element of `value` at `at`; lines it needs are written first."""
        key = (id(value), tuple(at), self._guard)
        for scope in reversed(self._scopes):
            for known in (key, (*key[:2], "")):
                if known in scope:
                    return scope[known]
        text = self._compute(value, at)
        self._scopes[-1][key] = text
        return text

    def _compute(self, value: Value, at: Sequence[Ix]) -> str:
        if self._is_loaded(value):
            return self.load(value, at)
        match value:
            case Pointwise():
                return self._pointwise(value, at)
            case View():
                return self._view(value, at)
            case Iota():
                return f"({render(value.of(at))})"
            case Gather():
                return self._gather(value, at)
        raise AssertionError(f"{value.origin} is neither in memory nor computed here")

    def _is_loaded(self, value: Value) -> bool:
        if isinstance(value, Source):
            return True
        return id(value) in self._plan.buffers and id(value) not in self._mine

    def load(self, value: Value, at: Sequence[Ix]) -> str:
        buffer = self.array(value)
        self.reads.setdefault(buffer, value)
        address = flatten(at, value.shape)
        for (known, base), local in self.vectors.items():
            if known == buffer and address.coefficient("j") == 1 and address - _LANE == base:
                return f"{local}[j]"
        index = render(address)
        return f"{buffer}[{self._guard} ? {index} : 0]" if self._guard else f"{buffer}[{index}]"

    def _pointwise(self, value: Pointwise, at: Sequence[Ix]) -> str:
        texts = []
        for i, operand in enumerate(value.inputs):
            text = self.element(operand, at)
            if value.template.count(f"{{{i}}}") > 1 and not _ATOM.fullmatch(text):
                text = self.temporary(operand, text)
                self._scopes[-1][(id(operand), tuple(at), self._guard)] = text
            texts.append(text)
        self.helpers.update(value.helpers)
        text = value.template.format(*texts)
        if not value.inputs or value.template == "{0}":
            return text
        return self.temporary(value, text)

    def temporary(self, value: Value, text: str) -> str:
        name = self.name(local_name(value))
        self.line(f"const {C_TYPES[value.dtype]} {name} = {text};")
        return name

    def _view(self, value: View, at: Sequence[Ix]) -> str:
        place = value.map(at)
        if value.guard is None:
            return self.element(value.base, place)
        tests = [text for inside in value.guard(at) for text in _tests(inside)]
        if not tests:
            return self.element(value.base, place)
        inside_name = self.name("inside")
        both = [self._guard, *tests] if self._guard else tests
        self.line(f"const bool {inside_name} = {' && '.join(both)};")
        before, self._guard = self._guard, inside_name
        text = self.element(value.base, place)
        self._guard = before
        return f"({inside_name} ? {text} : {value.fill})"

    def _gather(self, value: Gather, at: Sequence[Ix]) -> str:
        loaded = []
        for index, place, extent in zip(value.indices, value.index_at(at), value.extents, strict=True):
            text = self.element(index, place)
            name = self.name("index")
            if value.wraps:
                text = f"({text} < 0 ? {text} + {extent} : {text})"
            self.line(f"const int {name} = (int){text};")
            loaded.append(opaque(name, extent))
        return self.element(value.base, value.map(at, loaded))

    def hoist(self, value: Value, at: Sequence[Ix], inside: set[str]) -> None:
        """Computes now what `value` needs that does not depend on the variables `inside` a loop to come."""
        seen: set[tuple[int, tuple[Ix, ...]]] = set()

        def walk(value: Value, at: Sequence[Ix]) -> None:
            if (id(value), tuple(at)) in seen or self._is_loaded(value):
                return
            seen.add((id(value), tuple(at)))
            outside = all(not variables(ix) & inside for ix in at)
            if isinstance(value, Pointwise):
                if outside and not is_free(value):
                    self.element(value, at)
                    return
                for operand in value.inputs:
                    walk(operand, at)
            elif isinstance(value, View) and value.guard is None:
                walk(value.base, value.map(at))

        walk(value, at)

    # Writing

    def store(self, value: Value, at: Sequence[Ix]) -> None:
        text = self.element(value, at)
        buffer = self.array(value)
        self.line(f"{buffer}[{render(flatten(at, value.shape))}] = {text};")


_LANE = opaque("j", 4)
_ATOM = re.compile(r"[A-Za-z_]\w*|\(?-?[0-9.e+-]+f?\)?")
#: What a local variable must not hide: helpers, the kernels' own variables, C's functions and words.
_TAKEN = set(HELPERS) | set(
    re.findall(
        r"\w+",
        """
        i j k m n row col lane warp item batch tx ty sum first_m first_n first_k tile_k tile_m tile_n
        a_tile b_tile a_part b_part exp log sin cos tan sqrt pow max min abs round floor ceil
        float double int bool long const for if else return while do void
        """,
    )
)


def local_name(value: Value) -> str:
    """What a kernel calls the value."""
    match value:
        case Source():
            return f"{value.name}_value"
        case Pointwise(label=label) | Reduce(label=label) if label:
            return label
    return plain_name(value.origin)


def _tests(inside: Inside) -> list[str]:
    """The halves of the guard that are not true anyway."""
    low, high = inside.index.bounds
    text = render(inside.index)
    tests = []
    if low < 0:
        tests.append(f"{text} >= 0")
    if high >= inside.extent:
        tests.append(f"{text} < {inside.extent}")
    return tests

"""What a family writes its program with: parameters, names, statements in one style, random formulas.

Everything hangs on one `random.Random`: the same seed gives the same program, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from sandbox.tasks.base import ArrayInput, Distribution, Inputs
from trainer.data.grammar import names
from trainer.data.grammar.code import Code, If, Loop, Writer
from trainer.data.grammar.style import Style, weighted

Decision = Literal["PARALLELIZE", "KEEP"]
_INTEGERS = {"unsigned char": 8, "short": 16, "int": 32, "unsigned int": 32, "long": 64}


@dataclass(frozen=True)
class Sketch:
    """One program, before anything has been run."""

    source: str
    entry: str
    inputs: tuple[Inputs, ...]  # several configurations; the first is the one candidates are judged with
    decision: Decision
    why: str  # of the decision: empty for PARALLELIZE


@dataclass
class Array:
    """An array parameter, or a local array. `a[i]`, `a[i, j]` give the element as C."""

    name: str
    type: str
    dims: tuple[str, ...]
    subscripts: str  # as Style.subscripts
    macro: Callable[[Array], str] | None = None
    out: bool = False
    inout: bool = False
    low: float | None = None
    high: float | None = None
    extent: bool = False  # say it in the inputs block
    distribution: Distribution | None = None
    access: Literal["read", "write", "read_write"] | None = None

    def __getitem__(self, index: str | tuple[str, ...]) -> str:
        parts = (index,) if isinstance(index, str) else index
        if len(parts) == 1 or len(parts) != len(self.dims):
            return f"{self.name}[{', '.join(parts)}]"
        if self.subscripts == "shaped":
            return self.name + "".join(f"[{part}]" for part in parts)
        if self.subscripts == "macro" and self.macro is not None and len(parts) == 2:
            return f"{self.name}[{self.macro(self)}({', '.join(parts)})]"
        text = parts[0]
        for part, dim in zip(parts[1:], self.dims[1:], strict=True):
            product = f"{_factor(text)} * {_factor(dim)}"
            if self.subscripts == "swapped" and not re.search(r" [-?<>] ", part):
                text = f"{part} + {product}"
            else:
                text = f"{product} + {part}"
        return f"{self.name}[{text}]"

    def base(self, row: str) -> str:
        """Where row `row` begins."""
        if self.subscripts == "shaped" and len(self.dims) > 1:
            return f"{self.name}[{row}]"
        return f"{self.name} + {_factor(row)} * {_factor(' * '.join(self.dims[1:]))}"


@dataclass
class _Parameter:
    name: str
    text: str
    kind: Literal["size", "scalar", "input", "output"]
    values: tuple[float, ...] = ()  # one for each configuration; sizes and scalars


@dataclass
class Grammar:
    """The state of one program while a family writes it."""

    rng: Random
    style: Style
    configurations: int = 3
    taken: set[str] = field(default_factory=set)
    _parameters: list[_Parameter] = field(default_factory=list)
    _arrays: list[Array] = field(default_factory=list)
    _helpers: list[str] = field(default_factory=list)
    _macros: dict[str, str] = field(default_factory=dict)
    _defines: list[str] = field(default_factory=list)
    _headers: set[str] = field(default_factory=set)
    tolerance: float | None = None

    # ---- choices

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self, *choices: Any) -> Any:
        return choices[self.rng.randrange(len(choices))]

    def weighted(self, *choices: tuple[Any, int]) -> Any:
        return weighted(self.rng, *choices)

    def between(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    # ---- names and types

    def name(self, pool: str) -> str:
        """A name nobody has yet."""
        choices = [n for n in names.POOLS[pool] if self._styled(n) not in self.taken]
        if choices:
            found = self._styled(self.rng.choice(choices))
        else:
            found = next(
                f"{names.POOLS[pool][0]}{i}"
                for i in range(2, 99)
                if f"{names.POOLS[pool][0]}{i}" not in self.taken
            )
        self.taken.add(found)
        return found

    def _styled(self, name: str) -> str:
        return names.camel(name) if self.style.camel else name

    @property
    def real(self) -> str:
        return self.style.alias or self.style.real

    def number(self, value: float) -> str:
        """A floating-point literal of the program's own type."""
        text = f"{value:.6g}"
        if "." not in text and "e" not in text:
            text += ".0"
        return text + ("f" if self.style.real == "float" else "")

    def constant(self, name: str, text: str, kind: str = "int") -> str:
        """A named constant, or its text itself, as the style has it."""
        if self.style.constants == "literal":
            return text
        if self.style.constants == "define":
            chosen = self._fresh(name.upper())
            self._defines.append(f"#define {chosen} {text}")
        else:
            chosen = self._fresh(f"k{name[:1].upper()}{names.camel(name)[1:]}")
            # An enumerator, where a static const could not bound a local array.
            self._defines.append(
                f"enum {{ {chosen} = {text} }};"
                if kind == "int"
                else f"static const {kind} {chosen} = {text};"
            )
        return chosen

    def _fresh(self, wish: str) -> str:
        chosen, number = wish, 2
        while chosen in self.taken:
            chosen, number = f"{wish}{number}", number + 1
        self.taken.add(chosen)
        return chosen

    def math(self, function: str, *arguments: str) -> str:
        """A call into <math.h>, in the program's own precision."""
        self._headers.add("math.h")
        suffix = "f" if self.style.real == "float" else ""
        return f"{function}{suffix}({', '.join(arguments)})"

    def header(self, name: str) -> None:
        self._headers.add(name)

    # ---- parameters

    def size(self, pool: str, low: int, high: int, multiple: int = 1, type_: str | None = None) -> str:
        """An integer parameter that bounds loops, with a value in [low, high] for each configuration."""
        name = self.name(pool)
        values = [self.between(low, high) // multiple * multiple for _ in range(self.configurations)]
        kind = type_ or ("long" if self.style.index == "long" else self.style.index)
        if kind == "int32_t":
            self._headers.add("stdint.h")
        values = [max(value, multiple) for value in values]
        self._parameters.append(_Parameter(name, f"{kind} {name}", "size", tuple(map(float, values))))
        return name

    def integer(self, pool: str, low: int, high: int, type_: str = "int") -> str:
        """An integer parameter that is no size."""
        name = self.name(pool)
        values = tuple(float(self.between(low, high)) for _ in range(self.configurations))
        self._parameters.append(_Parameter(name, f"{type_} {name}", "scalar", values))
        return name

    def scalar(self, pool: str, low: float = 0.25, high: float = 2.0) -> str:
        name = self.name(pool)
        values = tuple(round(self.rng.uniform(low, high), 3) for _ in range(self.configurations))
        self._parameters.append(_Parameter(name, f"{self.real} {name}", "scalar", values))
        return name

    def array(
        self,
        pool: str,
        *dims: str,
        type_: str | None = None,
        out: bool = False,
        inout: bool = False,
        low: float | None = None,
        high: float | None = None,
        extent: bool = False,
        distribution: Distribution | None = None,
        access: Literal["read", "write", "read_write"] | None = None,
        flat: bool = False,
    ) -> Array:
        """An array parameter. `low`, `high`: the range of its values; `flat`: never shaped."""
        kind = type_ or self.real
        if kind.endswith("_t") and kind != self.style.alias:
            self._headers.add("stddef.h" if kind == "size_t" else "stdint.h")
        subscripts = self.style.subscripts
        if flat and subscripts in ("shaped", "macro"):
            subscripts = "flat"
        if len(dims) != 2 and subscripts == "macro":
            subscripts = "flat"
        name = self.name(pool)
        array = Array(name, kind, dims, subscripts, self._macro, out, inout, low, high, extent)
        array.distribution, array.access = distribution, access
        self._arrays.append(array)
        const = "const " if self.style.const and not out and not inout else ""
        restrict = "restrict " if self.style.restrict else ""
        if subscripts == "shaped" and len(dims) > 1:
            text = f"{const}{kind} {name}" + "".join(f"[{dim}]" for dim in dims)
        else:
            text = f"{const}{kind} *{restrict}{name}"
        self._parameters.append(_Parameter(name, text, "output" if out or inout else "input"))
        return array

    def local(self, pool: str, *dims: str, type_: str | None = None) -> tuple[Array, str]:
        """A local array, and its declaration."""
        name = self.name(pool)
        kind = type_ or self.real
        array = Array(name, kind, dims, "shaped")
        return array, f"{kind} {name}" + "".join(f"[{dim}]" for dim in dims) + ";"

    def _macro(self, array: Array) -> str:
        stride = array.dims[1]
        if stride not in self._macros:
            wish = f"IDX_{re.sub(r'[^A-Za-z0-9]+', '_', stride).upper()}" if self._macros else "IDX"
            self._macros[stride] = self._fresh(wish)
        return self._macros[stride]

    # ---- statements

    def index(self, pool: str = "i") -> str:
        return self.name(pool)

    def loop(self, var: str, low: str, high: str, *body: Code, step: str = "1", down: bool = False) -> Loop:
        return Loop(var, low, high, list(body), step, down)

    def let(self, type_: str, name: str, value: str, const: bool = False) -> str:
        mark = "const " if const and self.style.const else ""
        return f"{mark}{type_} {name} = {value};"

    def add(self, target: str, value: str, op: str = "+") -> str:
        if self.style.compound:
            return f"{target} {op}= {value};"
        loose = op in "*&^|" or op == "-"
        right = f"({value})" if loose and re.search(r" [-+?&|^<>*] ", value) else value
        return f"{target} = {target} {op} {right};"

    def maximum(self, target: str, value: str, smallest: bool = False) -> Code:
        """`target` becomes the larger (or smaller) of the two."""
        sign = "<" if smallest else ">"
        if self.style.choose == "if" or not _plain(value):
            return If(f"{_sum(value)} {sign} {target}", f"{target} = {value};")
        return f"{target} = {_sum(value)} {sign} {target} ? {value} : {target};"

    def largest(self, a: str, b: str, smallest: bool = False, real: bool = True) -> str:
        """The larger of two plain values, as an expression."""
        if self.style.choose == "call" and real:
            return self.math("fmin" if smallest else "fmax", a, b)
        return f"({a} {'<' if smallest else '>'} {b} ? {a} : {b})"

    def note(self, text: str) -> list[str]:
        """A comment inside the function, where the style has such."""
        if self.style.comments == "rich" or (self.style.comments == "line" and self.chance(0.3)):
            return [f"/* {text} */" if self.chance(0.5) else f"// {text}"]
        return []

    def blank(self) -> list[str]:
        return [""] if self.chance(0.5) else []

    # ---- whole programs

    def helper(self, name: str, type_: str, parameters: str, body: Code | Callable[[str], Code]) -> str:
        """A function of its own; its name. The body's own names need not be new; one that calls itself is
        made from its name."""
        chosen = self._fresh(names.camel(name) if self.style.camel else name)
        writer = Writer(self.style)
        lines = writer.block(body(chosen) if callable(body) else body, 1)
        self._helpers.append(
            self._function(f"{self.style.helper} {type_} {chosen}({parameters})", lines, writer)
        )
        return chosen

    def program(
        self,
        name: str | Sequence[str],
        body: Code,
        *,
        returns: str = "void",
        says: str = "",
        keep: str = "",
    ) -> Sketch:
        """The file. `says`: what a comment above the function says; `keep`: why it should stay sequential."""
        wish = name if isinstance(name, str) else self.rng.choice(list(name))
        entry = self._fresh(names.camel(wish) if self.style.camel else wish)
        writer = Writer(self.style)
        lines = writer.block(body, 1)
        self._drop_unused("\n".join([*lines, *self._helpers]))
        head = f"{returns} {entry}({', '.join(p.text for p in self._ordered())})"
        parts = self._preamble()
        parts += self._helpers
        parts.append(self._comment(says) + self._function(head, lines, writer))
        source = "\n\n".join(part for part in parts if part) + "\n"
        inputs = tuple(self._inputs(c) for c in range(self.configurations))
        return Sketch(source, entry, inputs, "KEEP" if keep else "PARALLELIZE", keep)

    def _drop_unused(self, text: str) -> None:
        """Arrays and scalars that this program's choices left unmentioned are no parameters."""
        used = {n for n in (p.name for p in self._parameters) if re.search(rf"\b{re.escape(n)}\b", text)}
        self._parameters = [p for p in self._parameters if p.kind == "size" or p.name in used]
        self._arrays = [a for a in self._arrays if a.name in used]

    def _ordered(self) -> list[_Parameter]:
        sizes = [p for p in self._parameters if p.kind == "size"]
        others = [p for p in self._parameters if p.kind != "size"]
        shaped = any("[" in p.text for p in others)  # sizes must stand before what they shape
        if self.style.order == "sizes_first" or shaped:
            return sizes + others
        if self.style.order == "outputs_first":
            outputs = [p for p in others if p.kind == "output"]
            return outputs + [p for p in others if p.kind != "output"] + sizes
        return others + sizes

    def _function(self, head: str, lines: list[str], writer: Writer) -> str:
        lines = _trimmed(lines)
        if writer.variables:
            declared = f"{self.style.indent}{self.style.index} {', '.join(writer.variables)};"
            lines = [declared, "", *lines] if self.rng.random() < 0.5 else [declared, *lines]
        brace = " {" if self.style.braces == "kr" else "\n{"
        return "\n".join([_wrapped(head) + brace, *lines, "}"])

    def _preamble(self) -> list[str]:
        if self.style.index == "int32_t":
            self._headers.add("stdint.h")
        includes = "\n".join(f"#include <{name}>" for name in sorted(self._headers))
        alias = f"typedef {self.style.real} {self.style.alias};" if self.style.alias else ""
        macros = [f"#define {m}(i, j) ((i) * ({stride}) + (j))" for stride, m in self._macros.items()]
        return [includes, alias, "\n".join([*self._defines, *macros])]

    def _comment(self, says: str) -> str:
        if not says or self.style.comments == "none":
            return ""
        if self.style.comments == "line":
            return f"// {says}\n"
        if self.style.comments == "rich":
            given = ", ".join(p.name for p in self._parameters if p.kind == "output")
            return f"/*\n * {says}\n" + (f" * Results go to {given}.\n" if given else "") + " */\n"
        return f"/* {says} */\n"

    def _inputs(self, place: int) -> Inputs:
        sizes = {p.name: int(p.values[place]) for p in self._parameters if p.kind == "size"}
        scalars: dict[str, float | int] = {}
        for p in self._parameters:
            if p.kind == "scalar":
                whole = p.text.split()[0] not in (self.real,)
                scalars[p.name] = int(p.values[place]) if whole else p.values[place]
        arrays = {}
        for array in self._arrays:
            given = ArrayInput(
                extent=" * ".join(_factor(d) for d in array.dims) if array.extent else None,
                low=array.low,
                high=array.high,
                distribution=array.distribution,
                access=array.access,
            )
            if given != ArrayInput():
                arrays[array.name] = given
        return Inputs(sizes=sizes, scalars=scalars, arrays=arrays, tolerance=self.tolerance)


def _factor(text: str) -> str:
    """Parenthesised where it is a sum."""
    return text if re.fullmatch(r"[\w.]+|\w+\[[^\]]*\]|\(.*\)", text) else f"({text})"


def _sum(text: str) -> str:
    return f"({text})" if re.search(r" [?<>=]+ ", text) else text


def _plain(text: str) -> bool:
    return len(text) < 28 and "(" not in text


def _trimmed(lines: list[str]) -> list[str]:
    """No empty line at the ends, none twice in a row."""
    out: list[str] = []
    for line in lines:
        if line or (out and out[-1]):
            out.append(line)
    while out and not out[-1]:
        out.pop()
    return out


def _wrapped(head: str) -> str:
    """A long list of parameters over several lines."""
    if len(head) <= 90:
        return head
    at, pad = head.index("(") + 1, " " * (head.index("(") + 1)
    lines, line = [], head[:at]
    for part in re.split(r"(?<=,) ", head[at:]):
        if len(line) + len(part) > 84 and line.strip():
            lines.append(line.rstrip())
            line = pad
        line += part + " "
    return "\n".join([*lines, line.rstrip()])

"""From a table of forms to PTX modules, the values they run on, and what must come out.

Each form is written several times: with vector operands, with operands that a whole warp shares, with
constants, with mixtures, and under a predicate. Forms of one signature share an entry; every occurrence has
a row of outputs of its own. Nothing here knows what runs the module: an emulator or a GPU.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from exact_floats import FORMATS, to_float
from instruction_forms import NAMES, TARGETS, Form, interpreted, mixed, width

THREADS = 64
ROUNDS = 3
_ENTRY_FORMS = 48
_PREFILL = 0x5A
# 32 bytes of global, shared and local memory for each thread, and the shared ones by a generic address.
_CELLS = [
    ".reg .b64 %global, %generic, %policy, %x; .reg .b32 %shared, %local;",
    f".shared .align 32 .b8 shared_cells[{32 * THREADS}]; .local .align 32 .b8 local_cells[32];",
    "mul.wide.u32 %generic, %n, 32; mov.u64 %global, global_cells; add.u64 %global, %global, %generic;",
    "mov.u32 %shared, shared_cells; mad.lo.u32 %shared, %n, 32, %shared; mov.u32 %local, local_cells;",
    "cvt.u64.u32 %generic, %shared; cvta.shared.u64 %generic, %generic;",
    "createpolicy.fractional.L2::evict_last.b64 %policy, 0f3F800000;",
]


@dataclass(frozen=True)
class Occurrence:
    """`kinds`: for each source "v" a vector, "u" one value for all lanes, "i" a constant."""

    form: Form
    kinds: str
    guarded: bool = False


@dataclass(frozen=True)
class Round:
    vectors: list[list[int]]  # a source's pattern for each thread
    shared: list[int]  # a source's pattern for all


def _register(kind: str) -> str:
    return f".b{width(kind)}"


def occurrences(form: Form) -> list[Occurrence]:
    """How a form is tried. Which operand is the odd one out turns with the form."""
    count = len(form.sources)
    found = [Occurrence(form, "v" * count), Occurrence(form, "v" * count, guarded=True)]
    if not count:
        return found
    turn = zlib.crc32(form.text.encode())
    found.append(Occurrence(form, "u" * count))
    constant = [
        NAMES[index] in form.constants and _has_constants(kind) for index, kind in enumerate(form.sources)
    ]
    if count > 1:
        odd = turn % count
        found.append(Occurrence(form, "".join("u" if index == odd else "v" for index in range(count))))
    if count > 2:
        odd = (turn + 1) % count
        found.append(Occurrence(form, "".join("v" if index == odd else "u" for index in range(count))))
    if any(constant):
        odd = [index for index in range(count) if constant[index]][turn % sum(constant)]
        found.append(Occurrence(form, "".join("i" if index == odd else "v" for index in range(count))))
        found.append(Occurrence(form, "".join("i" if constant[index] else "u" for index in range(count))))
    return list(dict.fromkeys(found))


def _has_constants(kind: str) -> bool:
    """PTX has no constants of 16-bit floats and packed types."""
    return not (kind in ("pred", "f16", "bf16") or kind.endswith("x2"))


def constant_of(form: Form, index: int) -> int:
    """The pattern that stands for a source where it is written out."""
    generator = np.random.default_rng(zlib.crc32(f"{form.text} {index}".encode()))
    return (form.values or mixed)(generator, form.sources[index], 1)[0]


def _written(kind: str, bits: int) -> str:
    if kind in ("f32", "f64"):
        return f"0f{bits:08X}" if kind == "f32" else f"0d{bits:016X}"
    return str(bits - (1 << width(kind)) if bits >> (width(kind) - 1) else bits)


class Entry:
    """Forms that share their types and kind of values."""

    def __init__(self, name: str, forms: Sequence[Form]) -> None:
        self.name = name
        self.forms = forms
        self.sources = forms[0].sources
        self.results = forms[0].results
        self.occurrences = [one for form in forms for one in occurrences(form)]
        self.size = max(width(kind) for kind in self.results) // 8  # bytes of an output
        self.rows = len(self.occurrences) * len(self.results)

    @cached_property
    def rounds(self) -> list[Round]:
        generator = np.random.default_rng(zlib.crc32(self.name.encode()))
        sample = self.forms[0].values or mixed
        return [
            Round(
                [sample(generator, kind, THREADS) for kind in self.sources],
                [sample(generator, kind, 1)[0] for kind in self.sources],
            )
            for _ in range(ROUNDS)
        ]

    def arguments(self, number: int) -> list[np.ndarray | np.generic]:
        """After the outputs' address: a vector for each source, then a shared value for each."""
        chosen = self.rounds[number]
        vectors = [_array(kind, values) for kind, values in zip(self.sources, chosen.vectors, strict=True)]
        shared = [_array(kind, [value]) for kind, value in zip(self.sources, chosen.shared, strict=True)]
        return [*vectors, *(one[0] for one in shared)]

    def ptx(self) -> str:
        parameters = [".param .u64 out"]
        parameters += [f".param .u64 v{index}" for index in range(len(self.sources))]
        parameters += [f".param {_register(kind)} u{index}" for index, kind in enumerate(self.sources)]
        body = [
            ".reg .pred %t<64>; .reg .b64 %i, %out, %v<4>; .reg .b32 %n, %odd, %w<64>; .reg .b16 %h<8>;",
            ".reg .pred %odd_one;",
            "mov.u32 %n, %tid.x; cvt.u64.u32 %i, %n; and.b32 %odd, %n, 1; setp.ne.u32 %odd_one, %odd, 0;",
            f"ld.param.u64 %out, [out]; mad.lo.u64 %out, %i, {self.size}, %out;",
        ]
        body += _CELLS
        for index, kind in enumerate(self.sources):
            bits = width(kind)
            body.append(f".reg {_register(kind)} %x{index}, %y{index};")
            body.append(
                f"ld.param.u64 %v{index}, [v{index}]; mad.lo.u64 %v{index}, %i, {bits // 8}, %v{index};"
            )
            body.append(f"ld.global.b{bits} %x{index}, [%v{index}]; ld.param.b{bits} %y{index}, [u{index}];")
            if kind == "pred":
                body.append(f".reg .pred %px{index}, %py{index};")
                body.append(f"setp.ne.b32 %px{index}, %x{index}, 0; setp.ne.b32 %py{index}, %y{index}, 0;")
        for number, occurrence in enumerate(self.occurrences):
            body += self._occurrence(number, occurrence)
        return "\n".join([f".visible .entry {self.name}({', '.join(parameters)}) {{", *body, "ret;", "}"])

    def _occurrence(self, number: int, occurrence: Occurrence) -> Iterator[str]:
        form, names = occurrence.form, {}
        for index, (kind, how) in enumerate(zip(form.sources, occurrence.kinds, strict=True)):
            letter = {"v": "x", "u": "y"}.get(how)
            mark = "p" if kind == "pred" else ""
            names[NAMES[index]] = (
                f"%{mark}{letter}{index}" if letter else _written(kind, constant_of(form, index))
            )
        for index, kind in enumerate(form.results):
            register = names[TARGETS[index]] = f"%{TARGETS[index]}{number}"
            yield f".reg {'.pred' if kind == 'pred' else _register(kind)} {register};"
            if occurrence.guarded:
                yield _prefill(kind, register)
        for statement in form.operands(names).split(";"):
            guard = "@%odd_one " if occurrence.guarded else ""
            yield f"{guard}{statement.strip()};"
        for index, kind in enumerate(form.results):
            row, stored = number * len(form.results) + index, names[TARGETS[index]]
            if kind == "pred":
                yield f".reg .b32 %s{row}; selp.b32 %s{row}, 1, 0, {stored};"
                stored = f"%s{row}"
            yield f"st.global.b{width(kind)} [%out+{row * THREADS * self.size}], {stored};"

    def wrong(self, form: Form, outputs: Sequence[bytes]) -> list[str]:
        """Complaints about what came out of every round for a form."""
        found = []
        for number, occurrence in enumerate(self.occurrences):
            if occurrence.form is form:
                for turn, output in enumerate(outputs):
                    found += self._complaints(number, occurrence, self.rounds[turn], output)
        return found

    def _complaints(self, number: int, occurrence: Occurrence, chosen: Round, output: bytes) -> Iterator[str]:
        form = occurrence.form
        constants = [constant_of(form, index) for index in range(len(form.sources))]
        given: dict[tuple[int, ...], tuple[int | float, ...]] = {}
        for thread in range(THREADS):
            patterns = tuple(
                chosen.vectors[i][thread] if how == "v" else chosen.shared[i] if how == "u" else constants[i]
                for i, how in enumerate(occurrence.kinds)
            )
            if patterns not in given:
                values = (interpreted(kind, bits) for kind, bits in zip(form.sources, patterns, strict=True))
                meant = form.meaning(*values)
                given[patterns] = meant if isinstance(meant, tuple) else (meant,)
            for index, kind in enumerate(form.results):
                start = ((number * len(form.results) + index) * THREADS + thread) * self.size
                got = int.from_bytes(output[start : start + width(kind) // 8], "little")
                want = given[patterns][index]
                if occurrence.guarded and not thread & 1:
                    good = got == _prefilled(kind)
                    want = _prefilled(kind)
                else:
                    good = agrees(form, kind, got, want)
                if not good:
                    shown = want if isinstance(want, float) else hex(want & (1 << width(kind)) - 1)
                    how = occurrence.kinds + ("@" if occurrence.guarded else "")
                    yield f"{how}: {[hex(p) for p in patterns]} gave {hex(got)}, want {shown}"


def agrees(form: Form, kind: str, got: int, want: int | float) -> bool:
    """Bit by bit, except for approximations, and for NaN where its pattern is left open."""
    if isinstance(want, float) and form.bound is not None:
        result = to_float(FORMATS[kind], got)
        if math.isnan(want) or math.isinf(want) or math.isnan(result):
            return (math.isnan(want) and math.isnan(result)) or want == result
        return abs(result - want) <= form.bound.relative * abs(want) + form.bound.absolute
    assert isinstance(want, int)
    if form.any_nan and kind in FORMATS and FORMATS[kind].is_nan(got):
        return FORMATS[kind].is_nan(want)
    return got == want & (1 << width(kind)) - 1


def _prefilled(kind: str) -> int:
    return 1 if kind == "pred" else int.from_bytes(bytes([_PREFILL]) * (width(kind) // 8), "little")


def _prefill(kind: str, register: str) -> str:
    if kind == "pred":
        return f"setp.eq.u32 {register}, 0, 0;"
    return f"mov.b{width(kind)} {register}, {_prefilled(kind)};"


def _array(kind: str, values: list[int]) -> np.ndarray:
    data = b"".join(value.to_bytes(width(kind) // 8, "little") for value in values)
    return np.frombuffer(data, f"u{width(kind) // 8}")


def header(target: str) -> str:
    return (
        f".version 8.8\n.target {target}\n.address_size 64\n"
        f".global .align 32 .b8 global_cells[{32 * THREADS}];\n"
    )


def entries(forms: Sequence[Form]) -> list[Entry]:
    """Forms by signature, in entries of a size that compiles well."""
    groups: dict[tuple[object, ...], list[Form]] = {}
    for form in forms:
        groups.setdefault((form.results, form.sources, form.values), []).append(form)
    found = []
    for group in groups.values():
        for start in range(0, len(group), _ENTRY_FORMS):
            chosen = group[start : start + _ENTRY_FORMS]
            found.append(Entry(f"forms_{chosen[0].key}", chosen))
    return found

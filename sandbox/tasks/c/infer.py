"""From the walk through a function to the task's parameters: extents, shapes, who is read and written,
sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sandbox.errors import TaskProblem
from sandbox.tasks import expressions
from sandbox.tasks.base import Inputs
from sandbox.tasks.c.facts import ROW_LENGTH, Access, Analysis, IndexUse
from sandbox.tasks.c.formals import Formal
from sandbox.tasks.c.parse import Program
from sandbox.tasks.c.polynomial import ONE, Polynomial
from sandbox.tasks.c.ranges import Ranges
from sandbox.types import Problem

_WIDEST_RIM = 8


@dataclass(frozen=True)
class ArrayFacts:
    """One array parameter, as far as the source tells."""

    name: str
    extent: Polynomial | None  # elements, in integer parameters
    extent_text: str  # the same as an expression, shaped where a shape is known; "" when unknown
    shape: tuple[str, ...]  # outermost first; () when not known to have more than one dimension
    reads: bool
    writes: bool


@dataclass
class Inferred:
    arrays: dict[str, ArrayFacts]
    sizes: list[str]  # integer parameters that bound loops or extents, in order
    index_uses: list[IndexUse]
    scattered: set[str]  # arrays that are written where the data says
    row_starts: list[str]  # arrays that hold where rows begin
    ragged: list[str]  # arrays that hold those rows, one behind the other
    reductions: list[Polynomial]
    work: list[tuple[Polynomial, int]]
    bounds: set[str]
    unknown: list[str]  # arrays whose extent is not known
    notes: list[str] = field(default_factory=list)
    nonnegative: bool = False  # integer arrays get no negative values
    most: int | None = None  # integer arrays get no larger values; None: those of their whole type
    unit_range: bool = False  # floating-point arrays get values from 0 to 1
    float_to_integer: bool = False
    special: bool = True  # NaN and infinities are legal inputs

    def reduction_length(self, values: Mapping[str, int]) -> int:
        return max([1, *(_evaluated(length, values) for length in self.reductions)])

    def is_scatter(self, source: str) -> bool:
        """Whether its values say where something is put, nothing being added: then each place is
        named once."""
        uses = [use for use in self.index_uses if use.source == source]
        written = {use.array for use in uses if use.kind == "write"}
        return bool(written - {use.array for use in uses if use.kind == "read"})

    def row_total(self, extents: Mapping[str, int]) -> int:
        """Elements in all rows together: as many as the arrays have that hold them."""
        return min((extents[name] for name in self.ragged), default=0)

    def operations(self, values: Mapping[str, int]) -> int:
        return sum(max(_evaluated(times, values), 0) * count for times, count in self.work)

    def extents(self, values: Mapping[str, int]) -> dict[str, int]:
        """Elements of every array whose extent is known; never negative. Raises
        expressions.ExpressionError."""
        return {
            name: max(expressions.evaluate(a.extent_text, values), 0)
            for name, a in self.arrays.items()
            if a.extent_text
        }


def infer(program: Program, formals: Sequence[Formal], analysis: Analysis, inputs: Inputs) -> Inferred:
    """Raises TaskProblem for written globals and for names or expressions in `inputs` that make no sense."""
    if analysis.written_globals:
        name, line = analysis.written_globals[0]
        raise TaskProblem(
            Problem(
                kind="unsupported_global",
                message=f"the global variable {name} is written to; results must be left in the parameters",
                hint="pass it as a pointer parameter, or make it local",
                file=program.filename,
                line=line,
            )
        )
    _check_names(formals, inputs)
    totals = {total: array for array, total in analysis.offsets.items()}
    arrays: dict[str, ArrayFacts] = {}
    extents = _extents(formals, analysis, inputs, totals)
    for formal in formals:
        if formal.is_array:
            arrays[formal.name] = _array(formal, extents.get(formal.name), analysis, inputs)
    integers = {f.name for f in formals if f.is_integer_scalar}
    mentioned = set(analysis.bounds)
    for array in arrays.values():
        if array.extent_text:
            mentioned |= expressions.names(array.extent_text)
    substitution = {total: _row_total(extents.get(array)) for total, array in totals.items()}
    known = {name: value for name, value in substitution.items() if value is not None}
    return Inferred(
        arrays=arrays,
        sizes=[f.name for f in formals if f.name in integers & mentioned],
        index_uses=[use for use in analysis.index_uses if use.source not in analysis.offsets],
        scattered=analysis.scattered,
        row_starts=list(analysis.offsets),
        ragged=sorted({a.array for a in analysis.accesses if a.last and a.last.symbols & totals.keys()}),
        reductions=[r.substitute(known) for r in analysis.reductions] + _recurrences(analysis, extents),
        work=[(times.substitute(known), count) for times, count in analysis.work],
        bounds=analysis.bounds & integers,
        float_to_integer=analysis.float_to_integer,
        special=analysis.special,
        unknown=[a.name for a in arrays.values() if not a.extent_text],
    )


def unknown_extent(program: Program, names: Sequence[str], sizes: Sequence[str]) -> TaskProblem:
    """Asks for extents, and shows what to add."""
    example = " * ".join(sizes[:2]) or "1024"
    block = "\n".join(f'[arrays.{name}]\nextent = "{example}"' for name in names)
    return TaskProblem(
        Problem(
            kind="unknown_extent",
            message=f"how many elements {', '.join(names)} has cannot be inferred from the loops",
            hint=f"say it in the inputs block, as an expression over the integer parameters:\n{block}",
            file=program.filename,
            choices=list(names),
        )
    )


def _check_names(formals: Sequence[Formal], inputs: Inputs) -> None:
    arrays = {f.name for f in formals if f.is_array}
    scalars = {f.name: f for f in formals if not f.is_array}
    integers = {name for name, f in scalars.items() if f.is_integer_scalar}
    for kind, given, known in (
        ("size", inputs.sizes, integers),
        ("scalar", inputs.scalars, set(scalars)),
        ("array", inputs.arrays, arrays),
    ):
        for name in given:
            if name not in known:
                raise _bad_inputs(
                    f"the inputs block names the {kind} {name!r}, which is no such parameter", known
                )
    for name, value in inputs.sizes.items():
        if value < 0:
            raise _bad_inputs(f"the size {name} = {value} is negative", ())
    for name, array in inputs.arrays.items():
        if array.extent is None:
            continue
        try:
            strangers = expressions.names(array.extent) - integers
        except expressions.ExpressionError as error:
            raise _bad_inputs(f"the extent of {name}: {error}", ()) from error
        if strangers:
            raise _bad_inputs(f"the extent of {name} mentions {', '.join(sorted(strangers))}", integers)


def _bad_inputs(message: str, choices: Sequence[str] | set[str]) -> TaskProblem:
    return TaskProblem(Problem(kind="bad_inputs", message=message, choices=sorted(choices)))


def _extents(
    formals: Sequence[Formal], analysis: Analysis, inputs: Inputs, totals: Mapping[str, str]
) -> dict[str, Polynomial]:
    """Those that follow from subscripts with known bounds, then those of ragged lists, then gathered
    arrays."""
    found: dict[str, Polynomial] = {}
    waiting: dict[str, Polynomial] = {}
    for formal in formals:
        if not formal.is_array:
            continue
        if formal.is_result:
            found[formal.name] = ONE
            continue
        if formal.name in analysis.declared:
            found[formal.name] = analysis.declared[formal.name]
            continue
        accesses = [a for a in analysis.accesses if a.array == formal.name and a.last is not None]
        if not accesses:
            continue
        extent = Ranges().largest([a.last for a in accesses if a.last is not None]) + 1
        target = waiting if extent.symbols & totals.keys() else found
        target[formal.name] = extent if target is waiting else _rounded_up(extent)
    for name, extent in waiting.items():
        rows = {total: _row_total(found.get(array)) for total, array in totals.items()}
        known = {total: value for total, value in rows.items() if value is not None}
        if extent.symbols & totals.keys() <= known.keys():
            found[name] = extent.substitute(known)
    for use in analysis.index_uses:
        # Only ever reached through indices: any extent will do that the indices keep to.
        if use.array not in found and use.source in found and use.source not in analysis.offsets:
            factor = use.factor if use.factor.has_sign(1) else ONE
            found[use.array] = _gathered(use.source, found, analysis) * factor
    return found


def _gathered(source: str, found: Mapping[str, Polynomial], analysis: Analysis) -> Polynomial:
    """For `x[index[k]]`: as many elements as there are rows in a ragged list, else as there are indices."""
    for array in analysis.offsets:
        if array in found:
            return found[array] - 1
    return found[source]


def _row_total(starts: Polynomial | None) -> Polynomial | None:
    return ROW_LENGTH * (starts - 1) if starts is not None else None


def _rounded_up(extent: Polynomial) -> Polynomial:
    """`n * m - m - 1`, the last interior element of an n by m array, means `n * m`."""
    degree = extent.degree()
    leading = [term for term in extent.terms if sum(p for _, p in term[0]) == degree]
    if degree == 0 or len(leading) != 1 or leading[0][1] != 1:
        return extent
    whole = Polynomial((leading[0],))
    powers = dict(leading[0][0])
    rest = whole - extent
    divides = all(all(powers.get(n, 0) >= p for n, p in monomial) for monomial, _ in rest.terms)
    return whole if rest.terms and divides and Ranges().sign(rest) == 1 else extent


def _array(formal: Formal, extent: Polynomial | None, analysis: Analysis, inputs: Inputs) -> ArrayFacts:
    accesses = [a for a in analysis.accesses if a.array == formal.name]
    given = inputs.arrays.get(formal.name)
    shape: tuple[str, ...] = ()
    text = extent.to_c() if extent is not None else ""
    if extent is not None:
        shape = _shape(extent, accesses)
        if len(shape) > 1:
            text = " * ".join(dim if dim.isalnum() else f"({dim})" for dim in shape)
    if given is not None and given.extent is not None:
        text, shape, extent = given.extent, (), None
    reads = any(a.kind == "read" for a in accesses)
    writes = formal.is_result or any(a.kind == "write" for a in accesses)
    if given is not None and given.access is not None:
        reads, writes = given.access != "write", given.access != "read"
    return ArrayFacts(formal.name, extent, text, shape, reads, writes and not formal.const)


def _shape(extent: Polynomial, accesses: Sequence[Access]) -> tuple[str, ...]:
    """Dimensions whose product is the extent and whose strides stand in the subscripts."""
    strides: set[Polynomial] = set()
    for access in accesses:
        if access.offset is not None:
            for symbol in access.offset.symbols:
                if "$" in symbol:
                    strides.add(access.offset.coefficient(symbol))
    if len(extent.terms) != 1 or extent.terms[0][1] != 1:
        return _padded_shape(extent, strides)
    chain, rest = [], extent
    for stride in sorted(strides, key=lambda s: (-s.degree(), s.to_c())):
        outer = _quotient(rest, stride)
        if stride.degree() > 0 and outer is not None and outer.degree() > 0:
            chain.append(outer)
            rest = stride
    return (*(dim.to_c() for dim in chain), rest.to_c()) if chain else ()


def _padded_shape(extent: Polynomial, strides: Collection[Polynomial]) -> tuple[str, ...]:
    """Two dimensions with a rim: (n + 2) * (m + 2), where m + 2 is a stride."""
    for stride in sorted(strides, key=Polynomial.to_c):
        for symbol in sorted(extent.symbols):
            for rim in range(-_WIDEST_RIM, _WIDEST_RIM + 1):
                outer = Polynomial.symbol(symbol) + rim
                if stride.degree() == 1 and outer * stride == extent:
                    return outer.to_c(), stride.to_c()
    return ()


def _quotient(value: Polynomial, by: Polynomial) -> Polynomial | None:
    if len(value.terms) != 1 or len(by.terms) != 1 or by.terms[0][1] != 1:
        return None
    powers = dict(value.terms[0][0])
    for name, power in by.terms[0][0]:
        powers[name] = powers.get(name, 0) - power
    if min(powers.values(), default=0) < 0:
        return None
    return Polynomial(((tuple(sorted((n, p) for n, p in powers.items() if p)), value.terms[0][1]),))


def _recurrences(analysis: Analysis, extents: Mapping[str, Polynomial]) -> list[Polynomial]:
    """Arrays that feed on their own other elements: errors travel along them."""
    found = []
    for name in {a.array for a in analysis.accesses}:
        written = {a.offset for a in analysis.accesses if a.array == name and a.kind == "write"}
        read = {a.offset for a in analysis.accesses if a.array == name and a.kind == "read"}
        if written and read - written and name in extents:
            found.append(extents[name])
    return found


def _evaluated(value: Polynomial, values: Mapping[str, int]) -> int:
    try:
        return value.evaluate(values)
    except expressions.ExpressionError:
        return 1

"""A C function as a task: parsed, inferred, probed; its draws and its truth."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.tasks import draws as values
from sandbox.tasks import expressions
from sandbox.tasks.base import ArrayInput, Baseline, Distribution, Draw, Expected, Inputs, Parameter, TaskSpec
from sandbox.tasks.c import reference
from sandbox.tasks.c.baseline import baselines
from sandbox.tasks.c.build import Executable, build_checked, build_native, build_wide
from sandbox.tasks.c.fill import fill, usual_integer
from sandbox.tasks.c.formals import Formal, choose_entry, formals, prototype
from sandbox.tasks.c.infer import Inferred, infer, unknown_extent
from sandbox.tasks.c.legal import ALL, legal_distributions
from sandbox.tasks.c.notes import notes
from sandbox.tasks.c.parse import Program, parse
from sandbox.tasks.c.probe import Probed, probe
from sandbox.tasks.c.representative import Trial, meaningful, representative, vary
from sandbox.tasks.c.sizing import LARGEST_GIVEN_ELEMENTS, Kind, Sized, Sizing
from sandbox.tasks.c.trace import trace_extents
from sandbox.tasks.c.walk import analyse
from sandbox.tasks.c.widen import reinterprets
from sandbox.types import Problem

TOLERANCE_RULE = (
    "for the largest, the relative L2 and the largest row error: at most twice the error of your own program "
    "in its own precision against the same program in a wider one, and never below 4 eps sqrt(longest sum); "
    "integers, NaN and infinities must agree"
)

#: The draws of one judgement: at which kind of size, with which distribution.
_PLAN: tuple[tuple[Kind, Distribution], ...] = (
    ("representative", "normal"),
    ("beyond", "uniform"),
    ("tile", "heavy_tail"),
    ("odd", "cancellation"),
    ("thin", "large_offset"),
    ("one", "uniform"),
    ("empty", "normal"),
)
_SPECIAL: tuple[Kind, Distribution] = ("tile", "special")
#: Where no size of a kind is legal: which to take instead; a kind that has no other is left out.
_INSTEAD: dict[Kind, tuple[Kind, ...]] = {
    "beyond": ("odd", "tile", "one", "representative"),
    "odd": ("tile", "one", "representative"),
    "tile": ("odd", "one", "representative"),
    "thin": ("odd", "tile", "one", "representative"),
    "one": ("thin", "tile"),
}


@dataclass(frozen=True)
class CTask:
    """Implements `sandbox.tasks.base.Task`."""

    spec: TaskSpec
    formals: Sequence[Formal]
    inferred: Inferred
    probed: Probed
    distributions: Sequence[Distribution]  # those the program is defined for
    native: Executable
    wide: Executable | None  # None where the native reference is the truth
    program: Program

    def draws(self, seed: bytes) -> list[Draw]:
        """6 to 8 draws; which of the legal sizes they use hangs on the seed."""
        special = self.inferred.special and not self.inferred.reductions and "special" in self.distributions
        plan = [*_PLAN, *([_SPECIAL] if special else [])]
        chosen = []
        for number, (kind, distribution) in enumerate(plan):
            rng = values.generator(seed, "draw", number)
            sized = self._sized(kind, rng)
            if distribution not in self.distributions:
                distribution = "normal"
            if sized is not None:
                chosen.append(self._draw(sized, distribution, rng, representative=number == 0))
        return chosen

    def expected(self, draws: Sequence[Draw], cancel: Cancellation) -> list[Expected]:
        return reference.expected(
            self.native,
            self.wide,
            self.formals,
            draws,
            reduction_length=self.inferred.reduction_length,
            rows=self._row,
            written={p.name for p in self.spec.parameters if p.kind == "array" and p.access != "read"},
            cancel=cancel,
        )

    def baselines(self, draws: Sequence[Draw], cancel: Cancellation) -> list[Baseline]:
        return baselines(self.program, self.spec.name, self.formals, draws, cancel)

    def _sized(self, kind: Kind, rng: np.random.Generator) -> Sized | None:
        for wished in (kind, *_INSTEAD.get(kind, ())):
            fitting = [sized for sized in self.probed.legal if sized.kind == wished]
            if fitting:
                return fitting[int(rng.integers(len(fitting)))]
        return None

    def _draw(
        self, sized: Sized, distribution: Distribution, rng: np.random.Generator, *, representative: bool
    ) -> Draw:
        call = fill(self.formals, self.inferred, self.spec.inputs, sized.sizes, distribution, rng)
        access = self.probed.access
        return Draw(
            sizes=dict(sized.sizes),
            scalars=call.scalars,
            arrays={name: array for name, array in call.arrays.items() if access[name] != "write"},
            extents=call.extents,
            distribution=self._label(distribution),
            representative=representative,
        )

    def _label(self, distribution: Distribution) -> Distribution:
        """What the values really are, where ranges leave no room for the distribution."""
        if self.inferred.unit_range:
            return "uniform"
        arrays = self.spec.inputs.arrays
        floating = [
            f.name for f in self.formals if f.is_array and f.dtype.startswith("float") and not f.is_result
        ]
        ranged = [
            n for n in floating if n in arrays and (arrays[n].low is not None or arrays[n].high is not None)
        ]
        return "given" if floating and ranged == floating else distribution

    def _row(self, name: str, draw: Draw) -> int:
        """Elements in a row of an array with a known shape; 0 for the others."""
        shape = self.inferred.arrays[name].shape
        return expressions.evaluate(shape[-1], draw.scalars) if len(shape) > 1 else 0  # type: ignore[arg-type]


def load_c(source: str, *, filename: str, entry: str | None, inputs: Inputs, cancel: Cancellation) -> CTask:
    """Raises TaskProblem for everything that is wrong with the text, the inputs block or the program's
    behaviour."""
    program = parse(source, filename=filename, cancel=cancel)
    name = choose_entry(program, entry)
    parameters = formals(program, name)
    bits = reinterprets(program)
    with ThreadPoolExecutor(2) as pool:
        native = pool.submit(build_native, program, name, parameters, cancel)
        wide = pool.submit(build_wide, program, name, parameters, cancel) if bits is None else None
        inferred = _inferred(program, name, parameters, inputs, native, cancel)
        sizing = _sizing(parameters, inferred, inputs)
        built = native.result()
        trial = Trial(built, wide, parameters, inferred, inputs, cancel)
        sizes = representative(sizing, trial)
        vary(sizes, trial)
        pooled = sizing.pool(sizes)
        probed = _probed(built, parameters, inferred, inputs, pooled, cancel)
        legal = _distributions(program, name, parameters, inferred, probed, inputs, cancel)
        distributions = meaningful(legal, sizes, trial)
        if len(distributions) < len(legal):
            lost = ", ".join(kind for kind in legal if kind not in distributions)
            inferred.notes.append(
                f"not judged on inputs of the kinds {lost}: your program has no digits there"
            )
        widened = _widened(wide) if wide is not None else None
    spec = _spec(program, name, parameters, inferred, probed, inputs, bits, widened is not None)
    return CTask(spec, parameters, inferred, probed, distributions, built, widened, program)


def _inferred(
    program: Program,
    name: str,
    parameters: Sequence[Formal],
    inputs: Inputs,
    native: Future[Executable],
    cancel: Cancellation,
) -> Inferred:
    """From the source; what that leaves open, from running it. Raises TaskProblem asking for what is
    still open."""
    analysis = analyse(program, name, list(parameters))
    inferred = infer(program, parameters, analysis, inputs)
    if not inferred.unknown:
        return inferred
    native.result()  # that it does not compile would be the better message
    traced = trace_extents(program, name, parameters, inferred.unknown, inputs, cancel)
    missing = [array for array in inferred.unknown if array not in traced]
    if missing:
        raise unknown_extent(program, missing, [f.name for f in parameters if f.is_integer_scalar])
    extents = {
        array: inputs.arrays.get(array, ArrayInput()).model_copy(update={"extent": text})
        for array, text in traced.items()
    }
    whole = inputs.model_copy(update={"arrays": {**inputs.arrays, **extents}})
    inferred = infer(program, parameters, analysis, whole)
    inferred.notes += [
        f"{array}: its extent was found by running your program at small sizes" for array in traced
    ]
    return inferred


def _sizing(parameters: Sequence[Formal], inferred: Inferred, inputs: Inputs) -> Sizing:
    fixed = {
        f.name: int(inputs.scalars.get(f.name, usual_integer(f)))
        for f in parameters
        if f.is_integer_scalar and f.name not in inferred.sizes
    }
    given = {n: v for n, v in {**inputs.scalars, **inputs.sizes}.items() if n in inferred.sizes}
    sizing = Sizing(inferred, {name: int(value) for name, value in given.items()}, fixed)
    elements = sizing.elements(sizing.representative())
    if elements > LARGEST_GIVEN_ELEMENTS:
        raise TaskProblem(
            Problem(
                kind="too_large",
                message=f"the arrays would have {elements} elements; {LARGEST_GIVEN_ELEMENTS} is the limit",
                hint="give smaller sizes in the inputs block",
            )
        )
    return sizing


def _probed(
    native: Executable,
    parameters: Sequence[Formal],
    inferred: Inferred,
    inputs: Inputs,
    pool: Sequence[Sized],
    cancel: Cancellation,
) -> Probed:
    """Where integers of either sign lead out of bounds, once more without negative ones."""
    try:
        return probe(native, parameters, inferred, inputs, pool, cancel)
    except TaskProblem as problem:
        integers = [
            f.name for f in parameters if f.is_array and not f.dtype.startswith(("float", "uint", "bool"))
        ]
        if problem.problem.kind not in ("reference_faults", "reference_crashes") or not integers:
            raise
        inferred.nonnegative = True
        try:
            probed = probe(native, parameters, inferred, inputs, pool, cancel)
        except TaskProblem:
            raise problem from None
        inferred.notes.append(
            f"{', '.join(integers)}: no negative values, which take your program out of bounds"
        )
        return probed


def _distributions(
    program: Program,
    name: str,
    parameters: Sequence[Formal],
    inferred: Inferred,
    probed: Probed,
    inputs: Inputs,
    cancel: Cancellation,
) -> Sequence[Distribution]:
    if not inferred.float_to_integer:
        return ALL
    checked = build_checked(program, name, parameters, cancel)
    legal = legal_distributions(checked, parameters, inferred, inputs, probed.legal[0], cancel)
    if inferred.unit_range:
        inferred.notes.append(
            "floating-point inputs lie between 0 and 1: others do not fit the integers they become"
        )
    return legal


def _widened(build: Future[Executable]) -> Executable | None:
    """None where the rewritten program does not compile although the user's own does."""
    try:
        return build.result()
    except TaskProblem:
        return None


def _spec(
    program: Program,
    name: str,
    parameters: Sequence[Formal],
    inferred: Inferred,
    probed: Probed,
    inputs: Inputs,
    bits: str | None,
    widened: bool,
) -> TaskSpec:
    return TaskSpec(
        language="c",
        name=name,
        source=program.source,
        prototype=prototype(parameters),
        parameters=[_parameter(f, inferred, probed) for f in parameters],
        sizes=dict(probed.legal[0].sizes),
        inputs=inputs,
        notes=notes(parameters, inferred, probed, inputs, bits=bits, widened=widened),
        tolerance_rule=TOLERANCE_RULE,
    )


def _parameter(formal: Formal, inferred: Inferred, probed: Probed) -> Parameter:
    if not formal.is_array:
        role = "size" if formal.name in inferred.sizes else "value"
        return Parameter(name=formal.name, kind="scalar", dtype=formal.dtype, c_type=formal.c_type, role=role)
    facts = inferred.arrays[formal.name]
    return Parameter(
        name=formal.name,
        kind="array",
        dtype=formal.dtype,
        c_type=formal.c_type,
        access=probed.access[formal.name],
        extent=facts.extent_text,
        shape=list(facts.shape) or [facts.extent_text],
        role="result" if formal.is_result else "data",
    )

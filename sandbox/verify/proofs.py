"""Proofs that a task's tolerances can tell right from wrong: cheap fakes must fail on at least one draw.

Four fakes are tried in place of a candidate: all zeros; one constant (the mean of the first draw's output,
the same on every draw); a copy of each input that has the output's size and type; and the truth with one
unlucky rounding to the next lower precision, which stands for the many roundings of the same computation
done there. Where the output does not move with the inputs, a constant for each draw is tried as well. What
is exempt, and why:

- copies, where the reference itself returns that input bit for bit on every draw: copying is then the task
  (but a reference that leaves every array as it was does nothing, and is degenerate);
- lower precision, where rounding changes nothing on any draw (comparisons, small counts): such a result has
  no more digits to get right; and where the user gave a tolerance, which is a wish for exactly that;
- everything, where no draw has an element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sandbox.tasks.base import Array
from sandbox.types import Check
from sandbox.verify.compare import DrawTruth
from sandbox.verify.norms import LOWER_BITS, far_neighbour

Outputs = dict[str, Array]
Fake = Callable[[DrawTruth], Outputs | None]  # None: does not apply to this draw


def prove(truths: Sequence[DrawTruth], *, tolerance_given: bool) -> list[Check]:
    """One check for each fake; a check that has not passed makes the task degenerate."""
    truths = [truth for truth in truths if not truth.is_empty]
    if not truths:
        return []
    first = next((t for t in truths if t.draw.representative), truths[0])
    truths = [first, *(t for t in truths if t is not first)]
    checks = [
        _must_fail(truths, "tolerance_zeros", "all zeros", _zeros),
        _must_fail(truths, "tolerance_constant", "one constant", _constant(first)),
        *_constants_by_size(truths),
        *_copies(truths),
    ]
    return [*checks, *_lower(truths, tolerance_given)]


def reason(checks: Sequence[Check]) -> str | None:
    """Why the task is degenerate, or None."""
    return next((c.detail for c in checks if c.name.startswith("tolerance_") and not c.passed), None)


def _must_fail(truths: Sequence[DrawTruth], name: str, words: str, fake: Fake) -> Check:
    for number, truth in enumerate(truths):
        outputs = fake(truth)
        if outputs is not None and not truth.accepts(outputs):
            where = "the representative draw" if number == 0 else "another draw"
            return Check(name=name, passed=True, detail=f"{words} would fail on {where}")
    return Check(
        name=name,
        passed=False,
        detail=f"{words} would pass on every draw, so a wrong kernel could not be told from a right one",
    )


def _zeros(truth: DrawTruth) -> Outputs:
    return {p.name: np.zeros_like(truth.expected.native[p.name].ravel()) for p in truth.outputs}


def _constant(first: DrawTruth) -> Fake:
    levels = {p.name: _level(first.expected.native[p.name]) for p in first.outputs}

    def fake(truth: DrawTruth) -> Outputs:
        natives = truth.expected.native
        return {p.name: np.full_like(natives[p.name].ravel(), levels[p.name]) for p in truth.outputs}

    return fake


def _constants_by_size(truths: Sequence[DrawTruth]) -> list[Check]:
    """A constant of each draw's own must fail as well where the truth stands still when inputs move: then it
    follows from the sizes alone, as the mean of a softmax does."""
    truths = [
        t for t in truths if t.draw.arrays and all(t.expected.native[p.name].size > 1 for p in t.outputs)
    ]
    if not truths or any(_moves(truth) for truth in truths):
        return []
    words = "a constant that follows from the sizes, whatever the input,"
    return [_must_fail(truths, "tolerance_constant", words, lambda truth: _constant(truth)(truth))]


def _moves(truth: DrawTruth) -> bool:
    """Whether inputs that move by a unit of rounding move any output by a thousandth of one; True where there
    is no saying, as of integers."""
    if any(not np.issubdtype(values.dtype, np.floating) for values in truth.draw.arrays.values()):
        return True
    for name, native in truth.expected.native.items():
        response = truth.expected.response.get(name)
        if response is None or not np.issubdtype(native.dtype, np.floating):
            return True
        scale = np.max(np.abs(native), initial=0.0, where=np.isfinite(native))
        if np.any(response > 1e-3 * np.finfo(native.dtype).eps * scale):
            return True
    return False


def _level(values: Array) -> float | int:
    if not np.issubdtype(values.dtype, np.floating):
        return int(np.sort(values, axis=None)[values.size // 2]) if values.size else 0
    finite = values[np.isfinite(values)].astype(np.float64)
    return float(np.sum(finite / finite.size)) if finite.size else 0.0  # the sum itself may overflow


def _copies(truths: Sequence[DrawTruth]) -> list[Check]:
    checks = []
    for output in truths[0].outputs:
        for name, values in truths[0].draw.arrays.items():
            native = truths[0].expected.native[output.name]
            if values.dtype != native.dtype or values.size != native.size:
                continue
            if _copied(truths, output.name, name) and not (output.name == name and _idle(truths)):
                detail = f"{output.name} is a copy of {name} in the reference too: copying is the task"
                checks.append(Check(name="tolerance_input_copy", passed=True, detail=detail))
                continue
            words = f"{output.name} as a copy of the input {name}"
            checks.append(_must_fail(truths, "tolerance_input_copy", words, _copy(output.name, name)))
    return checks


def _copied(truths: Sequence[DrawTruth], output: str, source: str) -> bool:
    """Whether the reference returns that input bit for bit on every draw."""
    return all(_same_bits(t.draw.arrays[source], t.expected.native[output]) for t in truths)


def _idle(truths: Sequence[DrawTruth]) -> bool:
    """Whether the reference leaves everything as it was."""
    names = [p.name for p in truths[0].outputs]
    return all(name in truths[0].draw.arrays and _copied(truths, name, name) for name in names)


def _copy(output: str, source: str) -> Fake:
    """Every other output is right: one lazy output is enough to be wrong."""

    def fake(truth: DrawTruth) -> Outputs | None:
        values = truth.draw.arrays[source].ravel()
        if values.size != truth.expected.native[output].size:
            return None
        return {**_right(truth), output: values}

    return fake


def _lower(truths: Sequence[DrawTruth], tolerance_given: bool) -> list[Check]:
    name = "tolerance_lower_precision"
    if not any(truth.yardsticks for truth in truths):
        return []
    if tolerance_given:
        return [Check(name=name, passed=True, detail="not asked: the inputs block gives the tolerance")]
    fakes = [_in_lower(truth) for truth in truths]
    if all(
        np.array_equal(fake[p], truth.expected.native[p], equal_nan=True)
        for fake, truth in zip(fakes, truths, strict=True)
        for p in truth.yardsticks
    ):
        return [
            Check(name=name, passed=True, detail="not asked: the outputs are exact in lower precision too")
        ]
    words = (
        "the truth with one rounding to the next lower precision (standing for the computation done there)"
    )
    return [_must_fail(truths, name, words, _in_lower)]


def _in_lower(truth: DrawTruth) -> Outputs:
    outputs = _right(truth)
    for name, rule in truth.yardsticks.items():
        with np.errstate(over="ignore"):
            outputs[name] = far_neighbour(rule.truth, LOWER_BITS[rule.native.dtype.name]).astype(
                rule.native.dtype
            )
    return outputs


def _right(truth: DrawTruth) -> Outputs:
    return {p.name: truth.expected.native[p.name].ravel() for p in truth.outputs}


def _same_bits(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()

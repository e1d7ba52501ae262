"""One draw's outputs against its truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sandbox.tasks import expressions
from sandbox.tasks.base import Array, Draw, Expected, Parameter, TaskSpec
from sandbox.types import Mismatch
from sandbox.verify.norms import Errors, Yardstick, yardstick


@dataclass(frozen=True)
class ArrayVerdict:
    """One output array of one draw."""

    right: bool
    errors: Errors | None  # None for integers
    allowed: Errors | None
    wrong: Array | None  # flat bool, which elements are wrong; None when `right`


class DrawTruth:
    """What one draw must yield, with the yardsticks made once for all replays and proofs."""

    def __init__(self, spec: TaskSpec, draw: Draw, expected: Expected) -> None:
        self.draw = draw
        self.expected = expected
        written = [p for p in spec.parameters if p.kind == "array" and p.access != "read"]
        self.outputs = [p for p in written if p.name in expected.native]
        self._tolerance = spec.inputs.tolerance

    @cached_property
    def yardsticks(self) -> Mapping[str, Yardstick]:
        expected = self.expected
        return {
            p.name: yardstick(
                expected.truth[p.name],
                expected.native[p.name],
                response=expected.response.get(p.name),
                reduction_length=expected.reduction_length,
                row=expected.rows.get(p.name, 0),
                tolerance=self._tolerance,
            )
            for p in self.outputs
            if np.issubdtype(expected.native[p.name].dtype, np.floating)
        }

    @property
    def is_empty(self) -> bool:
        return all(self.expected.native[p.name].size == 0 for p in self.outputs)

    def check(self, name: str, got: Array) -> ArrayVerdict:
        """`got` is flat, in the parameter's dtype."""
        native = self.expected.native[name].ravel()
        if name not in self.yardsticks:
            # An integer may hang on a rounding (a bin, an arg max): native and wide are both right, and so is
            # what comes out when inputs move by a few units of rounding.
            wrong = (got != native) & (got != self.expected.truth[name].ravel())
            for other in self.expected.alternatives.get(name, ()):
                wrong &= got != other.ravel()
            return ArrayVerdict(not wrong.any(), None, None, wrong)
        rule = self.yardsticks[name]
        errors = rule.errors(got)
        if errors.within(rule.allowed) and bool(np.all(rule.classes_agree(got))):
            return ArrayVerdict(True, errors, rule.allowed, None)
        wrong = rule.element_wrong(got)
        if not wrong.any():  # no element alone is too far off, all together are: show the worst
            with np.errstate(all="ignore"):
                far = np.where(rule.comparable, np.abs(got.astype(np.float64) - rule.truth), 0.0)
            wrong = far == far.max(initial=0.0)
        return ArrayVerdict(False, errors, rule.allowed, wrong)

    def accepts(self, outputs: Mapping[str, Array]) -> bool:
        """Whether these outputs, one flat array for each output parameter, would pass."""
        return all(self.check(p.name, outputs[p.name]).right for p in self.outputs)


def from_bytes(parameter: Parameter, data: bytes, count: int) -> Array | None:
    """The first `count` elements; None when there are too few bytes."""
    dtype = np.dtype(parameter.dtype)
    if len(data) < count * dtype.itemsize:
        return None
    stored = np.dtype("uint8") if dtype == np.dtype("bool") else dtype  # a bool byte of 2 is no bool
    return np.frombuffer(data, dtype=stored, count=count)


def mismatch(
    truth: DrawTruth, parameter: Parameter, replays: Sequence[Array], wrong: Array, index: int
) -> Mismatch:
    """The first wrong element of the first replay, `index` being the number of the draw."""
    draw, name = truth.draw, parameter.name
    at = int(np.argmax(wrong))
    known = truth.expected.truth[name].ravel()[at]
    return Mismatch(
        array=name,
        index=_position(parameter, draw, at, wrong.size),
        got="never written" if _is_poison(replays, at) else _plain(replays[0][at]),
        expected=_plain(known),
        draw=index,
        sizes=dict(draw.sizes),
        inputs=_inputs_at(draw, at, wrong.size),
    )


def unwritten(replays: Sequence[Array]) -> Array | None:
    """Flat bool: elements that keep the poison of every replay. None with fewer than two replays."""
    if len(replays) < 2:
        return None
    size = replays[0].dtype.itemsize
    kept = [np.ascontiguousarray(r).view(np.uint8).reshape(-1, size) for r in replays]
    uniform = [np.all(bytes_ == bytes_[:, :1], axis=1) for bytes_ in kept]
    return np.asarray(uniform[0] & uniform[1] & (kept[0][:, 0] != kept[1][:, 0]))


def _is_poison(replays: Sequence[Array], at: int) -> bool:
    never = unwritten([replay[at : at + 1] for replay in replays])
    return never is not None and bool(never[0])


def _position(parameter: Parameter, draw: Draw, at: int, count: int) -> list[int]:
    try:
        shape = [expressions.evaluate(text, draw.sizes) for text in parameter.shape]
    except expressions.ExpressionError:
        shape = []
    if len(shape) < 2 or min(shape) < 1 or int(np.prod(shape)) != count:
        return [at]
    return [int(i) for i in np.unravel_index(at, shape)]


def _inputs_at(draw: Draw, at: int, count: int) -> dict[str, float | int]:
    """Values at the same place in inputs of the same size, and the scalars that are no sizes."""
    found: dict[str, float | int] = {
        name: _number(values.ravel()[at]) for name, values in draw.arrays.items() if values.size == count
    }
    found.update((name, value) for name, value in draw.scalars.items() if name not in draw.sizes)
    return found


def _number(value: np.generic) -> float | int:
    plain = value.item()
    return plain if isinstance(plain, float) else int(plain)


def _plain(value: np.generic) -> float | int | str:
    return _number(value)

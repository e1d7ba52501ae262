"""Errors of one floating-point output against the truth, and how large they may be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sandbox.tasks.base import Array

NATIVE_FACTOR = 2.0
FLOOR_FACTOR = 4.0
#: Rows shorter than this have no error of their own: one small element would decide it.
SHORTEST_ROW = 8
#: A difference of this many units of rounding (times the root of the reduction length) is a jump ...
_JUMP = 16.0
#: ... in at most one of so many elements.
_FEWEST_OF = 32

_EPSILON = {"float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
#: Bits of significand (with the hidden one) of the next lower precision: tf32 and fp16 for float, float for
#: double.
LOWER_BITS = {"float16": 8, "float32": 11, "float64": 24}


@dataclass(frozen=True)
class Errors:
    """Normalised: 1.0 is an error as large as the data."""

    max: float
    l2: float
    row: float  # 0 where the array has no rows worth the name

    def within(self, allowed: Errors) -> bool:
        """`not (error <= allowed)` fails, so a NaN never passes."""
        pairs = ((self.max, allowed.max), (self.l2, allowed.l2), (self.row, allowed.row))
        return all(error <= bound for error, bound in pairs)


@dataclass(frozen=True)
class Yardstick:
    """What differences in one output of one draw are measured against. All arrays are flat."""

    truth: Array  # float64
    native: Array  # the reference's own precision
    comparable: Array  # bool: truth and native are both finite, and no jump lies between them
    scale: float
    norm: float  # 2-norm in units of `scale`, so that neither of them overflows
    row_scales: Array | None  # one for each row
    row_norms: Array | None  # in units of the row's own scale
    row: int  # elements per row; 0 for none
    allowed: Errors

    @property
    def element_bound(self) -> float:
        """Absolute: the largest difference that one element may have."""
        return self.allowed.max * self.scale

    def errors(self, got: Array) -> Errors:
        """`got` is flat. Only comparable elements count; the others are compared by `classes_agree`."""
        with np.errstate(all="ignore"):
            difference = np.where(self.comparable, got.astype(np.float64) - self.truth, 0.0)
            largest = float(np.max(np.abs(difference), initial=0.0)) / self.scale
            l2 = float(_norms((difference / self.scale).reshape(1, -1))[0]) / self.norm
            row = 0.0
            if self.row_norms is not None and self.row_scales is not None:
                rows = _norms(difference.reshape(-1, self.row) / self.row_scales[:, None])
                row = float(np.max(rows / self.row_norms, initial=0.0))
        return Errors(largest, l2, row)

    def element_wrong(self, got: Array) -> Array:
        """Which elements differ by more than one element may, or are NaN or infinite in the wrong place."""
        with np.errstate(all="ignore"):
            far = np.abs(got.astype(np.float64) - self.truth)
            return np.where(self.comparable, ~(far <= self.element_bound), ~self.classes_agree(got))

    def classes_agree(self, got: Array) -> Array:
        """Whether NaN, +Inf and -Inf stand where native has them. Where only one of native and truth is
        finite (an overflow inside the reference, say), agreeing with either is right; where native has lost
        a number that fits its type (divided by a difference that rounds to zero), anything is, as long as
        these are few."""
        with np.errstate(all="ignore"):
            wide = got.astype(np.float64)
            near_truth = np.abs(wide - self.truth) <= self.element_bound
            near_native = np.abs(wide - self.native.astype(np.float64)) <= self.element_bound
        finite_both = self.comparable & np.isfinite(wide)
        as_native = _class(wide) == _class(self.native.astype(np.float64))
        as_truth = _class(wide) == _class(self.truth)
        agree = (as_native & (_class(self.native) != 0)) | (as_truth & (_class(self.truth) != 0))
        lost = ~np.isfinite(self.native) & (np.abs(self.truth) <= float(np.finfo(self.native.dtype).max))
        if lost.sum() * _FEWEST_OF > lost.size:
            lost = np.zeros_like(lost)
        return np.asarray(finite_both | agree | lost | (~self.comparable & (near_truth | near_native)))


def yardstick(
    truth: Array,
    native: Array,
    *,
    response: Array | None,
    reduction_length: int,
    row: int,
    tolerance: float | None,
) -> Yardstick:
    """`truth` float64, `native` in its own precision, `response` absolute (see Expected); any shape,
    same size."""
    truth, native = truth.astype(np.float64).ravel(), native.ravel()
    epsilon = _EPSILON[native.dtype.name]
    tiny = float(np.finfo(native.dtype).tiny)
    comparable = np.isfinite(truth) & np.isfinite(native)
    size = np.where(comparable, np.abs(truth), 0.0)
    if response is not None:
        moved = response.astype(np.float64).ravel()
        finite = comparable & np.isfinite(moved)
        # Divided without overflow: a response near the largest number stays there.
        moved = np.minimum(np.where(finite, moved, 0.0), np.finfo(np.float64).max * epsilon) / epsilon
        size = np.where(finite, np.maximum(size, moved), size)
        comparable = comparable & ~_jumps(truth, native, size * epsilon, reduction_length)
        size = np.where(comparable, size, 0.0)
    has_rows = row >= SHORTEST_ROW and truth.size > row and truth.size % row == 0
    scale = max(float(np.max(size, initial=0.0)), tiny)
    row_scales = row_norms = None
    if has_rows:
        rows = size.reshape(-1, row)
        row_scales = np.maximum(np.max(rows, axis=1), tiny)
        row_norms = np.maximum(_norms(rows / row_scales[:, None]), 1.0)
    base = Yardstick(
        truth=truth,
        native=native,
        comparable=comparable,
        scale=scale,
        norm=max(float(_norms((size / scale).reshape(1, -1))[0]), 1.0),
        row_scales=row_scales,
        row_norms=row_norms,
        row=row if has_rows else 0,
        allowed=Errors(0.0, 0.0, 0.0),
    )
    if tolerance is not None:
        allowed = Errors(tolerance, tolerance, tolerance)
    else:
        own = base.errors(native)
        # Never so wide that the next lower precision slips through, however long the sum.
        cap = 2.0 ** -(LOWER_BITS[native.dtype.name] + 2)
        floor = min(FLOOR_FACTOR * epsilon * float(np.sqrt(max(reduction_length, 1))), cap)
        allowed = Errors(*(max(NATIVE_FACTOR * error, floor) for error in (own.max, own.l2, own.row)))
    return Yardstick(**{**vars(base), "allowed": allowed})


def _jumps(truth: Array, native: Array, unit: Array, reduction_length: int) -> Array:
    """Where native and truth are on two sides of a jump (a rounded value, a bin), not a rounding apart.

    `unit` is what one unit of rounding does to each element. Being near either side is right there. Where
    more than a few elements look like it, the computation is ill-conditioned instead, and none is one.
    """
    with np.errstate(all="ignore"):
        apart = np.abs(native.astype(np.float64) - truth)
        found = apart > _JUMP * np.sqrt(max(reduction_length, 1)) * unit
    return np.asarray(found if found.sum() * _FEWEST_OF <= found.size else np.zeros_like(found))


def _norms(rows: Array) -> Array:
    """The 2-norm of each row, also where squares would overflow."""
    largest = np.max(np.abs(rows), axis=1, initial=0.0, keepdims=True)
    safe = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    return np.asarray(safe[:, 0] * np.sqrt(np.sum((rows / safe) ** 2, axis=1)))


def rounded(values: Array, bits: int) -> Array:
    """Float64 values rounded to `bits` bits of significand, exponent range untouched."""
    mantissa, exponent = np.frexp(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.ldexp(np.rint(mantissa * 2.0**bits), exponent - bits))


def far_neighbour(values: Array, bits: int) -> Array:
    """Of the two neighbours with `bits` bits of significand, the one further away; the value itself
    where exact."""
    mantissa, exponent = np.frexp(values)
    with np.errstate(invalid="ignore"):
        scaled = mantissa * 2.0**bits
        below, above = np.floor(scaled), np.ceil(scaled)
        return np.asarray(np.ldexp(np.where(scaled - below > above - scaled, below, above), exponent - bits))


def _class(values: Array) -> Array:
    """0 finite, 1 NaN, 2 +Inf, 3 -Inf."""
    kinds = np.isnan(values) * 1 + np.isposinf(values) * 2 + np.isneginf(values) * 3
    return np.asarray(kinds)

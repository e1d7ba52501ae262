"""The truth of a set of draws: the user's program run as it stands, and again in wider arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.limits import REFERENCE
from sandbox.tasks import draws as values
from sandbox.tasks.base import Array, Draw, Expected
from sandbox.tasks.c.build import Executable
from sandbox.tasks.c.formals import Formal
from sandbox.tasks.c.probe import SECONDS, require_ok
from sandbox.tasks.c.runner import Call, Outcome, call_reference
from sandbox.types import Problem

_POISONS = (0xFF, 0x5A)
#: By how many units of rounding inputs move when the response is measured; 16 times as much must move it 16
#: times as far, or the place is a jump and says nothing of rounding. As little as the wider arithmetic can
#: tell: close to a pole, only the smallest steps are in proportion.
_STEP = {"float32": 2.0**-9, "float64": 4096.0}
#: By how many they move to see which integers hang on a rounding.
_FEW = (4.0, 64.0)
_EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}
_FURTHER = 16.0
#: In so many directions: one alone may leave a difference of products where it was.
_DIRECTIONS = 3

ReductionLength = Callable[[Mapping[str, int]], int]


def expected(
    native: Executable,
    wide: Executable | None,
    formals: Sequence[Formal],
    draws: Sequence[Draw],
    *,
    reduction_length: ReductionLength,
    rows: Callable[[str, Draw], int],
    written: Collection[str],
    cancel: Cancellation,
) -> list[Expected]:
    """`written`: the arrays that are outputs. Raises TaskProblem when the reference fails on a draw, or
    leaves elements of a pure output unwritten."""
    calls = [Call(draw.scalars, draw.arrays, draw.extents) for draw in draws]
    precision = "float32" if any(f.dtype == "float32" for f in formals) else "float64"

    def run(built: Executable, these: Sequence[Call], poison: int) -> list[Outcome]:
        return call_reference(
            built,
            formals,
            these,
            at_end=True,
            poison=poison,
            seconds=SECONDS,
            limits=REFERENCE,
            cancel=cancel,
        )

    with ThreadPoolExecutor(1) as pool:
        moved = [
            _moved(call, formals, precision, direction, step)
            for direction in range(_DIRECTIONS)
            for step in (_STEP[precision], _STEP[precision] * _FURTHER)
            for call in calls
        ]
        moved += [_moved(call, formals, precision, 0, step) for step in _FEW for call in calls]
        widely = pool.submit(run, wide, [*calls, *moved], _POISONS[1]) if wide is not None else None
        own = run(native, calls, _POISONS[0])
        for outcome, draw in zip(own, draws, strict=True):
            require_ok(outcome, draw.sizes)
        if any(_suspicious(outcome, draw) for outcome, draw in zip(own, draws, strict=True)):
            _require_written(own, run(native, calls, _POISONS[1]), draws)
        wider = widely.result() if widely is not None else None
    results = []
    for place, (outcome, draw) in enumerate(zip(own, draws, strict=True)):
        native_arrays = {name: a for name, a in outcome.arrays.items() if name in written}
        truth, response, alternatives = dict(native_arrays), {}, {}
        if wider is not None and wider[place].status == "ok":
            truth = {name: wider[place].arrays[name] for name in native_arrays}
            others = wider[len(draws) + place :: len(draws)]
            if all(other.status == "ok" for other in others):
                arrays = [other.arrays for other in others]
                response = _responses(truth, arrays[: -len(_FEW)], native_arrays, precision)
                alternatives = _alternatives(truth, arrays[-len(_FEW) :])
        results.append(
            Expected(
                truth={n: a.astype(np.float64) if _is_float(a) else a for n, a in truth.items()},
                native=native_arrays,
                reduction_length=reduction_length({**draw.scalars, **draw.sizes}),  # type: ignore[dict-item]
                rows={name: rows(name, draw) for name in truth if rows(name, draw) > 0},
                response=response,
                alternatives=alternatives,
            )
        )
    return results


def _moved(call: Call, formals: Sequence[Formal], precision: str, direction: int, step: float) -> Call:
    """Every floating-point input up or down by up to `step` units of rounding: the same way for each `step`.

    By different amounts, or some directions would leave p * s - q * r exactly in proportion.
    """
    by = _EPSILON[precision] * step
    rng = values.generator(b"response", direction)

    def share(shape: tuple[int, ...]) -> Array:
        return rng.choice([-1.0, 1.0], shape) * rng.uniform(0.25, 1.0, shape)

    arrays: dict[str, Array] = {}
    scalars = dict(call.scalars)
    for formal in formals:
        if not formal.dtype.startswith("float"):
            if formal.name in call.arrays:
                arrays[formal.name] = call.arrays[formal.name]
            continue
        if formal.name in call.arrays:
            given = call.arrays[formal.name].astype(np.float64)
            with np.errstate(all="ignore"):
                arrays[formal.name] = given * (1.0 + by * share(given.shape))
        elif formal.name in scalars:
            scalars[formal.name] = float(scalars[formal.name]) * (1.0 + by * float(share(())))
    return Call(scalars, arrays, call.extents)


def _responses(
    truth: Mapping[str, Array],
    moved: Sequence[Mapping[str, Array]],
    native: Mapping[str, Array],
    precision: str,
) -> dict[str, Array]:
    """For one unit of rounding of each output's own type: the largest of all directions. `moved` holds near
    and far outputs in turn."""
    found = {}
    for name, at in truth.items():
        if not _is_float(at):
            continue
        unit = _EPSILON[native[name].dtype.name] / (_EPSILON[precision] * _STEP[precision])
        found[name] = np.zeros(at.shape)
        for near, far in zip(moved[::2], moved[1::2], strict=True):
            with np.errstate(all="ignore"):
                small, large = np.abs(near[name] - at), np.abs(far[name] - at)
                smooth = np.isfinite(large) & (large < 2 * _FURTHER * small) & (large > _FURTHER / 2 * small)
                found[name] = np.maximum(found[name], np.where(smooth, small * unit, 0.0))
    return found


def _alternatives(truth: Mapping[str, Array], moved: Sequence[Mapping[str, Array]]) -> dict[str, list[Array]]:
    """Integer outputs that change when floating-point inputs move by a few units of rounding."""
    return {
        name: [other[name] for other in moved]
        for name, at in truth.items()
        if not _is_float(at) and not all(np.array_equal(other[name], at) for other in moved)
    }


def _suspicious(outcome: Outcome, draw: Draw) -> bool:
    """Whether some element of a pure output still looks like the poison it started with."""
    return any(
        bool(np.all(_bytes(array) == _POISONS[0], axis=1).any())
        for name, array in outcome.arrays.items()
        if name not in draw.arrays and array.size
    )


def _require_written(first: Sequence[Outcome], second: Sequence[Outcome], draws: Sequence[Draw]) -> None:
    for one, other, draw in zip(first, second, draws, strict=True):
        require_ok(other, draw.sizes)
        for name, array in one.arrays.items():
            if name in draw.arrays or not array.size:
                continue
            kept = np.all(_bytes(array) == _POISONS[0], axis=1) & np.all(
                _bytes(other.arrays[name]) == _POISONS[1], axis=1
            )
            if kept.any():
                at = ", ".join(f"{n} = {v}" for n, v in draw.sizes.items())
                raise TaskProblem(
                    Problem(
                        kind="partial_output",
                        message=f"your program leaves {name}[{int(np.argmax(kept))}] unwritten at {at}",
                        hint=f'if it keeps what it had, say so:\n[arrays.{name}]\naccess = "read_write"',
                        choices=[name],
                    )
                )


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).view(np.uint8).reshape(array.size, -1)


def _is_float(array: Array) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))

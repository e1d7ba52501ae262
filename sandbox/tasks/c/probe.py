"""What only running the reference shows: at which sizes it stays inside its arrays, and which outputs it
really reads before it writes them.

Each candidate size is run with every array flush against a page that faults, once behind and once before it.
Then the initial content of one writable array at a time is changed: where any output changes, that content
matters and the array is read and written; else it is written only, and may start as poison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.limits import REFERENCE
from sandbox.tasks import draws
from sandbox.tasks.base import Array, Inputs
from sandbox.tasks.c.build import Executable
from sandbox.tasks.c.fill import fill
from sandbox.tasks.c.formals import Formal
from sandbox.tasks.c.infer import Inferred
from sandbox.tasks.c.runner import Call, Outcome, call_reference
from sandbox.tasks.c.sizing import Sized
from sandbox.types import Problem
from sandbox.words import named

Access = Literal["read", "write", "read_write"]

SECONDS = 4.0  # for one call of the reference
_POISON = 0xA5
_SEED = b"probe"  # nothing secret: these inputs are never judged on


@dataclass(frozen=True)
class Probed:
    legal: list[Sized]  # the representative size first
    access: Mapping[str, Access]


def probe(
    native: Executable,
    formals: Sequence[Formal],
    inferred: Inferred,
    inputs: Inputs,
    pool: Sequence[Sized],
    cancel: Cancellation,
) -> Probed:
    """Raises TaskProblem when the reference fails at the representative size, the first of `pool`."""
    calls = [_call(formals, inferred, inputs, sized, place) for place, sized in enumerate(pool)]
    writable = [f for f in formals if f.is_array and not f.const and not f.is_result]
    changed = [(i, f.name, _changed(call, f)) for i, call in enumerate(calls) for f in writable]

    def run(these: Sequence[Call], at_end: bool) -> list[Outcome]:
        return call_reference(
            native,
            formals,
            these,
            at_end=at_end,
            poison=_POISON,
            seconds=SECONDS,
            limits=REFERENCE,
            cancel=cancel,
        )

    outcomes = run([*calls, *(call for _, _, call in changed)], at_end=True)
    base, others = outcomes[: len(calls)], outcomes[len(calls) :]
    require_ok(base[0], pool[0].sizes)
    before = run(calls, at_end=False)
    require_ok(before[0], pool[0].sizes)
    legal = [
        i
        for i in range(len(pool))
        if base[i].status == before[i].status == "ok" and _sensible(base[i], i == 0)
    ]
    matters = {
        name
        for (i, name, _), outcome in zip(changed, others, strict=True)
        if i in legal and _differ(base[i], outcome, calls[i].extents, name, inferred)
    }
    written = {f.name for f in writable if any(_written(calls[i], base[i], f.name) for i in legal)}
    access: dict[str, Access] = {}
    for formal in formals:
        if formal.is_array:
            writes = inferred.arrays[formal.name].writes or formal.name in written
            access[formal.name] = _access(formal, formal.name in matters, writes, inputs)
    return Probed([pool[i] for i in legal], access)


def require_ok(outcome: Outcome, sizes: Mapping[str, int]) -> None:
    """Raises TaskProblem that says how the reference failed, where and at which sizes."""
    if outcome.status == "ok":
        return
    at = named(sizes)
    at = f" at {at}" if at else ""
    if outcome.status == "timeout":
        raise TaskProblem(
            Problem(
                kind="reference_timeout",
                message=f"your program did not end within {SECONDS:.0f} seconds{at}",
                hint="an endless loop, or sizes that are too large: give smaller ones in the inputs block",
            )
        )
    if outcome.status == "exit":
        raise TaskProblem(
            Problem(kind="reference_exits", message=f"your program calls exit({outcome.detail}){at}")
        )
    if outcome.array is not None:
        side = "before the beginning" if outcome.offset < 0 else "behind the end"
        raise TaskProblem(
            Problem(
                kind="reference_faults",
                message=f"your program reaches {side} of {outcome.array} (byte {outcome.offset}){at}",
                hint=f'if the array is larger, say so:\n[arrays.{outcome.array}]\nextent = "..."',
                choices=[outcome.array],
            )
        )
    names = {4: "illegal instruction", 6: "abort", 8: "division by zero", 11: "segmentation fault"}
    what = names.get(outcome.detail, f"signal {outcome.detail}")
    raise TaskProblem(Problem(kind="reference_crashes", message=f"your program died ({what}){at}"))


def _call(formals: Sequence[Formal], inferred: Inferred, inputs: Inputs, sized: Sized, place: int) -> Call:
    rng = draws.generator(_SEED, place)
    return fill(formals, inferred, inputs, sized.sizes, "normal", rng)


def _changed(call: Call, formal: Formal) -> Call:
    """The same call with other content in one array: every value moved, or put elsewhere.

    Integers keep to the values that are there, which are legal; one of them stands for another, so that a
    program that only looks at which there are, as a sort does, sees a difference too.
    """
    values = call.arrays[formal.name]
    other: Array
    if formal.dtype.startswith("float"):
        other = (values * 0.75 + 0.5).astype(values.dtype)
    else:
        other = np.roll(values[::-1], 1)
        unlike = np.flatnonzero(other != other[:1])
        if unlike.size:
            other[unlike[0]] = other[0]
    return Call(call.scalars, {**call.arrays, formal.name: other}, call.extents)


def _sensible(outcome: Outcome, is_representative: bool) -> bool:
    """Whether ordinary inputs give an ordinary result at this size: not nothing but NaN."""
    if is_representative:
        return True
    floating = [a for a in outcome.arrays.values() if np.issubdtype(a.dtype, np.floating) and a.size]
    return not floating or any(not np.isnan(a).all() for a in floating)


def _differ(base: Outcome, other: Outcome, extents: Mapping[str, int], name: str, inferred: Inferred) -> bool:
    if other.status != "ok":
        return True
    if extents[name] == 0:
        return False
    return any(base.arrays[a].tobytes() != other.arrays[a].tobytes() for a in base.arrays)


def _written(call: Call, outcome: Outcome, name: str) -> bool:
    """Whether the array holds something else afterwards: the walk through the source does not see all."""
    after = outcome.arrays[name]
    return call.arrays[name].astype(after.dtype, copy=False).tobytes() != after.tobytes()


def _access(formal: Formal, content_matters: bool, writes: bool, inputs: Inputs) -> Access:
    given = inputs.arrays.get(formal.name)
    if given is not None and given.access is not None:
        return given.access
    if formal.is_result:
        return "write"
    if not writes:
        return "read"
    return "read_write" if content_matters else "write"

"""The representative size, checked by running the reference on the way: work enough to mean something, and
never more than can be afforded.

What the source says about costs is an estimate: loops that end when the data says so hide them. So the
largest size that the estimate allows is run once; where that takes too long, the estimate's budget is cut.
Where scalars say how often something is repeated, many repetitions are wished for, but not so many that the
numbers leave their range or that rounding errors grow until no digit is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

import numpy as np

from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.limits import REFERENCE
from sandbox.tasks import draws
from sandbox.tasks.base import Array, Distribution, Inputs
from sandbox.tasks.c.build import Executable
from sandbox.tasks.c.fill import fill
from sandbox.tasks.c.formals import Formal
from sandbox.tasks.c.infer import Inferred
from sandbox.tasks.c.runner import Call, Outcome, call_reference
from sandbox.tasks.c.sizing import REPEATS, Sizing

AFFORDABLE_US = (
    60_000  # CPU time of one call: an emulator on the same machine takes some hundred times as long
)
_SECONDS = 0.25
_CUT = 1 / 8  # of the budget, after a size that took too long
_CUTS = 5
_SEEDS = 4  # scalars are drawn at random, and some of them decide whether a recurrence grows
#: Native and wide may differ by this much (relative 2-norm): beyond it the next lower precision is as good.
_AGREEMENT = {"float32": 2.0**-12, "float64": 2.0**-25}
_ORDINARY = ("uniform", "heavy_tail", "cancellation", "large_offset")
_FEW = (1, 3)  # the largest value of integers, where those of the whole type make every output the same
_POISON = 0xA5


@dataclass(frozen=True)
class Trial:
    """Runs the reference at sizes that are only candidates."""

    native: Executable
    wide: Future[Executable] | None
    formals: Sequence[Formal]
    inferred: Inferred
    inputs: Inputs
    cancel: Cancellation

    def calls(
        self, sizes: Mapping[str, int], seeds: int, distribution: Distribution = "normal"
    ) -> list[Call]:
        return [
            fill(
                self.formals, self.inferred, self.inputs, sizes, distribution, draws.generator(b"size", seed)
            )
            for seed in range(seeds)
        ]

    def run(self, built: Executable, calls: Sequence[Call]) -> list[Outcome] | None:
        """None where it cannot be run to its end, whatever the reason: the probe says that better."""
        try:
            return call_reference(
                built,
                self.formals,
                calls,
                at_end=True,
                poison=_POISON,
                seconds=_SECONDS,
                limits=REFERENCE,
                cancel=self.cancel,
            )
        except TaskProblem:
            return None

    def sound(self, calls: Sequence[Call], outcomes: Sequence[Outcome]) -> bool:
        """Whether most numbers are finite, and most of their digits right."""
        if not all(map(_mostly_finite, outcomes)):
            return False
        wide = _built(self.wide)
        wider = self.run(wide, calls) if wide is not None else None
        if wider is None:
            return True
        return all(_close(own, other) for own, other in zip(outcomes, wider, strict=True))


def representative(sizing: Sizing, trial: Trial) -> dict[str, int]:
    """The first wish, where nothing can be run: then the probe says what is wrong."""
    wish = sizing.representative()
    if sizing.settled:
        return wish
    share, sizes = 1.0, wish
    for repeats in REPEATS if sizing.repeats else REPEATS[:1]:
        sizes, share, sound = _affordable(partial(sizing.representative, repeats), share, trial)
        if sound:
            return sizes
    return sizes


def _affordable(
    sized: Callable[[float], dict[str, int]], share: float, trial: Trial
) -> tuple[dict[str, int], float, bool]:
    """The largest size that is fast enough, the share of the budget that it took, and whether its results
    are sound."""
    wish = sized(share)
    for _ in range(_CUTS):
        sizes = sized(share)
        calls = trial.calls(sizes, _SEEDS)
        outcomes = trial.run(trial.native, calls)
        if outcomes is None or any(o.status in ("fault", "exit") for o in outcomes):
            return sizes, share, True
        if all(o.status == "ok" and o.detail <= AFFORDABLE_US for o in outcomes):
            return sizes, share, trial.sound(calls, outcomes)
        share *= _CUT
    return wish, share, True


def vary(sizes: Mapping[str, int], trial: Trial) -> None:
    """Where integers of their whole type make all outputs one constant, small ones are tried: cells that are
    alive or not, flags, labels. Sets `trial.inferred.most`."""
    inferred = trial.inferred
    for most in (None, *_FEW):
        inferred.most = most
        outcomes = trial.run(trial.native, trial.calls(sizes, 1))
        if outcomes is None or outcomes[0].status != "ok" or not _constant(outcomes[0]):
            break
    else:
        inferred.most = None


def meaningful(kinds: Sequence[Distribution], sizes: Mapping[str, int], trial: Trial) -> list[Distribution]:
    """Without those on which the reference itself has hardly a right digit (matrices without inverse, say):
    nobody can be held to what it says there. Where terms are meant to cancel, digits may be lost, but no
    element may leave the range of its type that does not do so in wider arithmetic."""
    wide = _built(trial.wide)
    if wide is None:
        return list(kinds)
    return [kind for kind in kinds if kind not in _ORDINARY or _meaningful(kind, sizes, trial, wide)]


def _meaningful(kind: Distribution, sizes: Mapping[str, int], trial: Trial, wide: Executable) -> bool:
    calls = trial.calls(sizes, _SEEDS, kind)
    native, wider = trial.run(trial.native, calls), trial.run(wide, calls)
    if native is None or wider is None:
        return True
    right = _in_range if kind == "cancellation" else _close
    return all(own.status != "ok" or right(own, other) for own, other in zip(native, wider, strict=True))


def _in_range(own: Outcome, other: Outcome) -> bool:
    """Whether everything that is finite in wider arithmetic is so in its own."""
    if other.status != "ok":
        return True
    return all(
        np.isfinite(own.arrays[name])[np.isfinite(other.arrays[name])].all()
        for name in own.arrays
        if own.arrays[name].dtype.name in _AGREEMENT
    )


def _constant(outcome: Outcome) -> bool:
    return all((array == array[:1]).all() for array in outcome.arrays.values())


def _built(build: Future[Executable] | None) -> Executable | None:
    try:
        return build.result() if build is not None else None
    except TaskProblem:
        return None


def _mostly_finite(outcome: Outcome) -> bool:
    floating = [a for a in outcome.arrays.values() if np.issubdtype(a.dtype, np.floating) and a.size]
    return all(np.isfinite(a).mean() > 0.5 for a in floating)


def _close(own: Outcome, other: Outcome) -> bool:
    if other.status != "ok":
        return True
    return all(_agree(own.arrays[name], other.arrays[name]) for name in own.arrays)


def _agree(own: Array, other: Array) -> bool:
    if own.dtype.name not in _AGREEMENT:
        return True
    both = np.isfinite(own) & np.isfinite(other)
    truth = np.where(both, other, 0.0).astype(np.float64)
    scale = np.max(np.abs(truth), initial=0.0) or 1.0
    with np.errstate(all="ignore"):
        apart = np.linalg.norm(np.where(both, own.astype(np.float64) - truth, 0.0) / scale)
    return bool(apart <= _AGREEMENT[own.dtype.name] * np.linalg.norm(truth / scale))

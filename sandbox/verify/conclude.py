"""All draws together: the verification that an evaluation carries, and the verdict that follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sandbox.errors import Judged
from sandbox.tasks.base import Draw, Expected, TaskSpec
from sandbox.types import Check, Mismatch, Verification
from sandbox.verify.compare import DrawTruth, from_bytes, mismatch, unwritten
from sandbox.verify.proofs import prove, reason
from sandbox.words import named

Replays = Sequence[Mapping[str, bytes]]  # of one draw: array name -> bytes afterwards, once for each poison


@dataclass
class _Findings:
    """What the comparison of all draws has found so far."""

    first: Mismatch | None = None
    wrong: list[str] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unequal: list[str] = field(default_factory=list)  # replays of one draw that differ bit for bit
    compared: int = 0
    faulty: set[int] = field(default_factory=set)  # draws with anything wrong
    error: float | None = None
    allowed: float | None = None

    def add(self, kind: list[str], index: int, sentence: str) -> None:
        """One more fault, in draw `index`."""
        kind.append(sentence)
        self.faulty.add(index)

    def note_error(self, error: float, allowed: float) -> None:
        """Keeps the pair that came closest to (or went furthest beyond) what is allowed."""
        closeness = _ratio(error, allowed)
        if self.error is None or self.allowed is None or closeness > _ratio(self.error, self.allowed):
            self.error, self.allowed = error, allowed


def verify(
    spec: TaskSpec,
    draws: Sequence[Draw],
    expected: Sequence[Expected],
    outputs: Sequence[Replays],
    *,
    seed: bytes,
) -> Verification:
    """Compares every replay of every draw and proves the tolerances. `outputs` holds inputs as well,
    read back."""
    truths = [DrawTruth(spec, draw, truth) for draw, truth in zip(draws, expected, strict=True)]
    findings = _Findings()
    for index, (truth, replays) in enumerate(zip(truths, outputs, strict=True)):
        _compare_outputs(findings, truth, replays, index, spec.inputs.reproducible)
        _compare_inputs(findings, spec, truth, replays, index)
    checks = [
        _check("outputs", findings.wrong, f"{findings.compared} output elements agree with the reference"),
        _check("every_element_written", findings.unwritten, "no element kept the poison it started with"),
        _check("inputs_unchanged", findings.changed, "every input has the bytes it had before"),
    ]
    if spec.inputs.reproducible:
        checks.append(_check("reproducible", findings.unequal, "two replays agree bit for bit"))
    checks += prove(truths, tolerance_given=spec.inputs.tolerance is not None)
    return Verification(
        draws=len(draws),
        draws_passed=len(draws) - len(findings.faulty),
        sizes=[dict(draw.sizes) for draw in draws],
        distributions=[draw.distribution for draw in draws],
        seed=seed.hex(),
        max_error=findings.error,
        allowed_error=findings.allowed,
        first_mismatch=findings.first,
        checks=checks,
    )


def judge(verification: Verification) -> None:
    """Raises Judged: degenerate_task (the task's fault) before wrong_result (the candidate's)."""
    degenerate = reason(verification.checks)
    if degenerate is not None:
        raise Judged("degenerate_task", "task", degenerate)
    failed = [check for check in verification.checks if not check.passed]
    if not failed:
        return
    if verification.first_mismatch is not None:
        raise Judged("wrong_result", "candidate", describe(verification.first_mismatch))
    raise Judged("wrong_result", "candidate", failed[0].detail)


def first_fault(spec: TaskSpec, draw: Draw, expected: Expected, arrays: Mapping[str, bytes]) -> str:
    """A clause about what is wrong with what one replay left behind; empty where nothing is."""
    findings, truth = _Findings(), DrawTruth(spec, draw, expected)
    _compare_outputs(findings, truth, [arrays], 0, reproducible=False)
    _compare_inputs(findings, spec, truth, [arrays], 0)
    return next(iter([*findings.wrong, *findings.changed]), "")


def describe(found: Mismatch) -> str:
    """One sentence: "y[3] is 1.5, expected 2.5 (n = 7)"."""
    got = "was never written" if found.got == "never written" else f"is {_short(found.got)}"
    sizes = named(found.sizes)
    return f"{found.place} {got}, expected {_short(found.expected)}" + (f" ({sizes})" if sizes else "")


#: The judge replays each draw twice.
_ONE_REPLAY = (
    "in one of two replays alone: they differ in the order of blocks and in what outputs hold at first"
)


def _compare_outputs(
    findings: _Findings, truth: DrawTruth, replays: Replays, index: int, reproducible: bool
) -> None:
    for parameter in truth.outputs:
        count = truth.expected.native[parameter.name].size
        found = [from_bytes(parameter, replay[parameter.name], count) for replay in replays]
        arrays = [array for array in found if array is not None]
        if len(arrays) < len(found):
            findings.add(
                findings.wrong,
                index,
                f"{parameter.name}: fewer bytes came back than the array has (draw {index})",
            )
            continue
        findings.compared += count
        if any(array.tobytes() != arrays[0].tobytes() for array in arrays[1:]):
            findings.unequal.append(f"{parameter.name} differs between two replays of draw {index}")
            if reproducible:
                findings.faulty.add(index)
        never = unwritten(arrays) if parameter.name not in truth.draw.arrays else None
        if never is not None and never.any():
            first = int(np.argmax(never))
            findings.add(
                findings.unwritten,
                index,
                f"{parameter.name}: {int(never.sum())} of {count} never written, first {first} "
                f"(draw {index})",
            )
        for number, array in enumerate(arrays):
            verdict = truth.check(parameter.name, array)
            if verdict.errors is not None and verdict.allowed is not None:
                findings.note_error(verdict.errors.max, verdict.allowed.max)
            if verdict.right or verdict.wrong is None:
                continue
            ordered = [array, *arrays[:number], *arrays[number + 1 :]]
            shown = mismatch(truth, parameter, ordered, verdict.wrong, index)
            findings.first = findings.first or shown
            findings.add(
                findings.wrong,
                index,
                f"{describe(shown)}; {int(verdict.wrong.sum())} of {count} elements wrong"
                + (f", {_ONE_REPLAY}" if number else ""),
            )
            break


def _compare_inputs(
    findings: _Findings, spec: TaskSpec, truth: DrawTruth, replays: Replays, index: int
) -> None:
    for parameter in spec.parameters:
        if parameter.kind != "array" or parameter.access != "read" or parameter.name not in truth.draw.arrays:
            continue
        before = truth.draw.arrays[parameter.name].tobytes()
        if any(
            replay[parameter.name][: len(before)] != before for replay in replays if parameter.name in replay
        ):
            findings.add(findings.changed, index, f"the input {parameter.name} was written to (draw {index})")


def _check(name: str, faults: Sequence[str], good: str) -> Check:
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return Check(name=name, passed=not faults, detail=faults[0] + more if faults else good)


def _ratio(error: float, allowed: float) -> float:
    return float("inf") if not error <= float("inf") else error / allowed if allowed > 0 else error


def _short(value: float | int | str) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)

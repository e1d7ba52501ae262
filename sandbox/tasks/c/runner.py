"""Running a built reference in the jail on many sets of inputs: one process, raw bytes through files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, TaskProblem
from sandbox.home import scratch
from sandbox.jail import Bind, read_result, run
from sandbox.limits import Limits
from sandbox.tasks.base import Array
from sandbox.tasks.c.build import INSIDE, Executable
from sandbox.tasks.c.formals import Formal
from sandbox.types import Problem

_RESULTS = INSIDE.parent / "work"  # inside the jail
_HEADER_WORDS = 2
_SLOT_WORDS = 4
_STATUS_WORDS = 4
_ALIGNMENT = 64
MAX_RESULT_BYTES = 1 << 31


@dataclass(frozen=True)
class Call:
    """One call of the reference."""

    scalars: Mapping[str, int | float]
    arrays: Mapping[str, Array]  # those with content; the others start as poison
    extents: Mapping[str, int]  # elements of every array


@dataclass(frozen=True)
class Outcome:
    """How one call ended. `arrays` holds every array that can be written, flat, when it ended well."""

    status: Literal["ok", "fault", "timeout", "exit"]
    arrays: Mapping[str, Array]
    detail: int = 0  # the signal, or the exit code; microseconds of CPU time where it ended well
    array: str | None = None  # a fault's nearest array
    offset: int = 0  # bytes from that array's first element to where the fault was


def call_reference(
    built: Executable,
    formals: Sequence[Formal],
    calls: Sequence[Call],
    *,
    at_end: bool,
    poison: int,
    seconds: float,
    limits: Limits,
    cancel: Cancellation,
) -> list[Outcome]:
    """Every array stands against a page that faults: behind it (`at_end`) or before it.

    `seconds` bounds one call. Floating-point results come in the executable's own type.
    """
    plan = _Layout(built, formals, calls)
    if plan.result_bytes > MAX_RESULT_BYTES:
        raise TaskProblem(
            Problem(
                kind="too_large",
                message=f"the outputs would take {plan.result_bytes >> 20} MiB",
                hint="smaller sizes",
            )
        )
    with scratch("run") as folder:
        request, work = folder / "request", folder / "work"
        work.mkdir()
        program = folder / "reference"
        program.write_bytes(built.content)
        program.chmod(0o755)
        with request.open("wb") as file:
            for piece in plan.request:
                file.write(piece)
        with (work / "result").open("wb") as file:
            file.truncate(plan.result_bytes)
        side = "end" if at_end else "start"
        milliseconds = str(max(int(seconds * 1000), 1))
        done = run(
            [
                f"{INSIDE}/{program.name}",
                f"{INSIDE}/request",
                f"{_RESULTS}/result",
                side,
                str(poison),
                milliseconds,
            ],
            binds=[Bind(folder, INSIDE), Bind(work, _RESULTS, writable=True)],
            limits=limits,
            cancel=cancel,
        )
        if done.reason == "cancelled":
            raise Cancelled
        result = read_result(work / "result", plan.result_bytes)
    if not done.ok:
        raise TaskProblem(
            Problem(
                kind="reference_failed",
                message="your program could not be run to its end: "
                + (
                    f"{done.reason} limit reached"
                    if done.reason != "exited"
                    else _ending(done.returncode, done.signal)
                ),
            )
        )
    return plan.outcomes(result)


class _Layout:
    """Where everything lies in the request and in the result."""

    def __init__(self, built: Executable, formals: Sequence[Formal], calls: Sequence[Call]) -> None:
        self._built, self._formals = built, formals
        words = [len(calls), len(formals)]
        place = 8 * (_HEADER_WORDS + _SLOT_WORDS * len(calls) * len(formals))
        self.result_bytes = 8 * _STATUS_WORDS * len(calls)
        self._places: list[dict[str, tuple[int, int]]] = []  # by call: name -> (offset in result, elements)
        blobs: list[bytes] = []
        self._calls = len(calls)
        for call in calls:
            places: dict[str, tuple[int, int]] = {}
            for formal in formals:
                dtype = self._dtype(formal)
                if not formal.is_array:
                    words += [0, _scalar_word(call.scalars[formal.name], dtype), 0, 0]
                    continue
                count = call.extents[formal.name]
                given = call.arrays.get(formal.name)
                source = -1
                if given is not None:
                    place, padding = _aligned(place)
                    content = given.astype(dtype, copy=False).tobytes()
                    blobs += [bytes(padding), content]
                    source, place = place, place + len(content)
                target = -1
                if built.traces:
                    target = self.result_bytes
                    places[formal.name] = (target, 2)
                    self.result_bytes += 16
                elif not formal.const:
                    self.result_bytes, _ = _aligned(self.result_bytes)
                    target = self.result_bytes
                    places[formal.name] = (target, count)
                    self.result_bytes += count * dtype.itemsize
                words += [1, count * dtype.itemsize, source, target]
            self._places.append(places)
        self.request = [np.array(words, dtype="<i8").tobytes(), *blobs]

    def outcomes(self, result: bytes) -> list[Outcome]:
        status = np.frombuffer(result, dtype="<i8", count=_STATUS_WORDS * self._calls).reshape(
            -1, _STATUS_WORDS
        )
        return [self._outcome(row, places, result) for row, places in zip(status, self._places, strict=True)]

    def _outcome(self, row: Array, places: Mapping[str, tuple[int, int]], result: bytes) -> Outcome:
        code, detail, parameter, offset = (int(word) for word in row)
        if code == 0:
            by_name = {formal.name: formal for formal in self._formals}
            return Outcome(
                "ok",
                {
                    name: np.frombuffer(
                        result, dtype=self._dtype(by_name[name], of_result=True), count=count, offset=at
                    )
                    for name, (at, count) in places.items()
                },
                detail,
            )
        if code == 2:
            return Outcome("timeout", {})
        if code == 1:
            known = 0 <= parameter < len(self._formals)
            return Outcome("fault", {}, detail, self._formals[parameter].name if known else None, offset)
        return Outcome("exit", {}, detail)

    def _dtype(self, formal: Formal, *, of_result: bool = False) -> np.dtype[np.generic]:
        if of_result and self._built.traces:
            return np.dtype("int64")
        wide = self._built.float_dtype
        return np.dtype(wide if wide and formal.dtype.startswith("float") else formal.dtype)


def _scalar_word(value: int | float, dtype: np.dtype[np.generic]) -> int:
    raw = np.array([value]).astype(dtype).tobytes().ljust(8, b"\0")
    return int(np.frombuffer(raw, dtype="<i8")[0])


def _aligned(place: int) -> tuple[int, int]:
    """The next aligned place, and how many bytes lie between."""
    padding = -place % _ALIGNMENT
    return place + padding, padding


def _ending(code: int | None, signal: int | None) -> str:
    return f"it died of signal {signal}" if signal is not None else f"it ended with code {code}"

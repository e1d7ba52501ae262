"""What travels between the judge and the replaying process: requests as files, answers as files.

A file is a line of JSON and then bytes, which the line names by place and size. The answer comes from a
process whose card ran hostile code, perhaps with a way into host memory: it is checked like any other input.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from sandbox.emulator.trace import DeviceFault, ReplayResult
from sandbox.emulator.wire import Replay
from sandbox.plan import Launch, Operation, Upload, WriteSymbol
from sandbox.timing.compare import Samples
from sandbox.types import Data

_MOST_LINE_BYTES = 1 << 26
_CHUNK = 1 << 30  # Linux reads at most 2 GiB at once

Kind = TypeVar("Kind")


class BadAnswer(Exception):
    """The replaying process did not leave a proper answer."""


@dataclass(frozen=True)
class Side:
    """One contestant: its machine code, and one replay for each set of inputs, all of the same sizes."""

    cubin: bytes
    replays: Sequence[Replay]


@dataclass(frozen=True)
class SeenOutput:
    """What one trial or several left in the arrays that are read back."""

    side: int
    set: int  # which inputs
    count: int  # trials
    arrays: dict[str, bytes]


@dataclass(frozen=True)
class Times:
    microseconds: list[Samples]  # by side: (blocks, trials)
    launches: Literal["graph", "stream"]
    empty_us: float  # what the same measurement says of no work at all
    outputs: list[SeenOutput]


class _Fault(Data):
    kind: str
    message: Annotated[str, Field(max_length=2000)]
    kernel: Annotated[str, Field(max_length=4096)]


class _Result(Data):
    status: Literal["ok", "fault", "timeout", "unsupported", "refused", "device"]
    fault: _Fault | None = None
    message: Annotated[str, Field(max_length=2000)] = ""
    bytes: list[int] = Field(default_factory=list)


class _Seen(Data):
    side: Annotated[int, Field(ge=0, lt=16)]
    set: Annotated[int, Field(ge=0, lt=1000)]
    count: Annotated[int, Field(ge=1)]


class _Times(_Result):
    microseconds: list[list[float]] = Field(default_factory=list)
    launches: Literal["graph", "stream"] = "stream"
    empty_us: float = 0.0
    outputs: list[_Seen] = Field(default_factory=list)


@dataclass(frozen=True)
class Ended:
    """How one replay ended, in the emulator's words, or why it says nothing of the candidate."""

    result: ReplayResult | None
    arrays: dict[str, bytes]
    refused: str = ""  # the device would not launch it
    device: str = ""  # an error that no kernel explains


class _Blob:
    def __init__(self) -> None:
        self.pieces: list[bytes | memoryview] = []
        self._size = 0
        self._known: dict[int, list[int]] = {}

    def add(self, data: bytes | memoryview) -> list[int]:
        """Place and size. The same object is written once."""
        if id(data) not in self._known:
            self._known[id(data)] = [self._size, len(data)]
            self.pieces.append(data)
            self._size += len(data)
        return self._known[id(data)]


def write_replays(file: int, cubin: bytes, replays: Sequence[Replay], seconds: float) -> None:
    blob = _Blob()
    document = {
        "kind": "replay",
        "seconds": seconds,
        "cubins": [blob.add(cubin)],
        "replays": [_replay(replay, 0, blob) for replay in replays],
    }
    _write(file, document, blob)


def write_timing(
    file: int, sides: Sequence[Side], schedule: Sequence[int], seconds: float, most_bytes: int
) -> None:
    blob = _Blob()
    document = {
        "kind": "time",
        "seconds": seconds,
        "cubins": [blob.add(side.cubin) for side in sides],
        "sides": [
            {"cubin": i, "replays": [_replay(replay, i, blob) for replay in side.replays]}
            for i, side in enumerate(sides)
        ],
        "schedule": list(schedule),
        "most_bytes": most_bytes,
    }
    _write(file, document, blob)


def _write(file: int, document: dict[str, Any], blob: _Blob) -> None:
    with os.fdopen(os.dup(file), "wb") as out:
        out.write(json.dumps(document).encode() + b"\n")
        for piece in blob.pieces:
            out.write(piece)


def _replay(replay: Replay, cubin: int, blob: _Blob) -> dict[str, Any]:
    return {
        "cubin": cubin,
        "buffers": [
            {
                "name": buffer.name,
                "address": buffer.address,
                "bytes": buffer.bytes,
                "data": None if buffer.data is None else blob.add(buffer.data),
                "read_back": buffer.read_back,
                "poison": buffer.poison_byte,
            }
            for buffer in replay.buffers
        ],
        "operations": [_operation(operation, blob) for operation in replay.plan.operations],
    }


def _operation(operation: Operation, blob: _Blob) -> dict[str, Any]:
    document = operation.model_dump()
    if isinstance(operation, Upload | WriteSymbol):
        document["data"] = blob.add(bytes.fromhex(operation.data))
    if isinstance(operation, Launch):
        del document["module"]  # there is one
    return document


def read_replays(file: int, replays: Sequence[Replay]) -> list[Ended]:
    """One for each replay that was begun. Raises BadAnswer."""
    results, rest = _read(file, TypeAdapter(list[_Result]))
    if len(results) > len(replays):
        raise BadAnswer("there are more answers than replays")
    pieces = _Pieces(rest)
    return [_ended(r, replay, pieces) for r, replay in zip(results, replays, strict=False)]


def _ended(result: _Result, replay: Replay, pieces: _Pieces) -> Ended:
    if result.status == "refused":
        return Ended(None, {}, refused=result.message)
    if result.status == "device":
        return Ended(None, {}, device=result.message)
    fault = None
    if result.status == "fault":
        if result.fault is None:
            raise BadAnswer("a fault without a word about it")
        try:
            fault = DeviceFault.model_validate({**result.fault.model_dump(), "line": None})
        except ValidationError as error:
            raise BadAnswer(f"no kind of fault: {result.fault.kind!r}") from error
    arrays = pieces.arrays(replay, result.bytes) if result.status == "ok" else {}
    return Ended(ReplayResult(status=result.status, fault=fault, message=result.message), arrays)


def read_times(file: int, sides: Sequence[Side], schedule: Sequence[int], blocks: int) -> Times | Ended:
    """An `Ended` where timing did not come to its end. Raises BadAnswer."""
    answers, rest = _read(file, TypeAdapter(list[_Times]))
    if len(answers) != 1:
        raise BadAnswer("there is not one answer")
    [answer] = answers
    pieces = _Pieces(rest)
    if answer.status != "ok":
        return _ended(
            _Result(**answer.model_dump(include=set(_Result.model_fields))), sides[0].replays[0], pieces
        )
    samples = [np.array(times, np.float64) for times in answer.microseconds]
    wanted = [schedule.count(side) for side in range(len(sides))]
    if [len(times) for times in samples] != wanted or not all(
        np.all((t > 0) & np.isfinite(t)) for t in samples
    ):
        raise BadAnswer("there are not as many times as trials")
    sizes = list(answer.bytes)
    outputs = []
    for seen in answer.outputs:
        if seen.side >= len(sides) or seen.set >= len(sides[seen.side].replays):
            raise BadAnswer("an output of no side")
        replay = sides[seen.side].replays[seen.set]
        count = sum(buffer.read_back for buffer in replay.buffers)
        outputs.append(SeenOutput(seen.side, seen.set, seen.count, pieces.arrays(replay, sizes[:count])))
        del sizes[:count]
    for side, trials in enumerate(wanted):
        if sum(output.count for output in outputs if output.side == side) < trials:
            raise BadAnswer("some timed outputs did not come back")
    return Times([times.reshape(blocks, -1) for times in samples], answer.launches, answer.empty_us, outputs)


class _Pieces:
    def __init__(self, rest: bytes) -> None:
        self._rest, self._at = memoryview(rest), 0

    def arrays(self, replay: Replay, sizes: Sequence[int]) -> dict[str, bytes]:
        wanted = [buffer for buffer in replay.buffers if buffer.read_back]
        if list(sizes) != [buffer.bytes for buffer in wanted]:
            raise BadAnswer("other arrays came back than were asked for")
        return {buffer.name: piece for buffer, piece in zip(wanted, self._take(sizes), strict=True)}

    def _take(self, sizes: Sequence[int]) -> Iterator[bytes]:
        for size in sizes:
            if self._at + size > len(self._rest):
                raise BadAnswer("the answer is cut short")
            yield bytes(self._rest[self._at : self._at + size])
            self._at += size


def _read(file: int, kind: TypeAdapter[Kind]) -> tuple[Kind, bytes]:
    size, whole = os.fstat(file).st_size, bytearray()
    while len(whole) < size and (piece := os.pread(file, _CHUNK, len(whole))):
        whole += piece
    end = whole.find(b"\n", 0, _MOST_LINE_BYTES)
    if end < 0:
        raise BadAnswer("there is no answer")
    try:
        return kind.validate_json(bytes(whole[:end])), bytes(whole[end + 1 :])
    except ValidationError as error:
        raise BadAnswer(f"the answer is malformed: {error}") from error

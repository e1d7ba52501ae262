"""Answers of the replaying process are not believed: whatever it writes, it is data or a BadAnswer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.emulator.client import Buffer, Replay, memory_file
from sandbox.gpu import wire
from sandbox.plan import DEVICE_BASE, LaunchPlan

REPLAY = Replay(
    LaunchPlan(operations=[]),
    [
        Buffer("x", DEVICE_BASE, b"abcd", 4, False, True, 0xFF),
        Buffer("y", DEVICE_BASE + 4, None, 2, True, False, 0xFF),
    ],
    count=False,
)
SIDES = [wire.Side(b"cubin", [REPLAY, REPLAY])]
OK = {"status": "ok", "bytes": [2]}
TIMED = {
    "status": "ok",
    "microseconds": [[1.0, 2.0, 3.0, 4.0]],
    "launches": "graph",
    "empty_us": 0.5,
    "outputs": [{"side": 0, "set": 1, "count": 4}],
    "bytes": [2],
}


def written(content: bytes, read: Callable[[int], Any]) -> Any:
    with memory_file("answer") as file:
        os.write(file, content)
        return read(file)


def replays(content: bytes) -> list[wire.Ended]:
    return written(content, lambda file: wire.read_replays(file, [REPLAY, REPLAY]))  # type: ignore[no-any-return]


def times(content: bytes) -> wire.Times | wire.Ended:
    return written(content, lambda file: wire.read_times(file, SIDES, [0] * 4, 2))  # type: ignore[no-any-return]


def line(*documents: object) -> bytes:
    return json.dumps(documents).encode() + b"\n"


def test_good_answers() -> None:
    [first, second] = replays(line(OK, {"status": "timeout", "message": "late"}) + b"yz")
    assert first.arrays == {"y": b"yz"}
    assert second.result is not None
    assert second.result.status == "timeout"
    taken = times(line(TIMED) + b"yz")
    assert isinstance(taken, wire.Times)
    assert taken.microseconds[0].tolist() == [[1, 2], [3, 4]]
    assert (taken.outputs[0].set, taken.outputs[0].arrays) == (1, {"y": b"yz"})
    stopped = times(line({"status": "device", "message": "CUDA_ERROR_UNKNOWN"}))
    assert isinstance(stopped, wire.Ended)
    assert stopped.device == "CUDA_ERROR_UNKNOWN"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no newline",
        b"{}\n",
        line(OK),
        line({"status": "ok", "bytes": [3]}) + b"abc",
        line({"status": "ok", "bytes": [-1]}),
        line({"status": "ok", "bytes": [2, 2]}) + b"abcd",
        line(OK, OK, OK) + b"abcdef",
        line({"status": "splendid"}),
        line({"status": "fault"}),
        line({"status": "fault", "fault": {"kind": "a bad mood", "message": "", "kernel": ""}}),
        line({"status": "ok", "bytes": [2], "verdict": "passed"}) + b"ab",
    ],
)
def test_bad_replays(content: bytes) -> None:
    with pytest.raises(wire.BadAnswer):
        replays(content)


@pytest.mark.parametrize(
    "changed",
    [
        {"microseconds": [[1.0, 2.0, 3.0]]},
        {"microseconds": [[1.0, 2.0, 3.0, 0.0]]},
        {"microseconds": [[1.0, 2.0, 3.0, -4.0]]},
        {"microseconds": [[1.0] * 4, [1.0] * 4]},
        {"microseconds": []},
        {"launches": "telepathy"},
        {"outputs": []},
        {"outputs": [{"side": 0, "set": 0, "count": 3}]},
        {"outputs": [{"side": 1, "set": 0, "count": 4}]},
        {"outputs": [{"side": 0, "set": 2, "count": 4}]},
        {"outputs": [{"side": 0, "set": 0, "count": 0}]},
        {"outputs": [{"side": 0, "set": 0, "count": 2}, {"side": 0, "set": 1, "count": 2}]},
    ],
)
def test_bad_times(changed: dict[str, Any]) -> None:
    with pytest.raises(wire.BadAnswer):
        times(line({**TIMED, **changed}) + b"yz")


def test_numbers_that_are_none() -> None:
    for word in (b"NaN", b"Infinity", b"1e999"):
        with pytest.raises(wire.BadAnswer):
            times(line(TIMED).replace(b"4.0]", word + b"]") + b"yz")


@given(st.binary(max_size=200))
def test_noise(noise: bytes) -> None:
    for read in (replays, times):
        try:
            read(noise)
        except wire.BadAnswer:
            continue


def test_requests_hold_each_piece_once() -> None:
    with memory_file("request") as file:
        wire.write_timing(file, SIDES, [0, 0], 5.0, 100)
        content = os.pread(file, os.fstat(file).st_size, 0)
    head, _, blob = content.partition(b"\n")
    document = json.loads(head)
    assert blob == b"cubinabcd"
    assert document["cubins"] == [[0, 5]]
    assert [r["buffers"][0]["data"] for r in document["sides"][0]["replays"]] == [[5, 4]] * 2
    assert document["sides"][0]["replays"][0]["buffers"][1]["data"] is None

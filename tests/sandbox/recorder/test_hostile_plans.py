"""A plan is written where hostile code ran: anything may arrive, nothing but a plan gets through."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import Judged
from sandbox.plan import DEVICE_BASE, DEVICE_BYTES, SCRATCH_BASE, Launch, LaunchPlan
from sandbox.recorder.client import _ends, _Places, _plan
from sandbox.recorder.launchable import Kernel, first_impossible, kernels_of
from sandbox.targets import TARGETS
from sandbox.types import CompiledKernel

NO_PLACES = _Places([], {}, DEVICE_BASE)
LAUNCH = {
    "op": "launch",
    "module": 0,
    "kernel": "k",
    "grid": [1, 1, 1],
    "block": [32, 1, 1],
    "shared_bytes": 0,
    "parameters": "00ff",
}
GOOD = {
    "outcome": "returned",
    "detail": "",
    "unsupported": None,
    "dropped": [],
    "operations": [{"op": "allocate", "address": SCRATCH_BASE, "bytes": 16}, LAUNCH],
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def read(document: bytes) -> LaunchPlan:
    return _plan(document, "", "", {}, NO_PLACES)


def refused(document: bytes) -> str:
    with pytest.raises(Judged) as judged:
        read(document)
    assert judged.value.verdict in ("launch_error", "unsupported")
    return judged.value.message


def test_a_good_plan_is_read() -> None:
    assert len(read(json.dumps(GOOD).encode()).launches) == 1


@given(st.binary(max_size=200))
def test_bytes_are_refused(document: bytes) -> None:
    refused(document)


@given(json_values)
def test_other_documents_are_refused(document: object) -> None:
    refused(json.dumps(document).encode())


@given(st.sampled_from(sorted(GOOD)), json_values)
def test_a_field_of_another_shape_never_passes_unseen(field: str, value: object) -> None:
    try:
        plan = read(json.dumps({**GOOD, field: value}).encode())
    except Judged:
        return
    assert isinstance(plan, LaunchPlan)


@given(
    st.sampled_from(
        ["module", "kernel", "grid", "block", "shared_bytes", "parameters", "stream", "cooperative"]
    ),
    json_values,
)
def test_a_launch_stays_within_bounds(field: str, value: object) -> None:
    document = {**GOOD, "operations": [{**LAUNCH, field: value}]}
    try:
        [launch] = read(json.dumps(document).encode()).launches
    except Judged:
        return
    assert all(size >= 1 for size in (*launch.grid, *launch.block))
    assert launch.block[2] <= 64
    assert 0 <= launch.module < 64
    bytes.fromhex(launch.parameters)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "memset", "address": 0, "value": 1, "bytes": 8},
        {"op": "memset", "address": DEVICE_BASE + DEVICE_BYTES, "value": 1, "bytes": 8},
        {"op": "memset", "address": DEVICE_BASE, "value": 256, "bytes": 8},
        {"op": "copy", "to": DEVICE_BASE, "source": 5, "bytes": 8},
        {"op": "upload", "to": DEVICE_BASE, "data": "0"},
        {"op": "upload", "to": DEVICE_BASE, "data": "zz"},
        {"op": "write_symbol", "module": 64, "symbol": "s", "offset": 0, "data": ""},
        {"op": "write_symbol", "module": 0, "symbol": "s", "offset": -1, "data": ""},
        {"op": "write_symbol", "module": 0, "symbol": "s", "offset": 1 << 64, "data": ""},
        {"op": "write_symbol", "module": 0, "symbol": "a b\nend", "offset": 0, "data": ""},
        {"op": "allocate", "address": DEVICE_BASE, "bytes": 8},
        {"op": "free", "address": DEVICE_BASE},
        {"op": "free", "address": SCRATCH_BASE, "more": 1},
        {**LAUNCH, "kernel": "k 1 1 1\nend"},
        {**LAUNCH, "kernel": ""},
        {**LAUNCH, "stream": 1 << 80},
        {"op": "system", "command": "true"},
        {},
    ],
)
def test_operations_out_of_bounds_are_refused(operation: dict[str, object]) -> None:
    assert "damaged its launch plan" in refused(json.dumps({**GOOD, "operations": [operation]}).encode())


KERNEL = Kernel(
    symbol="k", registers=40, shared_bytes=1024, local_bytes=0, max_threads=512, parameters=[(0, 1), (1, 1)]
)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"kernel": "other"}, "a launch of other: there is no such kernel"),
        ({"module": 1}, "there is no such module"),
        ({"parameters": "00"}, "1 parameter bytes instead of 2"),
        ({"parameters": "000000"}, "3 parameter bytes instead of 2"),
        ({"block": [513, 1, 1]}, "513 threads a block; at most 512"),
        ({"block": [16, 8, 8]}, "1024 threads a block; at most 512"),
        ({"shared_bytes": 232448}, "232448 dynamic shared bytes"),
    ],
)
def test_launches_that_no_device_accepts(changes: dict[str, object], why: str) -> None:
    plan = LaunchPlan(
        operations=[Launch.model_validate(LAUNCH), Launch.model_validate({**LAUNCH, **changes})]
    )
    found = first_impossible(plan, {"k": KERNEL}, TARGETS["sm_90"])
    assert found.endswith(why)
    assert bool(found) == bool(why)


def test_the_least_launch_bounds_count_whatever_comments_say() -> None:
    ptx = "// .entry k() .maxntid 1024 {\n.visible .entry k(.param .u64 p) .maxntid 8, 4, 2\n{ "
    ptx += "// .entry k() .maxntid 512 {"
    compiled = CompiledKernel(
        name="k",
        symbol="k",
        registers=8,
        shared_bytes=0,
        local_bytes=0,
        spill_store_bytes=0,
        spill_load_bytes=0,
    )
    [kernel] = kernels_of([compiled], [ptx], {"k": [(0, 8)]}, TARGETS["sm_90"])
    assert kernel.max_threads == 64


def test_registers_that_a_multiprocessor_does_not_have() -> None:
    plan = LaunchPlan(operations=[Launch.model_validate({**LAUNCH, "block": [512, 1, 1]})])
    hungry = replace(KERNEL, registers=200)
    why = first_impossible(plan, {"k": hungry}, TARGETS["sm_90"])
    assert why == "a launch of k: 200 registers a thread for 512 threads a block"


def test_nesting_too_deep_to_parse_is_refused() -> None:
    assert "damaged" in refused(b"[" * 1_000_000)


def test_nothing_at_all_is_told_with_how_it_ended() -> None:
    ends = _ends(b"0 signal 9\n1 exit 5\n")
    with pytest.raises(Judged, match="it was killed by SIGKILL"):
        _plan(b"", ends[0], "", {}, NO_PLACES)
    with pytest.raises(Judged, match="it ended its process with exit code 5"):
        _plan(b"", ends[1], "", {}, NO_PLACES)

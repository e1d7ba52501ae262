"""Launch plans of real host code, compiled by the real nvcc: what is asked for, and every way to go wrong."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sandbox import jail, toolchain
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, Judged
from sandbox.limits import RECORD, Limits
from sandbox.plan import (
    DEVICE_BASE,
    DEVICE_BYTES,
    SCRATCH_BASE,
    Allocate,
    Copy,
    Free,
    Launch,
    LaunchPlan,
    Memset,
    Upload,
    WriteSymbol,
)
from sandbox.ptx import parameter_layout
from sandbox.recorder import client
from sandbox.same_work import first_difference
from sandbox.targets import TARGETS
from sandbox.tasks.base import Parameter

HERE = Path(__file__).parent
X, Y = DEVICE_BASE + (1 << 16), DEVICE_BASE + (1 << 20)
PARAMETERS = [
    Parameter(name="what", kind="scalar", dtype="int32", c_type="int"),
    Parameter(name="n", kind="scalar", dtype="int32", c_type="int"),
    Parameter(name="a", kind="scalar", dtype="float32", c_type="float"),
    Parameter(name="b", kind="scalar", dtype="float64", c_type="double"),
    Parameter(name="x", kind="array", dtype="float32", c_type="const float *"),
    Parameter(name="y", kind="array", dtype="float32", c_type="float *"),
]


@pytest.fixture(scope="module")
def candidate(jail: None) -> toolchain.Compiled:
    source = (HERE / "behaviours.cu").read_text()
    compiled = toolchain.compile_candidate(source, target="sm_90", cancel=Cancellation())
    assert compiled.ok, compiled.compilation.log
    return compiled


def record(
    candidate: toolchain.Compiled,
    *whats: int,
    n: int = 1000,
    cancel: Cancellation | None = None,
    limits: Limits = RECORD,
    base: int = DEVICE_BASE,
) -> list[LaunchPlan]:
    return client.record(
        candidate,
        PARAMETERS,
        [{"what": what, "n": n, "a": 1.5, "b": 2.5, "x": X, "y": Y} for what in whats],
        layout=parameter_layout(candidate.ptx[0]),
        target=TARGETS["sm_90"],
        cancel=cancel or Cancellation(),
        limits=limits,
        base=base,
    )


def judged(candidate: toolchain.Compiled, what: int, limits: Limits = RECORD) -> tuple[str, str | None, str]:
    with pytest.raises(Judged) as caught:
        record(candidate, what, limits=limits)
    return caught.value.verdict, caught.value.fault, caught.value.message


def values(launch: Launch, layout: str) -> tuple[Any, ...]:
    return struct.unpack(layout, bytes.fromhex(launch.parameters))


def only_launch(plan: LaunchPlan) -> Launch:
    [operation] = plan.operations
    assert isinstance(operation, Launch)
    return operation


def test_a_launch_with_its_parameter_block(candidate: toolchain.Compiled) -> None:
    [plan] = record(candidate, 0)
    launch = only_launch(plan)
    assert launch.kernel == "_Z5scaleifPKfPf"
    assert (launch.grid, launch.block, launch.shared_bytes) == ((4, 1, 1), (256, 1, 1), 0)
    assert values(launch, "<ifQQ") == (1000, 1.5, X, Y)


def test_structs_and_small_arguments_lie_where_ptx_says(candidate: toolchain.Compiled) -> None:
    [plan] = record(candidate, 1)
    launch = only_launch(plan)
    assert (launch.grid, launch.block) == ((2, 3, 4), (8, 4, 2))
    assert values(launch, "<c7xdQc7xqQ") == (b"t", 2.5, X, b"c", -5, Y)


def test_memory_operations(candidate: toolchain.Compiled) -> None:
    [plan] = record(candidate, 2)
    floats = struct.pack("<4f", 1, 2, 3, 4).hex()
    [allocate, *others] = plan.operations
    assert isinstance(allocate, Allocate)
    assert allocate.address > SCRATCH_BASE
    assert others == [
        Memset(address=allocate.address, value=0xAB, bytes=1000),
        Upload(to=allocate.address, data=floats),
        Copy(to=Y, source=allocate.address, bytes=16),
        WriteSymbol(module=0, symbol="table", offset=4, data=floats[:16]),
        Free(address=allocate.address),
    ]


def test_streams_keep_their_number_and_templates_their_name(candidate: toolchain.Compiled) -> None:
    [plan] = record(candidate, 3)
    assert [(launch.kernel, launch.stream) for launch in plan.launches] == [
        ("_Z4fillIfEvPT_S0_", 1),
        ("_Z4fillIiEvPT_S0_", 2),
    ]


def test_dynamic_shared_memory_beyond_the_default_once_allowed(candidate: toolchain.Compiled) -> None:
    [plan] = record(candidate, 4)
    assert only_launch(plan).shared_bytes == 100000


def test_cooperative_launches_both_ways(candidate: toolchain.Compiled) -> None:
    plans = record(candidate, 5, 8)
    assert [only_launch(plan).cooperative for plan in plans] == [True, True]
    assert values(only_launch(plans[1]), "<Qf") == (Y, 1.5)


def test_the_device_answers_from_the_targets_table(candidate: toolchain.Compiled) -> None:
    [plan] = record(candidate, 6)
    target = TARGETS["sm_90"]
    first, second, third = (values(launch, "<4qQ")[:4] for launch in plan.launches)
    assert first == (132, target.max_shared_bytes_per_block, 32, 132)
    fit, grid, block, cluster = second
    assert fit == 2  # 1024 threads of few registers, 2048 a multiprocessor
    assert (grid * block, block, cluster) == (132 * 2048, 1024, 1009)
    assert third == (64, 90, 48 * 1024, 0)


def test_occupancy_is_what_an_h200_answers(candidate: toolchain.Compiled) -> None:
    [plan] = record(candidate, 10)
    first, second = (values(launch, "<4qQ")[:4] for launch in plan.launches)
    assert first == (12, 21, 0, 0)
    assert second == (13184, 33152, 0, 0)


def test_struct_layouts_are_those_of_the_header(candidate: toolchain.Compiled) -> None:
    [plan] = record(candidate, 7)
    theirs = [value for launch in plan.launches for value in values(launch, "<4qQ")[:4]]
    abi = Path(client.__file__).parent.parent / "cudart" / "abi.h"
    program = """
#include <cstdio>
#include "abi.h"
int main() {
    printf("%zu %zu %zu %zu ", sizeof(cudaDeviceProp), offsetof(cudaDeviceProp, surfaceAlignment),
           offsetof(cudaDeviceProp, sharedMemPerBlockOptin), offsetof(cudaDeviceProp, reserved));
    printf("%zu %zu %zu %zu", sizeof(cudaFuncAttributes), sizeof(cudaLaunchConfig_t),
           sizeof(cudaLaunchAttribute), sizeof(cudaPointerAttributes));
}
"""
    sources = {"main.cpp": program, "abi.h": abi.read_text()}
    built = toolchain.compile_host(
        sources,
        output="executable",
        language="c++",
        flags=["-std=c++20", "-Wno-invalid-offsetof"],
        cancel=Cancellation(),
    )
    assert built.path is not None, built.log
    binds = [jail.Bind(built.path, Path("/program"))]
    ours = jail.run(["/program"], binds=binds, limits=RECORD, cancel=Cancellation())
    assert [int(word) for word in ours.stdout.split()] == theirs


def test_every_call_starts_afresh(candidate: toolchain.Compiled) -> None:
    plans = record(candidate, 9, 9, 9)
    assert plans[0] == plans[1] == plans[2]
    assert values(plans[0].launches[0], "<Qf")[1] == 1.0


def test_several_calls_in_order_and_fast(candidate: toolchain.Compiled) -> None:
    import time

    record(candidate, 0)
    began = time.monotonic()
    plans = record(candidate, *[0, 2] * 4)
    assert time.monotonic() - began < 0.3  # 15 ms on a machine that does nothing else
    assert [len(plan.operations) for plan in plans] == [1, 6] * 4


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (20, "scale was not launched with grid 0x1x1, block 256x1x1: the grid is empty"),
        (21, "the block is too large"),
        (22, "dynamic shared bytes: 60000; at most 49152 without cudaFuncSetAttribute"),
        (23, "threads per block, as its __launch_bounds__ says: 128; at most 64"),
    ],
)
def test_a_launch_the_device_refuses(candidate: toolchain.Compiled, what: int, why: str) -> None:
    verdict, fault, message = judged(candidate, what)
    assert (verdict, fault) == ("launch_error", "candidate")
    assert why in message
    assert "(cudaErrorInvalidValue)" in message  # as CUDA 13 has it, on an H200


def test_a_refused_launch_may_be_handled(candidate: toolchain.Compiled) -> None:
    [plan] = record(candidate, 24)
    assert only_launch(plan).grid == (1, 1, 1)


def test_errors_are_those_of_the_real_runtime(candidate: toolchain.Compiled) -> None:
    [plan] = record(candidate, 25)
    assert only_launch(plan).kernel == "_Z5scaleifPKfPf"


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (30, "host code touched device memory (8 bytes into x; only kernels may use it)"),
        (31, "launch crashed with SIGSEGV"),
        (32, "launch crashed with SIGABRT"),
        (33, "launch called exit(0)"),
        (34, "launch did not return: it ended its process with exit code 5"),
        (35, "launch threw an exception: out of ideas"),
        (36, "launch threw an exception: of a type that is no std::exception"),
        (39, "launch crashed with SIGSEGV"),
        (40, "launch ended the recorder instead of returning"),
        (44, "scale was not launched with grid 0x1x1, block 256x1x1: the grid is empty"),
        (45, "launch called exit(1); its last words: check failed: n > 5"),
        (42, "the host code damaged its launch plan"),
        (43, "the host code damaged its launch plan (operations.0.memset.address"),
        (46, "the host code damaged its launch plan (a launch of _Z6narrowPf: 128 threads a block; at most"),
        (47, "launch threw an exception: xxxxxxxxx"),
    ],
)
def test_host_code_that_does_not_return(candidate: toolchain.Compiled, what: int, why: str) -> None:
    verdict, fault, message = judged(candidate, what)
    assert (verdict, fault) == ("launch_error", "candidate")
    assert message.startswith(why), message


def test_an_endless_launch_is_a_timeout(candidate: toolchain.Compiled) -> None:
    verdict, _, message = judged(candidate, 37, Limits(**{**vars(RECORD), "wall_seconds": 0.5}))
    assert verdict == "timeout"
    assert "did not return" in message


def test_what_it_prints_is_not_its_plan(candidate: toolchain.Compiled) -> None:
    [plan] = record(candidate, 38)
    assert len(plan.launches) == 1


def test_an_allocation_whose_size_wraps_around(candidate: toolchain.Compiled) -> None:
    [plan] = record(candidate, 48)
    assert only_launch(plan).grid == (2, 1, 1)


def test_a_call_leaves_nothing_to_the_next(candidate: toolchain.Compiled) -> None:
    assert [len(plan.launches) for plan in record(candidate, 49, 49)] == [1, 1]


def test_processes_it_leaves_behind_do_not_matter(candidate: toolchain.Compiled) -> None:
    assert len(record(candidate, 41)[0].launches) == 1


@pytest.mark.parametrize(
    ("what", "call"),
    [
        (50, "cudaMemcpy with cudaMemcpyDeviceToHost"),
        (51, "cudaMallocManaged"),
        (52, "cudaGraphCreate"),
        (53, "cudaGetSymbolAddress"),
        (54, "cudaMemcpyFromSymbolAsync"),
    ],
)
def test_what_is_not_recorded_is_named(candidate: toolchain.Compiled, what: int, call: str) -> None:
    verdict, fault, message = judged(candidate, what)
    assert (verdict, fault) == ("unsupported", "kernelwright")
    assert message.startswith(f"launch uses {call}: ")


@pytest.mark.parametrize("what", [60, 61])
def test_host_code_that_is_not_the_same_twice(candidate: toolchain.Compiled, what: int) -> None:
    verdict, fault, message = judged(candidate, what)
    assert (verdict, fault) == ("rule_violation", "candidate")
    assert "same arguments" in message


def test_cancelling(candidate: toolchain.Compiled) -> None:
    cancel = Cancellation()
    cancel.set()
    with pytest.raises(Cancelled):
        record(candidate, 0, cancel=cancel)


def test_many_parameters_reach_the_stack_in_order(jail: None) -> None:
    """Integers and reals beyond the registers of the calling convention, mixed, of all widths."""
    kinds: Sequence[tuple[str, str, float]] = [
        *(("int32", "int", -i - 1) for i in range(8)),
        *(("float32", "float", i + 0.5) for i in range(7)),
        *(("float64", "double", i + 0.25) for i in range(4)),
        ("uint8", "unsigned char", 200),
        ("int16", "short", -7),
        ("int64", "long long", -(1 << 40)),
        ("float32", "float", -1.5),
    ]
    names = [f"p{i}" for i in range(len(kinds))]
    prototype = ", ".join(f"{c_type} {name}" for name, (_, c_type, _) in zip(names, kinds, strict=True))
    asdoubles = ", ".join(f"(double){name}" for name in names)
    source = f"""
struct All {{ double values[{len(names)}]; }};
__global__ void k(All all, float *y) {{ *y = all.values[0]; }}
extern "C" void launch({prototype}, float *y) {{ k<<<1, 1>>>(All{{{{{asdoubles}}}}}, y); }}
"""
    compiled = toolchain.compile_candidate(source, target="sm_90", cancel=Cancellation())
    assert compiled.ok, compiled.compilation.log
    parameters = [
        *(
            Parameter(name=n, kind="scalar", dtype=d, c_type=c)
            for n, (d, c, _) in zip(names, kinds, strict=True)
        ),
        Parameter(name="y", kind="array", dtype="float32", c_type="float *"),
    ]
    given = [value for _, _, value in kinds]
    [plan] = client.record(
        compiled,
        parameters,
        [{**dict(zip(names, given, strict=True)), "y": Y}],
        layout=parameter_layout(compiled.ptx[0]),
        target=TARGETS["sm_90"],
        cancel=Cancellation(),
    )
    assert values(only_launch(plan), f"<{len(names)}dQ") == (*given, Y)


ELSEWHERE = 0x3_0200_0000  # where a driver may put a reservation


@pytest.mark.parametrize("end", [0x7FFF_0000_0000, 0x7FFF_F000_0000, 0x5000_0000_0000, 0x120_0000_0000])
def test_the_device_may_be_anywhere_below_another_processs_libraries(
    candidate: toolchain.Compiled, end: int
) -> None:
    for _ in range(3):
        [plan] = record(candidate, 0, base=end - DEVICE_BYTES)
        assert values(only_launch(plan), "<ifQQ")[3] == Y + end - DEVICE_BYTES - DEVICE_BASE


@pytest.mark.parametrize("what", [0, 1, 2, 3, 5, 6, 8, 10])
def test_with_the_device_elsewhere_only_pointers_differ(candidate: toolchain.Compiled, what: int) -> None:
    [here], [there] = record(candidate, what), record(candidate, what, base=ELSEWHERE)
    assert first_difference(here, there, ELSEWHERE) == ""
    addresses = [getattr(o, name) for o in there.operations for name in ("address", "to") if hasattr(o, name)]
    assert all(DEVICE_BASE < address < DEVICE_BASE + DEVICE_BYTES for address in addresses)
    if what == 0:
        moved = ELSEWHERE - DEVICE_BASE
        assert values(only_launch(there), "<ifQQ") == (1000, 1.5, X + moved, Y + moved)
        assert first_difference(here, there, ELSEWHERE + 16) == "operation 0 (launch)"


def test_host_code_that_looks_at_addresses_is_found_out(jail: None) -> None:
    source = """
__global__ void k(int n, float *y) { y[0] = n; }
extern "C" void launch(int n, float *y) { k<<<1, 1>>>((unsigned long long)y >> 45 ? n : 7, y); }
"""
    compiled = toolchain.compile_candidate(source, target="sm_90", cancel=Cancellation())
    parameters = [
        Parameter(name="n", kind="scalar", dtype="int32", c_type="int"),
        Parameter(name="y", kind="array", dtype="float32", c_type="float *"),
    ]
    plans = [
        client.record(
            compiled,
            parameters,
            [{"n": 5, "y": Y}],
            layout=parameter_layout(compiled.ptx[0]),
            target=TARGETS["sm_90"],
            cancel=Cancellation(),
            base=base,
        )[0]
        for base in (DEVICE_BASE, ELSEWHERE)
    ]
    assert first_difference(*plans, ELSEWHERE) == "operation 0 (launch)"


def test_a_touch_of_device_memory_is_named_wherever_it_is(candidate: toolchain.Compiled) -> None:
    with pytest.raises(Judged) as caught:
        record(candidate, 30, base=ELSEWHERE)
    assert "bytes into" in caught.value.message


def test_a_range_that_cannot_be_had_is_our_fault(candidate: toolchain.Compiled) -> None:
    with pytest.raises(RuntimeError, match="where the device's memory should be"):
        record(candidate, 0, base=1 << 16 << 46)

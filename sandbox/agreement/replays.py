"""Cases as launch plans: what the emulator and the GPU backend replay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sandbox.agreement.build import Built
from sandbox.agreement.case import Array, Case, In, InOut, Out, size
from sandbox.cancellation import Cancellation
from sandbox.emulator import client as emulator
from sandbox.emulator.trace import ReplayResult
from sandbox.emulator.wire import Buffer, Replay
from sandbox.gpu.client import Session
from sandbox.plan import DEVICE_BASE, GUARD_BYTES, Launch, LaunchPlan
from sandbox.ptx import parameter_layout

_SECONDS = 300.0
Layout = dict[str, list[tuple[int, int]]]
#: How a case ended, and its outputs by name.
Outcome = tuple[ReplayResult, dict[str, Array]]


def emulate(built: Built, cases: Sequence[Case], *, threads: int = 1) -> list[Outcome]:
    """All cases in the emulator, with all checks and counts. Raises RuntimeError where one fails."""
    lowered = emulator.lower([built.ptx], Cancellation())
    layout = parameter_layout(built.ptx)
    replays = [replay(case, layout, count=True) for case in cases]
    ended = emulator.replay(lowered, replays, seconds=_SECONDS, threads=threads, cancel=Cancellation())
    outcomes = _read(cases, ended)
    if outcomes[-1][0].status != "ok":
        raise RuntimeError(f"{cases[len(outcomes) - 1].name} in the emulator: {why(outcomes[-1][0])}")
    return outcomes


def on_card(session: Session, built: Built, cases: Sequence[Case]) -> list[Outcome]:
    """Cases through the GPU backend, up to the first that does not end well. Raises Judged."""
    layout = parameter_layout(built.ptx)
    replays = [replay(case, layout, base=session.base) for case in cases]
    return _read(cases, session.replay(built.cubin, replays, seconds=_SECONDS))


def _read(cases: Sequence[Case], ended: list[tuple[ReplayResult, dict[str, bytes]]]) -> list[Outcome]:
    return [
        (result, case.read(back) if result.status == "ok" else {})
        for case, (result, back) in zip(cases, ended, strict=False)
    ]


def why(result: ReplayResult) -> str:
    """How a replay ended that did not end well."""
    return f"{result.status}: {result.fault.message if result.fault else result.message}"


def replay(case: Case, layout: Layout, *, base: int = DEVICE_BASE, count: bool = False) -> Replay:
    """`base`: where the device's range really begins; only pointers that the kernel sees know of it."""
    buffers: list[Buffer] = []
    offsets = layout[case.kernel]
    parameters = bytearray(max(offset + width for offset, width in offsets))
    address = DEVICE_BASE + GUARD_BYTES
    for argument, (offset, width) in zip(case.arguments, offsets, strict=True):
        if isinstance(argument, np.generic):
            value = argument.tobytes()
        else:
            value = (address - DEVICE_BASE + base).to_bytes(8, "little")
            buffers.append(_buffer(argument, address))
            address += -(-size(argument) // GUARD_BYTES) * GUARD_BYTES + GUARD_BYTES
        if len(value) != width:
            raise ValueError(f"{case.name}: a parameter of {width} bytes is given {len(value)}")
        parameters[offset : offset + width] = value
    launch = Launch(
        module=0,
        kernel=case.kernel,
        grid=case.grid,
        block=case.block,
        shared_bytes=case.shared,
        parameters=parameters.hex(),
    )
    # A race on purpose is found and told, and the launch goes on.
    return Replay(LaunchPlan(operations=[launch]), buffers, count, keep_going=count)


def _buffer(array: In | Out | InOut, address: int) -> Buffer:
    written = not isinstance(array, In)
    data = None if isinstance(array, Out) else array.values.tobytes()
    return Buffer(array.name, address, data, size(array), written, data is not None, 0xFF)

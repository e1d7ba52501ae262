"""The time of a candidate that was found right: taken on the card, every timed output compared, and looked at
with suspicion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sandbox import timing, verify
from sandbox.emulator.trace import ReplayResult
from sandbox.emulator.wire import Replay
from sandbox.errors import Judged
from sandbox.gpu.client import Session
from sandbox.gpu.devices import clocks_slowed
from sandbox.gpu.wire import Side
from sandbox.placement import array_bytes
from sandbox.plan import LaunchPlan
from sandbox.replays import POISONS, buffers
from sandbox.targets import Target
from sandbox.tasks.base import Baseline, Draw, Expected, TaskSpec
from sandbox.types import BaselineTime, Timing

#: Sets of inputs that trials go around: none is timed right after itself.
SETS = 4
SECONDS = 120.0
_SECTOR_BYTES = 32


def take(
    session: Session,
    cubin: bytes,
    plans: Sequence[LaunchPlan],
    draws: Sequence[Draw],
    expected: Sequence[Expected],
    spec: TaskSpec,
    addresses: Mapping[str, int],
    *,
    target: Target,
    counted: ReplayResult | None,
    baselines: Sequence[Baseline] = (),
) -> Timing:
    """Times one candidate on several sets of inputs, `draws`, all of the same sizes. `counted`: what the
    emulator counted on one of them. `baselines`: the user's own program, timed elsewhere.

    Raises Judged: "wrong_result" for a timed output that is wrong, and what `Session.time` raises.
    """
    replays = [
        Replay(plan, buffers(spec.parameters, draw, addresses, POISONS[0]), count=False)
        for plan, draw in zip(plans, draws, strict=True)
    ]
    times = session.time([Side(cubin, replays)], seconds=SECONDS)
    for output in times.outputs:
        fault = verify.first_fault(spec, draws[output.set], expected[output.set], output.arrays)
        if fault:
            said = f"in {output.count} of the timed runs, {fault}"
            raise Judged("wrong_result", "candidate", said)
    [samples] = times.microseconds
    candidate = timing.interval(samples)
    return Timing(
        candidate_us=candidate,
        candidate_cv=timing.variation(samples),
        baselines=[_compared(baseline, samples) for baseline in baselines],
        device=str(session.device),
        launches=times.launches,
        empty_us=times.empty_us,
        trials=samples.size,
        slowed=clocks_slowed(session.device.uuid),
        implausible=timing.implausible(
            candidate.median, bytes_read=_bytes_read(spec, draws[0], counted), target=target
        ),
    )


def _compared(baseline: Baseline, samples: timing.Samples) -> BaselineTime:
    compared = timing.compare(baseline.microseconds, samples)
    return BaselineTime(
        name=baseline.name,
        us=timing.interval(baseline.microseconds).median,
        speedup=compared.speedup,
        speedup_low=compared.low,
        speedup_high=compared.high,
    )


def _bytes_read(spec: TaskSpec, draw: Draw, counted: ReplayResult | None) -> int:
    """What must come from device memory: the inputs, or as much of them as was touched where that is known.
    Where it is not, nothing is claimed: a program may read a corner of what it is given."""
    if counted is None:
        return 0
    inputs = sum(
        array_bytes(parameter, draw)
        for parameter in spec.parameters
        if parameter.kind == "array" and parameter.access != "write"
    )
    touched = sum(launch.distinct_load_sectors for launch in counted.launches) * _SECTOR_BYTES
    return min(inputs, touched)

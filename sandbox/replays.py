"""Replaying the draws of a judgement, on the emulator or on a card: what both have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sandbox.emulator.trace import ReplayResult
from sandbox.emulator.wire import Buffer, Replay
from sandbox.errors import Judged
from sandbox.placement import array_bytes
from sandbox.plan import LaunchPlan
from sandbox.tasks.base import Draw, Parameter
from sandbox.words import named

#: Wall time for all replays of one judgement.
REPLAY_SECONDS = 30.0
#: Outputs start as these bytes, in one replay each: an element nobody wrote cannot agree with both.
POISONS = (0xFF, 0x5A)

Arrays = Mapping[str, bytes]  # name -> bytes after a replay
Replayed = list[tuple[ReplayResult, dict[str, bytes]]]
#: One after another, up to the first that does not end well; told how far it has come.
Backend = Callable[[Sequence[Replay], Callable[[int, int], None]], Replayed]


@dataclass(frozen=True)
class Outcomes:
    outputs: Sequence[Sequence[Arrays]]  # by draw, by poison
    counted: ReplayResult | None  # of the draw whose counts were asked for


def buffers(
    parameters: Sequence[Parameter], draw: Draw, addresses: Mapping[str, int], poison: int
) -> list[Buffer]:
    """All arrays are read back: outputs to be compared, inputs to see that nobody wrote to them."""
    return [
        Buffer(
            name=parameter.name,
            address=addresses[parameter.name],
            data=draw.arrays[parameter.name].tobytes() if parameter.name in draw.arrays else None,
            bytes=array_bytes(parameter, draw),
            read_back=True,
            initialised=parameter.name in draw.arrays,
            poison_byte=poison,
        )
        for parameter in parameters
        if parameter.kind == "array"
    ]


def replay_draws(
    backend: Backend,
    plans: Sequence[LaunchPlan],
    draws: Sequence[Draw],
    parameters: Sequence[Parameter],
    addresses: Mapping[str, int],
    *,
    count: int | None,
    seed: int = 0,
    on_progress: Callable[[int, int], None],
) -> Outcomes:
    """Every draw once with each poison; counts are taken on draw number `count`, if any. Raises Judged.

    With the last poison the emulator gives blocks and warps their turns in an order of the `seed`'s, since a
    device has an order of its own: results that hang on it differ then.
    """
    order = [(i, poison) for poison in POISONS for i in range(len(draws))]
    replays = [
        Replay(
            plan=plans[i],
            buffers=buffers(parameters, draws[i], addresses, poison),
            count=i == count and poison == POISONS[0],
            seed=seed if poison == POISONS[-1] else 0,
        )
        for i, poison in order
    ]
    results = backend(replays, on_progress)
    for (i, _), (result, _) in zip(order, results, strict=False):
        require_ok(result, draws[i])
    outputs: list[list[Arrays]] = [[] for _ in draws]
    for (i, _), (_, read_back) in zip(order, results, strict=True):
        outputs[i].append(read_back)
    return Outcomes(outputs=outputs, counted=None if count is None else results[count][0])


def require_ok(result: ReplayResult, draw: Draw) -> None:
    """Raises Judged with what a replay found."""
    where = named(draw.sizes)
    at = f" (sizes: {where})" if where else ""
    match result.status:
        case "fault":
            assert result.fault is not None
            line = f" at line {result.fault.line}" if result.fault.line else ""
            raise Judged(
                "runtime_error", "candidate", f"{result.fault.kind}{line}: {result.fault.message}{at}"
            )
        case "timeout":
            raise Judged("timeout", "candidate", f"the replay did not end within {REPLAY_SECONDS:.0f} s{at}")
        case "unsupported":
            raise Judged("unsupported", "kernelwright", result.message)
        case "ok":
            pass

"""Kernels that change nothing, found by leaving them out.

A plan may launch kernels whose only use is to look good in the metrics. A kernel is idle when the outputs are
the same, bit for bit, without any of its launches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sandbox.plan import Launch, LaunchPlan, Operation

#: A plan with more kernels than this is taken at its word: each costs a replay.
MOST_KERNELS = 8

Outputs = Mapping[str, bytes]  # array name -> bytes afterwards


def idle_kernels(
    plan: LaunchPlan, outputs: Outputs, replay: Callable[[LaunchPlan], Outputs | None]
) -> set[str]:
    """Mangled names. `replay` gives what a plan leaves behind; None where it faults or takes too long.

    Kernels are left out one after another, in the order of their first launch, and stay out when nothing
    changed: of two that do the same work, one remains. A plan of one kernel has no idle one.
    """
    names = list(dict.fromkeys(launch.kernel for launch in plan.launches))
    idle: set[str] = set()
    if not 1 < len(names) <= MOST_KERNELS:
        return idle
    for name in names:
        without = LaunchPlan.model_construct(operations=_without(plan, idle | {name}))
        if len(idle) + 1 < len(names) and replay(without) == outputs:
            idle.add(name)
    return idle


def _without(plan: LaunchPlan, kernels: set[str]) -> list[Operation]:
    return [o for o in plan.operations if not (isinstance(o, Launch) and o.kernel in kernels)]

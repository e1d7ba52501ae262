"""Versions made slower on purpose, for data to learn from. They stay right; no policy is ever offered one.

A ranker has to see what bad kernels cost: threads that run across memory, blocks of the wrong size, tiles
whose columns meet in one bank, barriers that order nothing, atomics where nobody meets. And what each
improvement brought: the version without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, replace

from agent.translator.c.kernels import Context, KernelCode, axes
from agent.translator.c.passes import transposed
from agent.translator.c.schedules import Choice, Schedule
from agent.translator.c.stages import Kernel, MapStage, ReduceStage
from agent.translator.c.syntax import Assign, Load, walk_statements

_DIRECT = Choice()
#: Each improvement, in words.
WITHOUT = {
    "block": "the default block size",
    "order": "the loops in their source order",
    "rows": "one thread a row",
    "shuffle": "a tree in shared memory, no shuffles",
    "vector": "one element a load",
    "per_thread": "one point a thread",
    "tile": "no tiles in shared memory",
    "pad": "no padding of the tiles",
    "turned": "no turning round in shared memory",
    "staged": "every load from global memory",
    "private": "one histogram for all blocks",
}
_BARRIERS = 4
_ATOMIC = ("int", "unsigned int", "float", "double")


def without(schedule: Schedule) -> Iterator[tuple[str, Schedule]]:
    """(the improvement left out, the schedule) for every one that any kernel has."""
    for field in fields(Choice):
        plain = getattr(_DIRECT, field.name)
        if field.name not in WITHOUT or all(getattr(c, field.name) == plain for c in schedule.choices):
            continue
        yield field.name, Schedule(tuple(replace(c, **{field.name: plain}) for c in schedule.choices))


def spoilt(
    context: Context, kernels: list[Kernel], schedule: Schedule
) -> Iterator[tuple[str, str, Schedule]]:
    """(slug, words, the schedule) for every way to make some kernel worse."""

    def conflicting(stage: Kernel, choice: Choice) -> Choice:
        """Through a tile in shared memory whose columns all lie in one bank."""
        turned = choice.turned or (
            isinstance(stage, MapStage) and transposed.match(context, stage) is not None
        )
        return replace(_DIRECT, turned=True) if turned else choice

    for slug, says, change in (
        ("uncoalesced_order", "threads run along the loop that is slowest in memory", _reversed),
        ("tiny_blocks", "one warp a block", _tiny),
        ("huge_blocks", "1024 threads a block", _huge),
        ("ragged_blocks", "blocks that fill no whole warp", _ragged),
        ("flat_blocks", "blocks one thread wide", _flat),
        ("useless_barriers", "barriers that order nothing", _barriers),
        ("needless_atomics", "atomic updates where nobody meets", _atomics),
        ("bank_conflicts", "a tile whose columns lie in one bank", conflicting),
    ):
        changed = Schedule(tuple(map(change, kernels, schedule.choices)))
        if changed != schedule:
            yield slug, says, changed


def spoilt_stage(stage: Kernel, choice: Choice) -> Kernel:
    """The stage as `choice.atomic` wants it."""
    if not choice.atomic or not isinstance(stage, MapStage):
        return stage
    return replace(stage, atomics=stage.atomics | _updated(stage))


def spoilt_code(code: KernelCode, choice: Choice) -> KernelCode:
    """The kernel with barriers at its start, which every thread reaches."""
    if not choice.barriers:
        return code
    line = f"for (int turn = 0; turn < {_BARRIERS}; ++turn) __syncthreads();"
    text = re.sub(r"(?m)^(__global__ void \w+\(.*\) \{)$", rf"\1\n    {line}", code.text)
    return replace(code, text=text)


def _plain(stage: Kernel, choice: Choice) -> bool:
    """One thread for each point, as the loops stand."""
    special = choice.rows or choice.tile or choice.staged or choice.private or choice.turned
    return isinstance(stage, MapStage) and not special and choice.vector == 1 and choice.per_thread == 1


def _reversed(stage: Kernel, choice: Choice) -> Choice:
    if not isinstance(stage, MapStage) or not _plain(stage, choice) or len(stage.dims) != 2:
        return choice
    now = axes(stage.dims, choice.order)[0][0]
    return replace(choice, order=(1 - now, now))


def _tiny(stage: Kernel, choice: Choice) -> Choice:
    if not isinstance(stage, MapStage) or not _plain(stage, choice):
        return choice
    return replace(choice, block=(32, 1, 1)[: min(len(stage.dims), 3)])


def _huge(stage: Kernel, choice: Choice) -> Choice:
    if isinstance(stage, ReduceStage):
        return replace(choice, block=(1024,))
    if not isinstance(stage, MapStage) or not _plain(stage, choice):
        return choice
    return replace(choice, block={1: (1024,), 2: (32, 32)}.get(len(stage.dims), (16, 8, 8)))


def _ragged(stage: Kernel, choice: Choice) -> Choice:
    if not isinstance(stage, MapStage) or not _plain(stage, choice):
        return choice
    return replace(choice, block={1: (100,), 2: (11, 9)}.get(len(stage.dims), (7, 5, 3)))


def _flat(stage: Kernel, choice: Choice) -> Choice:
    if not isinstance(stage, MapStage) or not _plain(stage, choice) or len(stage.dims) < 2:
        return choice
    return replace(choice, block=(1, 128, 1)[: min(len(stage.dims), 3)])


def _barriers(stage: Kernel, choice: Choice) -> Choice:
    return replace(choice, barriers=True) if isinstance(stage, MapStage | ReduceStage) else choice


def _atomics(stage: Kernel, choice: Choice) -> Choice:
    if not isinstance(stage, MapStage) or not _plain(stage, choice) or not _updated(stage) - stage.atomics:
        return choice
    return replace(choice, atomic=True)


def _updated(stage: MapStage) -> frozenset[str]:
    """Arrays that are only ever added to, and whose elements hardware adds to atomically."""
    updates = [
        (s.target, s.op)
        for s in walk_statements(stage.body)
        if isinstance(s, Assign) and s.op and isinstance(s.target, Load)
    ]
    added = {target.array for target, op in updates if op == "+" and target.type.name in _ATOMIC}
    return frozenset(added - {target.array for target, op in updates if op != "+"})

"""In the jail: lower the file's module-level integers until the emulator can afford the module.

Work is estimated on the meta device, where tensors have shapes and no memory, so a module of many gigabytes
costs nothing to estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from sandbox.errors import TaskProblem
from sandbox.tasks.pytorch.messages import FILE
from sandbox.tasks.pytorch.module import UserFile, blaming
from sandbox.types import Problem

_FLOORS = (32, 16, 8, 2)  # integers are not lowered below one of these while others can still give
_SMALLEST_RATIO = 4  # between two sizes of which one divides the other: heads, groups
_TRIES = 60
_TOO_MUCH = 16  # times the budget: refused when nothing is left to lower


@dataclass(frozen=True)
class Work:
    elements: int  # of all inputs, parameters and results of ops
    flop: int  # of matrix products and convolutions

    def over(self, elements: int, flop: int) -> float:
        """How many times the budget."""
        return max(self.elements / elements, self.flop / flop)


class _Elements(TorchDispatchMode):  # type: ignore[misc]
    """Counts elements of every result that is not a view of an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if not (isinstance(function, torch._ops.OpOverload) and function.is_view):
            for value in torch.utils._pytree.tree_leaves(result):
                if isinstance(value, torch.Tensor):
                    self.count += value.numel()
        return result


def estimate(file: UserFile, sizes: dict[str, int]) -> Work:
    """Raises TaskProblem when the module does not run at these sizes."""
    with torch.device("meta"):
        built = file.build(sizes)
        with _Elements() as elements, FlopCounterMode(display=False) as flop, blaming("forward raises"):
            built.run()
    held = [*built.model.parameters(), *built.model.buffers(), *torch.utils._pytree.tree_leaves(built.inputs)]
    total = elements.count + sum(t.numel() for t in held if isinstance(t, torch.Tensor))
    return Work(total, flop.get_total_flops())


def shrink(file: UserFile, given: dict[str, int], elements: int, flop: int) -> dict[str, int]:
    """Sizes at which the work fits the budget: every large integer is halved together, so that ratios and
    common divisors stay; where the module refuses that, one at a time. Then those that were lowered most are
    doubled again while the budget allows. What the user gave is never changed.

    Raises TaskProblem("too_large") when the work is far above the budget and nothing is left to lower.
    """
    sizes = {**file.integers, **given}
    try:
        work = estimate(file, sizes)
    except TaskProblem:
        return sizes  # it needs real values; the real run decides, under the jail's limits
    if work.over(elements, flop) <= 1:
        return sizes
    sizes, work = _lower(file, sizes, given, work, elements, flop)
    times = work.over(elements, flop)
    if times > _TOO_MUCH:
        raise TaskProblem(
            Problem(
                kind="too_large",
                message=f"the module does about {times:.0f} times the work the emulator can afford, and has "
                "no module-level integers left to lower",
                hint="write the sizes as module-level integers (batch_size = 128), or make them smaller",
                file=FILE,
            )
        )
    return _grow(file, sizes, elements, flop) if times <= 1 else sizes


def _lower(
    file: UserFile, sizes: dict[str, int], given: dict[str, int], work: Work, elements: int, flop: int
) -> tuple[dict[str, int], Work]:
    floors = iter(_FLOORS)
    floor = next(floors)
    for _ in range(_TRIES):
        if work.over(elements, flop) <= 1:
            break
        for candidate in _steps(sizes, given, floor):
            try:
                less = estimate(file, candidate)
            except TaskProblem:
                continue
            if less != work and less.elements <= work.elements and less.flop <= work.flop:
                sizes, work = candidate, less
                break
        else:
            lowest = floor
            floor = next(floors, lowest)
            if floor == lowest:
                break
    return sizes, work


def _steps(sizes: dict[str, int], given: dict[str, int], floor: int) -> Iterator[dict[str, int]]:
    """Ways to lower the sizes once, the preferred first."""
    free = [n for n, v in sizes.items() if n not in given and v >= 2 * floor]
    if not free:
        return
    yield {**sizes, **{n: _half(sizes[n]) for n in free}}
    for value in sorted({sizes[n] for n in free}, reverse=True):
        yield {**sizes, **{n: _half(value) for n in free if sizes[n] == value}}
    for name in sorted(free, key=lambda n: -sizes[n]):
        yield {**sizes, name: _half(sizes[name])}


def _grow(file: UserFile, sizes: dict[str, int], elements: int, flop: int) -> dict[str, int]:
    """Takes back halvings, of what was halved most often first, as long as the budget allows."""
    fixed: set[str] = set()
    while True:
        lowered = [n for n in sizes if sizes[n] < file.integers.get(n, 0) and n not in fixed]
        if not lowered:
            return sizes
        name = max(lowered, key=lambda n: file.integers[n] / sizes[n])
        candidate = {**sizes, name: _before_half(file.integers[name], sizes[name])}
        try:
            fits = _keeps_ratios(file, candidate) and estimate(file, candidate).over(elements, flop) <= 1
        except TaskProblem:
            fits = False
        if fits:
            sizes = candidate
        else:
            fixed.add(name)


def _keeps_ratios(file: UserFile, sizes: dict[str, int]) -> bool:
    """No size comes so near to one it divides that a head or a group is left with next to nothing."""
    large = [(file.integers[n], sizes[n]) for n in sizes if file.integers.get(n, 0) > _FLOORS[-2]]
    return all(
        now_b >= min(b // a, _SMALLEST_RATIO) * now_a
        for a, now_a in large
        for b, now_b in large
        if a < b and b % a == 0
    )


def _before_half(original: int, value: int) -> int:
    """What was halved to give `value`, on the way down from `original`."""
    above = original
    while _half(above) > value:
        above = _half(above)
    return above


def _half(value: int) -> int:
    return (value + 1) // 2

"""The launches of a plan as the families see them: counts added up, ptxas' words and the target beside
them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from sandbox.emulator.trace import LaunchTrace, LineCounts, Spread
from sandbox.metrics import occupancy
from sandbox.targets import Target
from sandbox.types import CompiledKernel

_COUNTERS = tuple(name for name in LineCounts.model_fields if name not in ("line", "file"))


@dataclass(frozen=True)
class MeasuredLaunch:
    """One launch, or `repeats` equal ones (same kernel, grid, block and shared memory) with their counts
    summed.
    """

    trace: LaunchTrace
    kernel: CompiledKernel | None  # None when ptxas said nothing of it
    target: Target
    repeats: int = 1
    idle: bool = False  # the outputs are the same without it

    @property
    def name(self) -> str:
        return self.kernel.name if self.kernel else self.trace.kernel

    @property
    def threads_per_block(self) -> int:
        return math.prod(self.trace.block)

    @property
    def blocks(self) -> int:
        """Of one of the equal launches."""
        return math.prod(self.trace.grid)

    @property
    def registers(self) -> int | None:
        return self.kernel.registers if self.kernel else None

    @property
    def shared_bytes(self) -> int:
        return self.trace.static_shared_bytes + self.trace.dynamic_shared_bytes

    @cached_property
    def totals(self) -> LineCounts:
        return add_lines(self.trace.lines)

    @cached_property
    def occupancy(self) -> occupancy.Occupancy:
        return occupancy.calculate(self.target, self.threads_per_block, self.registers, self.shared_bytes)


def gather(
    traces: Sequence[LaunchTrace],
    kernels: Sequence[CompiledKernel],
    target: Target,
    idle: Collection[str] = (),
) -> list[MeasuredLaunch]:
    """Equal launches together, in the order of their first. `idle`: mangled names of idle kernels."""
    by_symbol = {kernel.symbol: kernel for kernel in kernels}
    alike: dict[tuple[object, ...], list[LaunchTrace]] = {}
    for trace in traces:
        key = (trace.kernel, trace.grid, trace.block, trace.static_shared_bytes, trace.dynamic_shared_bytes)
        alike.setdefault(key, []).append(trace)
    return [
        MeasuredLaunch(
            summed(group), by_symbol.get(group[0].kernel), target, len(group), group[0].kernel in idle
        )
        for group in alike.values()
    ]


def by_line(launches: Iterable[MeasuredLaunch]) -> list[LineCounts]:
    """Counts per source line over all launches, in the order of the source."""
    lines: dict[tuple[str, int], list[LineCounts]] = {}
    for launch in launches:
        for counts in launch.trace.lines:
            lines.setdefault((counts.file, counts.line), []).append(counts)
    return [add_lines(lines[place]) for place in sorted(lines)]


def add_lines(lines: Sequence[LineCounts]) -> LineCounts:
    """Their sums, under the first one's file and line (0 when there is none)."""
    sums = {name: sum(getattr(line, name) for line in lines) for name in _COUNTERS}
    first = lines[0] if lines else LineCounts(line=0)
    return LineCounts(line=first.line, file=first.file, **sums)


def summed(group: Sequence[LaunchTrace]) -> LaunchTrace:
    """Equal launches as one: what was counted added up."""
    first = group[0]
    if len(group) == 1:
        return first
    lines: dict[tuple[str, int], list[LineCounts]] = {}
    for trace in group:
        for counts in trace.lines:
            lines.setdefault((counts.file, counts.line), []).append(counts)
    return first.model_copy(
        update={
            "threads": sum(trace.threads for trace in group),
            "counted_blocks": None
            if any(trace.counted_blocks is None for trace in group)
            else sum(trace.counted_blocks or 0 for trace in group),
            "barriers_executed": sum(trace.barriers_executed for trace in group),
            "useless_barriers": sum(trace.useless_barriers for trace in group),
            "distinct_load_sectors": sum(trace.distinct_load_sectors for trace in group),
            "distinct_store_sectors": sum(trace.distinct_store_sectors for trace in group),
            "warps": pool([trace.warps for trace in group]),
            "blocks": pool([trace.blocks for trace in group]),
            "lines": [add_lines(counts) for _, counts in sorted(lines.items())],
        }
    )


def pool(spreads: Sequence[Spread]) -> Spread:
    """The distribution of all the members of `spreads` together."""
    count = sum(spread.count for spread in spreads)
    if count == 0:
        return Spread(count=0, mean=0.0, minimum=0, maximum=0, standard_deviation=0.0)
    mean = sum(spread.mean * spread.count for spread in spreads) / count
    square = sum((spread.standard_deviation**2 + spread.mean**2) * spread.count for spread in spreads) / count
    filled = [spread for spread in spreads if spread.count]
    return Spread(
        count=count,
        mean=mean,
        minimum=min(spread.minimum for spread in filled),
        maximum=max(spread.maximum for spread in filled),
        standard_deviation=math.sqrt(max(square - mean**2, 0.0)),
    )


def variation(spread: Spread) -> float:
    """Coefficient of variation; 0 where nothing ran."""
    return spread.standard_deviation / spread.mean if spread.mean else 0.0

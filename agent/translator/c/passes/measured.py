"""What was measured of one kernel, as passes ask for it, and the sentences they argue with."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.translator.c.schedules import Choice
from sandbox.types import Evaluation, KernelMetrics, LineMetrics


@dataclass(frozen=True)
class Offer:
    """One improvement of one kernel: `gain` orders offers, in rough points of the score."""

    choice: Choice
    title: str
    reason: str
    gain: float


@dataclass
class Measured:
    """One kernel's numbers; `share` is its part of the program's instructions and sectors, 0 to 1."""

    kernel: KernelMetrics
    share: float
    source: list[str] = field(default_factory=list)

    def worst_load(self) -> tuple[LineMetrics, float] | None:
        """(line, sectors per request) of the line that loads the most sectors beyond 4 a request."""
        return self._worst("global_load_sectors", "global_load_requests")

    def worst_store(self) -> tuple[LineMetrics, float] | None:
        return self._worst("global_store_sectors", "global_store_requests")

    def _worst(self, sectors: str, requests: str) -> tuple[LineMetrics, float] | None:
        lines = [line for line in self.kernel.lines if getattr(line, requests) and line.line]
        if not lines:
            return None
        line = max(lines, key=lambda x: getattr(x, sectors) - 4 * getattr(x, requests))
        return line, getattr(line, sectors) / getattr(line, requests)

    def busiest(self) -> LineMetrics | None:
        """The line with most warp instructions."""
        lines = [line for line in self.kernel.lines if line.line]
        return max(lines, key=lambda line: line.instructions, default=None)

    @property
    def warps(self) -> int:
        blocks = self.kernel.grid[0] * self.kernel.grid[1] * self.kernel.grid[2]
        threads = self.kernel.block[0] * self.kernel.block[1] * self.kernel.block[2]
        return blocks * -(-threads // 32)  # of one launch

    @property
    def instructions_per_warp(self) -> float:
        return self.kernel.instructions / max(1, self.warps * self.kernel.launches)

    @property
    def reread(self) -> float:
        """How often a sector of DRAM is asked for."""
        asked = self.kernel.global_load_sectors + self.kernel.global_store_sectors
        return asked * 32 / max(32, self.kernel.dram_bytes)


def sectors_sentence(measured: Measured, cause: str) -> str | None:
    """ "Line 14 loads 32 sectors per request (4 would do): consecutive threads are a row apart." """
    for found, word in ((measured.worst_load(), "loads"), (measured.worst_store(), "stores")):
        if found is not None and found[1] > 5:
            line, per_request = found
            return f"Line {line.line} {word} {number(per_request)} sectors per request (4 would do): {cause}"
    return None


def number(value: float) -> str:
    """Three significant digits at most, no needless zeros."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}".removesuffix(".0") if value >= 10 else f"{value:.2f}".rstrip("0").rstrip(".")


def measured_kernels(evaluation: Evaluation) -> dict[str, Measured]:
    """By kernel name; a kernel that was launched at several grids is its costliest launch."""
    if evaluation.metrics is None:
        return {}
    costs = {id(k): cost(k) for k in evaluation.metrics.kernels}
    total = sum(costs.values()) or 1.0
    found: dict[str, Measured] = {}
    for kernel in evaluation.metrics.kernels:
        share = costs[id(kernel)] / total
        known = found.get(kernel.name)
        if known is None or share > known.share:
            found[kernel.name] = Measured(kernel, share + (known.share if known else 0.0))
        else:
            known.share += share
    return found


def cost(kernel: KernelMetrics) -> float:
    return float(kernel.instructions + kernel.global_load_sectors + kernel.global_store_sectors)


def shown(name: str) -> str:
    """A loop's variable as the source calls it: numbers that made it unique are left out."""
    base, _, suffix = name.rpartition("_")
    return base if base and suffix.isdigit() else name

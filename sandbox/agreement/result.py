"""What a comparison found."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.agreement.bounds import Expansion, Row
from sandbox.agreement.profiler import Counters


@dataclass(frozen=True)
class Result:
    date: str
    card: str
    tools: str
    cases: int
    kernels: int
    rows: list[Row]
    expansions: list[Expansion]
    counters: dict[str, Counters]  # by case: all that Nsight Compute told
    notes: list[str]  # what could not be done, in sentences

    @property
    def good(self) -> bool:
        """Everything was measured, and nothing is over."""
        return not self.notes and all(row.verdict in ("ok", "told") for row in self.rows)

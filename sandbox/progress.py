"""What the judge says while it works, for whoever waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sandbox.types import Compilation, Metrics, PlanSummary, Timing, Verification

Stream = Literal["nvcc", "gcc", "judge", "program"]


@dataclass(frozen=True)
class LogChunk:
    stream: Stream
    text: str


@dataclass(frozen=True)
class StageAt:
    """`done` of `of` where there is something to count: draws replayed, blocks run."""

    stage: str
    detail: str = ""
    done: int | None = None
    of: int | None = None
    device: str = ""  # the card at work, where it is another machine's
    queue_position: int | None = None  # while it waits for a card; 1 is next


@dataclass(frozen=True)
class CompiledCandidate:
    compilation: Compilation
    plan: PlanSummary | None


@dataclass(frozen=True)
class VerifiedCandidate:
    verification: Verification


@dataclass(frozen=True)
class MeasuredCandidate:
    metrics: Metrics


@dataclass(frozen=True)
class TimedCandidate:
    timing: Timing


Progress = LogChunk | StageAt | CompiledCandidate | VerifiedCandidate | MeasuredCandidate | TimedCandidate

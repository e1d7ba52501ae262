"""Rows of a data set: one task with its inputs and its judged solutions, as one line of JSON.

Rows are what data sets are made of, whatever made them: generated, given by a user, or taken from runs.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from pydantic import Field, field_serializer

from sandbox.tasks.base import Inputs, Language
from sandbox.types import Data, Evaluation

#: Of the rows below; a reader refuses what it does not know.
SCHEMA = 1

Decision = Literal["PARALLELIZE", "KEEP"]
Origin = Literal["generated", "given"]
SolutionKind = Literal[
    "builtin",  # a turn of the built-in policy
    "without",  # its best version with one improvement left out
    "spoiled",  # its best version made slower on purpose, still right
    "broken",  # its best version made wrong on purpose
    "model",  # a language model's
    "given",
]


class Provenance(Data):
    """Where a solution is from."""

    kind: SolutionKind
    change: str = ""  # slug of what was left out, spoiled or broken
    says: str = ""  # the same for a person; a turn's title
    turn: int | None = None
    base_turn: int | None = None  # the turn that it starts from
    policy: str = "builtin"


class Solution(Data):
    """A candidate and what the judge said of it, right or wrong."""

    source: str
    provenance: Provenance
    evaluation: Evaluation


class Draft(Data):
    """A task before anything has been run: what generation alone decides."""

    id: str  # of the content
    index: int  # place in the sequence of this seed; -1 for given sources
    family: str
    group: str
    language: Language
    entry: str | None  # the function that is the task
    source: str
    inputs: list[Inputs]  # configurations; candidates are judged with the first
    decision: Decision
    why: str = ""  # of KEEP
    origin: Origin = "generated"

    @field_serializer("inputs")
    def _said(self, inputs: list[Inputs]) -> list[dict[str, Any]]:
        """As an inputs block is written: what was not said is left out."""
        return [block.model_dump(exclude_defaults=True) for block in inputs]


class Row(Draft):
    """A task that the judge takes, with its solutions."""

    schema_version: int = SCHEMA
    structure: str = ""  # the skeleton of its loops (trainer.data.structure)
    translator: str = ""  # why the built-in translator refuses the task; "" where it does not
    difficulty: float | None = None  # 1 - pass rate over all honest attempts; None where nothing was tried
    solutions: list[Solution] = Field(default_factory=list)


def content_id(language: str, entry: str | None, source: str) -> str:
    """The same text is the same task, wherever it is from."""
    digest = hashlib.sha256(f"{language}\0{entry or ''}\0{source}".encode()).hexdigest()
    return f"{language}-{digest[:16]}"


#: What counts as an attempt to solve the task: nothing that was made worse on purpose.
HONEST: tuple[SolutionKind, ...] = ("builtin", "model", "given")


def difficulty(solutions: list[Solution], refused: bool) -> float | None:
    """One minus the pass rate over policies and their levels; a refusal is a failed attempt."""
    tried = [s for s in solutions if s.provenance.kind in HONEST and s.evaluation.fault != "kernelwright"]
    if not tried:
        return 1.0 if refused else None
    return round(1.0 - sum(s.evaluation.verdict == "passed" for s in tried) / len(tried), 4)


def solved(solutions: list[Solution]) -> bool:
    """Whether an honest attempt passed."""
    return any(s.provenance.kind in HONEST and s.evaluation.verdict == "passed" for s in solutions)


#: Share of the warp instructions above which a program was left to single threads.
_SERIAL_SHARE = 0.5


def parallel(solution: Solution) -> bool:
    """Whether most of a passed solution's instructions are run by more than one thread at a time."""
    metrics = solution.evaluation.metrics
    if solution.evaluation.verdict != "passed" or metrics is None:
        return False
    total = sum(k.instructions for k in metrics.kernels)
    alone = sum(k.instructions for k in metrics.kernels if _threads(k.grid) * _threads(k.block) == 1)
    return total > 0 and alone <= _SERIAL_SHARE * total


def _threads(shape: tuple[int, int, int]) -> int:
    return shape[0] * shape[1] * shape[2]

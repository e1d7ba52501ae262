"""What travels between who asks and who has the card, as data: what is to be judged, what is said meanwhile,
what came of it."""

from __future__ import annotations

import json
from typing import Any, get_args
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from sandbox.progress import Progress
from sandbox.tasks.base import Inputs, TaskSpec
from sandbox.types import Data, Evaluation, Problem

_KINDS: dict[str, TypeAdapter[Any]] = {kind.__name__: TypeAdapter(kind) for kind in get_args(Progress)}


class BadDocument(Exception):
    """What came is not what was agreed on: another version, perhaps."""


class Work(Data):
    """A candidate and its task. The evaluation's id makes every document its own: whoever reads the answer
    may delete both."""

    evaluation: UUID
    source: str
    filename: str
    entry: str | None
    inputs: Inputs | None
    target: str
    candidate: str
    understood: str  # how the asking side understands the task, see `understood`

    @property
    def key(self) -> str:
        """The same for all candidates of one task."""
        return self.model_dump_json(exclude={"evaluation", "candidate"})


class Outcome(Data):
    """One of the three."""

    evaluation: UUID
    judged: Evaluation | None = None
    problem: Problem | None = None  # the task is at fault
    failure: str = ""  # the machine is


def understood(spec: TaskSpec) -> str:
    """What both sides must agree on before a verdict of one means anything to the other."""
    return json.dumps(
        [spec.prototype, dict(spec.sizes), [parameter.model_dump() for parameter in spec.parameters]],
        sort_keys=True,
    )


def packed(progress: Progress) -> str:
    kind = type(progress).__name__
    return json.dumps({"kind": kind, "said": json.loads(_KINDS[kind].dump_json(progress))})


def unpacked(said: str) -> Progress:
    """Raises BadDocument."""
    try:
        document = json.loads(said)
        progress: Progress = _KINDS[document["kind"]].validate_python(document["said"])
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise BadDocument(f"what the GPU worker says cannot be read: {error}") from error
    return progress


def outcome_of(data: bytes, evaluation: UUID) -> Outcome:
    """Raises BadDocument."""
    try:
        outcome = Outcome.model_validate_json(data)
    except ValidationError as error:
        raise BadDocument(f"the GPU worker's answer cannot be read: {error}") from error
    if outcome.evaluation != evaluation:
        raise BadDocument("the GPU worker's answer is about another evaluation")
    return outcome


def work_of(data: bytes, evaluation: UUID) -> Work:
    """Raises BadDocument."""
    try:
        work = Work.model_validate_json(data)
    except ValidationError as error:
        raise BadDocument(f"what is to be judged cannot be read: {error}") from error
    if work.evaluation != evaluation:
        raise BadDocument("what is to be judged belongs to another evaluation")
    return work

"""Between REST and records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from sandbox.tasks.base import Inputs
from sandbox.types import Evaluation, Problem
from webapp.common import given
from webapp.common.bodies import parsed
from webapp.evaluations import selectors
from webapp.evaluations.models import EvaluationBatch as BatchRecord
from webapp.evaluations.models import EvaluationRecord
from webapp.live.resources import (
    EvaluationBatch,
    EvaluationBatchCreate,
    EvaluationCreate,
    EvaluationDetail,
    EvaluationItem,
    EvaluationSummary,
)

Item = TypeVar("Item", bound=EvaluationItem)


def evaluation_request(data: Any) -> EvaluationCreate:
    """A request's body with its defaults filled in. Raises ProblemError that names what is wrong."""
    return _completed(parsed(EvaluationCreate, data))


def batch_request(data: Any) -> EvaluationBatchCreate:
    """The same for a batch; what is wrong is named with its place: "items.3.candidate"."""
    request = parsed(EvaluationBatchCreate, data)
    items = [_completed(item, prefix=f"items.{place}.") for place, item in enumerate(request.items)]
    return request.model_copy(update={"items": items})


def _completed(item: Item, prefix: str = "") -> Item:
    filename, language = given.file_of(item.source, item.filename, item.language, prefix=prefix)
    given.check_text(f"{prefix}candidate", item.candidate)
    if not item.candidate.strip():
        raise given.wrong(f"{prefix}candidate", "is empty: give the CUDA source that is to be judged")
    given.check_entry(item.entry, prefix=prefix)
    target = given.target_of(item.target, prefix=prefix)
    return item.model_copy(update={"filename": filename, "language": language, "target": target})


def evaluation_summaries(records: Sequence[EvaluationRecord]) -> list[EvaluationSummary]:
    positions = selectors.queue_positions(records)
    return [EvaluationSummary(**_summary(record, positions)) for record in records]


def evaluation_detail(record: EvaluationRecord) -> EvaluationDetail:
    return EvaluationDetail(
        **_summary(record, selectors.queue_positions([record])),
        source=record.source,
        candidate=record.candidate,
        entry=record.entry,
        inputs=None if record.inputs is None else Inputs.model_validate(record.inputs),
        evaluation=None if record.evaluation is None else Evaluation.model_validate(record.evaluation),
        problem=None if record.problem is None else Problem.model_validate(record.problem),
    )


def batch_detail(batch: BatchRecord) -> EvaluationBatch:
    results = selectors.evaluations_of(batch)
    summaries = evaluation_summaries(results)
    return EvaluationBatch(
        id=batch.pk,
        workspace=batch.workspace.slug,
        created_at=batch.created_at,
        ended=all(record.has_ended for record in results),
        states=dict(Counter(summary.state for summary in summaries)),
        verdicts=dict(Counter(summary.verdict for summary in summaries if summary.verdict)),
        results=summaries,
    )


def _summary(record: EvaluationRecord, positions: Mapping[UUID, int]) -> dict[str, Any]:
    ended = record.started_at and record.ended_at
    seconds = (record.ended_at - record.started_at).total_seconds() if ended else None  # type: ignore[operator]
    return {
        "id": record.pk,
        "workspace": record.workspace.slug,
        "batch": record.batch_id,
        "title": record.title,
        "filename": record.filename,
        "language": record.language,
        "backend": record.backend,
        "target": record.target,
        "state": record.state,
        "stage": record.stage,
        "verdict": record.verdict,
        "score": record.score,
        "message": record.message,
        "created_at": record.created_at,
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "seconds": seconds,
        "queue_position": positions.get(record.pk),
    }

"""Between REST and records: requests are checked on the way in, records become the data that goes out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings

from agent.events import TurnEnded
from agent.trajectory import Turn, fold
from sandbox.targets import TARGETS
from sandbox.tasks.base import Inputs, Language
from sandbox.types import Problem
from webapp.common.bodies import parsed
from webapp.common.errors import ProblemError
from webapp.language_models.selectors import (
    ModelUnusable,
    language_model_default,
    language_model_named,
    protocol_of,
)
from webapp.live.resources import (
    EventPage,
    FieldProblem,
    RunCreate,
    RunDetail,
    RunSummary,
    StoredEvent,
    TurnSummary,
)
from webapp.runs.models import AgentRun, RunEvent
from webapp.runs.selectors import event_of, folded_events, model_usage, queue_positions, resumable

_FILENAME = re.compile(r"[^/\\\x00-\x1f\x7f]{1,200}")
_POLICIES = ("builtin", "llm")
_SUFFIXES: dict[str, Language] = {".c": "c", ".py": "pytorch"}
_DEFAULT_NAMES: dict[Language, str] = {"c": "task.c", "pytorch": "task.py"}


def run_request(data: Any) -> RunCreate:
    """A request's body with its defaults filled in. Raises ProblemError that names what is wrong."""
    request = parsed(RunCreate, data)
    _check_text("source", request.source)
    if not request.source.strip():
        raise _wrong("source", "is empty: paste a C function, a C program or a PyTorch module")
    if request.start_from is not None:
        _check_text("start_from", request.start_from)
    filename = request.filename or _DEFAULT_NAMES[request.language or _guessed(request.source)]
    if not _FILENAME.fullmatch(filename):
        raise _wrong("filename", "must be a plain file name of at most 200 characters")
    language = _suffix_language(filename)
    if language is None:
        raise _wrong("filename", f"must end in .c or .py, which says the language; {filename!r} does not")
    if request.language is not None and request.language != language:
        raise _wrong("language", f"is {request.language!r}, but {filename!r} says {language!r}")
    target = request.target or settings.RUN_TARGET
    if target not in TARGETS:
        raise _wrong("target", f"{target!r} is not known; choose one of {', '.join(sorted(TARGETS))}")
    if request.policy not in _POLICIES:
        raise _wrong("policy", f"{request.policy!r} is not known; choose one of {', '.join(_POLICIES)}")
    has_model = request.policy == "llm"
    default, most = (
        (settings.TURNS_DEFAULT_LLM, settings.TURNS_MAX_LLM)
        if has_model
        else (settings.TURNS_DEFAULT, settings.TURNS_MAX)
    )
    turns = default if request.turns is None else request.turns
    if not 1 <= turns <= most:
        raise _wrong("turns", f"must be from 1 to {most}")
    if request.entry is not None and len(request.entry) > 200:
        raise _wrong("entry", "is longer than 200 characters")
    settled = {"filename": filename, "language": language, "target": target, "turns": turns}
    return request.model_copy(update=settled | _model_request(request))


def _model_request(request: RunCreate) -> dict[str, Any]:
    """What a run of a language model is asked with; of the built-in policy, none of it."""
    given = {
        "model": request.model,
        "seconds": request.seconds,
        "tokens": request.tokens,
        "cost": request.cost,
    }
    if request.policy != "llm":
        for name, value in given.items():
            if value is not None:
                raise _wrong(name, 'is of a language model: ask for it with "policy": "llm"')
        return {}
    default = language_model_default()
    name = request.model or (default.name if default else "")
    if not name:
        raise _wrong("model", "this server has no language model; an administrator sets one up at /admin/")
    try:
        model = language_model_named(name)
    except ModelUnusable as unusable:
        raise _wrong("model", str(unusable)) from None
    for field, limit in (("seconds", request.seconds), ("tokens", request.tokens), ("cost", request.cost)):
        if limit is not None and not 0 < limit < 1e9:
            raise _wrong(field, "must be above 0 and below a thousand million")
    if request.cost is not None and model.price_prompt is None:
        raise _wrong("cost", f"a limit needs the price of {name}, which is not known; limit tokens instead")
    return {"model": name, "protocol": protocol_of(model, request.protocol)}


def _suffix_language(filename: str) -> Language | None:
    """The language a file's name says; None when it says none that is known."""
    return _SUFFIXES.get("." + filename.rpartition(".")[2].lower())


def _guessed(source: str) -> Language:
    return "pytorch" if re.search(r"^\s*(import|from)\s+torch\b", source, re.MULTILINE) else "c"


def _check_text(field: str, text: str) -> None:
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise _wrong(field, "is not text: it holds half of a surrogate pair", slug="not-text") from None
    if size > settings.SOURCE_BYTES_MAX:
        limit = settings.SOURCE_BYTES_MAX
        raise _wrong(field, f"is {size} bytes; at most {limit} are taken", slug="too-large", status=413)
    if "\x00" in text:
        raise _wrong(field, "is not text: it holds a NUL byte", slug="not-text")


def _wrong(field: str, message: str, *, slug: str = "invalid", status: int = 400) -> ProblemError:
    return ProblemError(
        status, slug, f"{field}: {message}", errors=[FieldProblem(field=field, message=message)]
    )


def run_summaries(runs: Sequence[AgentRun]) -> list[RunSummary]:
    positions = queue_positions(runs)
    return [RunSummary(**_summary(run, positions)) for run in runs]


def run_detail(run: AgentRun) -> RunDetail:
    events = folded_events(run)
    trajectory = fold(events)
    seconds = {event.turn: event.seconds for event in events if isinstance(event, TurnEnded)}
    return RunDetail(
        **_summary(run, queue_positions([run])),
        source=run.source,
        entry=run.entry,
        inputs=None if run.inputs is None else Inputs.model_validate(run.inputs),
        start_from=run.start_from,
        task=trajectory.task,
        problem=None if run.problem is None else Problem.model_validate(run.problem),
        turns=[_turn(turn, seconds.get(turn.number)) for turn in trajectory.turns],
        rerun_of=run.rerun_of_id,
        seconds_limit=run.seconds_limit,
        token_limit=run.token_limit,
        cost_limit=run.cost_limit,
        usage=model_usage(run),
        resumes=run.resumes_id,
        resumable=resumable(run),
    )


def event_page(run: AgentRun, records: Sequence[RunEvent]) -> EventPage:
    return EventPage(
        results=[StoredEvent(seq=record.seq, at=record.at, event=event_of(record)) for record in records],
        last_seq=run.last_seq,
        ended=run.has_ended,
    )


def event_frame(record: RunEvent) -> dict[str, Any]:
    """An `EventFrame` as JSON data. The payload was validated when it was stored; it is not parsed again."""
    return {"type": "event", "seq": record.seq, "at": record.at.isoformat(), "event": record.payload}


def _summary(run: AgentRun, positions: Mapping[UUID, int]) -> dict[str, Any]:
    seconds = (run.ended_at - run.started_at).total_seconds() if run.started_at and run.ended_at else None
    return {
        "id": run.pk,
        "title": run.title,
        "filename": run.filename,
        "language": run.language,
        "policy": run.policy,
        "model": run.model,
        "protocol": run.protocol,
        "backend": run.backend_used or run.backend,
        "target": run.target,
        "turn_limit": run.turn_limit,
        "state": run.state,
        "reason": run.reason,
        "message": run.message,
        "verdict": run.verdict,
        "score": run.score,
        "best_turn": run.best_turn,
        "turn_count": run.turn_count,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "seconds": seconds,
        "queue_position": positions.get(run.pk),
        "last_seq": run.last_seq,
    }


def _turn(turn: Turn, seconds: float | None) -> TurnSummary:
    evaluation = turn.evaluation
    return TurnSummary(
        turn=turn.number,
        title=turn.title,
        base_turn=turn.base_turn,
        verdict=evaluation.verdict if evaluation else None,
        score=evaluation.score if evaluation else None,
        seconds=seconds,
        message=evaluation.message if evaluation else "",
        reflection=turn.reflection,
    )

"""Between REST and records: requests are checked on the way in, records become the data that goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings

from agent.events import TurnEnded
from agent.trajectory import Turn, fold
from sandbox.tasks.base import Inputs
from sandbox.types import Problem
from webapp.accounts.models import User
from webapp.cards.selectors import Place
from webapp.cards.selectors import places as gpu_places
from webapp.cards.serializers import gpu_place
from webapp.common import given
from webapp.common.bodies import parsed
from webapp.language_models.selectors import (
    ModelUnusable,
    language_model_default,
    language_model_named,
    protocol_of,
)
from webapp.live.resources import (
    EventPage,
    RunCreate,
    RunDetail,
    RunSummary,
    StoredEvent,
    TurnSummary,
)
from webapp.profiles.selectors import NoProfile, settings_of, version_named
from webapp.runs.models import AgentRun, RunEvent
from webapp.runs.selectors import (
    event_of,
    folded_events,
    model_usage,
    queue_positions,
    resumable,
    turns_again,
)
from webapp.workspaces.selectors import workspace_visible_to

_POLICIES = ("builtin", "llm")
INSTRUCTION_MAX = 20_000  # characters: a prompt has to hold it
#: What a profile says, and a request with one must not.
_OF_PROFILES = {"policy", "model", "protocol", "turns", "seconds", "tokens", "cost"}


def run_request(data: Any, user: User | None = None) -> RunCreate:
    """A request's body with its defaults filled in. Raises ProblemError that names what is wrong."""
    request = parsed(RunCreate, data)
    filename, language = given.file_of(request.source, request.filename, request.language)
    if request.start_from is not None:
        given.check_text("start_from", request.start_from)
    if request.instruction is not None:
        given.check_text("instruction", request.instruction)
        if len(request.instruction) > INSTRUCTION_MAX:
            raise given.wrong("instruction", f"is longer than {INSTRUCTION_MAX} characters")
    target = given.target_of(request.target)
    if request.profile is not None:
        request = _profile_applied(request, user)
    if request.policy not in _POLICIES:
        raise given.wrong("policy", f"{request.policy!r} is not known; choose one of {', '.join(_POLICIES)}")
    has_model = request.policy == "llm"
    default, most = (
        (settings.TURNS_DEFAULT_LLM, settings.TURNS_MAX_LLM)
        if has_model
        else (settings.TURNS_DEFAULT, settings.TURNS_MAX)
    )
    turns = default if request.turns is None else request.turns
    if not 1 <= turns <= most:
        raise given.wrong("turns", f"must be from 1 to {most}")
    given.check_entry(request.entry)
    settled = {"filename": filename, "language": language, "target": target, "turns": turns}
    return request.model_copy(update=settled | _model_request(request))


def _profile_applied(request: RunCreate, user: User | None) -> RunCreate:
    """The request with what its profile says; the version is settled here."""
    given_too = sorted(request.model_fields_set & _OF_PROFILES)
    if given_too:
        raise given.wrong(given_too[0], "is said by the profile; leave it out, or leave out the profile")
    if user is None:
        raise given.wrong("profile", "is of a workspace, and nobody asks")
    workspace = workspace_visible_to(user, request.workspace)
    try:
        version = version_named(workspace, request.profile or "")
    except NoProfile as missing:
        raise given.wrong("profile", str(missing)) from None
    said = settings_of(version)
    fields = ("model", "protocol", "turns", "seconds", "tokens", "cost")
    values = {name: getattr(said, name) for name in fields}
    return request.model_copy(update=values | {"policy": "llm", "profile": str(version)})


def _model_request(request: RunCreate) -> dict[str, Any]:
    """What a run of a language model is asked with; of the built-in policy, none of it."""
    asked = {
        "model": request.model,
        "seconds": request.seconds,
        "tokens": request.tokens,
        "cost": request.cost,
        "instruction": request.instruction,
    }
    if request.policy != "llm":
        for name, value in asked.items():
            if value is not None:
                raise given.wrong(name, 'is of a language model: ask for it with "policy": "llm"')
        return {}
    default = language_model_default()
    name = request.model or (default.name if default else "")
    if not name:
        raise given.wrong(
            "model", "this server has no language model; an administrator sets one up at /admin/"
        )
    try:
        model = language_model_named(name)
    except ModelUnusable as unusable:
        raise given.wrong("model", str(unusable)) from None
    for field, limit in (("seconds", request.seconds), ("tokens", request.tokens), ("cost", request.cost)):
        if limit is not None and not 0 < limit < 1e9:
            raise given.wrong(field, "must be above 0 and below a thousand million")
    if request.cost is not None and model.price_prompt is None:
        raise given.wrong(
            "cost", f"a limit needs the price of {name}, which is not known; limit tokens instead"
        )
    return {"model": name, "protocol": protocol_of(model, request.protocol)}


def run_summaries(runs: Sequence[AgentRun]) -> list[RunSummary]:
    positions = queue_positions(runs)
    places = gpu_places([run.pk for run in runs if run.state == AgentRun.State.RUNNING])
    return [RunSummary(**_summary(run, positions, places)) for run in runs]


def run_detail(run: AgentRun) -> RunDetail:
    events = folded_events(run)
    trajectory = fold(events)
    seconds = {event.turn: event.seconds for event in events if isinstance(event, TurnEnded)}
    return RunDetail(
        **_summary(run, queue_positions([run]), gpu_places([run.pk])),
        source=run.source,
        entry=run.entry,
        inputs=None if run.inputs is None else Inputs.model_validate(run.inputs),
        start_from=run.start_from,
        instruction=run.instruction,
        task=trajectory.task,
        problem=None if run.problem is None else Problem.model_validate(run.problem),
        turns=[_turn(turn, seconds.get(turn.number)) for turn in trajectory.turns],
        rerun_of=run.rerun_of_id,
        seconds_limit=run.seconds_limit,
        token_limit=run.token_limit,
        cost_limit=run.cost_limit,
        usage=model_usage(run),
        profile=None if run.profile is None else str(run.profile),
        resumes=run.resumes_id,
        turns_again=turns_again(run),
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


def _summary(run: AgentRun, positions: Mapping[UUID, int], places: Mapping[UUID, Place]) -> dict[str, Any]:
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
        "gpu": gpu_place(places[run.pk]) if run.pk in places else None,
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

"""What a worker does: fetch, call one service."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.db import close_old_connections, connection

from agent.events import Event, RunEnded
from agent.llm.skills import Means, Skill
from agent.search.options import SearchOptions
from agent.translate import TranslateRequest, translate
from sandbox.cancellation import Cancellation
from sandbox.tasks.base import Inputs
from webapp.cards.judge import Asked, make_judge
from webapp.language_models.selectors import ModelUnusable, endpoint_named
from webapp.live import upkeep
from webapp.profiles.selectors import settings_of
from webapp.runs import queue, services
from webapp.runs.models import AgentRun
from webapp.runs.selectors import stored_events


@shared_task(name=queue.TRANSLATE)
def run_translate(run_id: str) -> None:
    try:
        services.agent_run_execute(run_id=UUID(run_id), translate=translate_run)
    finally:
        close_old_connections()


def translate_run(run: AgentRun, cancel: Cancellation) -> Iterator[Event]:
    """The engine's events for what a run asks."""
    try:
        endpoint = endpoint_named(run.model) if run.policy == "llm" else None
        earlier = [] if run.resumes is None else stored_events(run.resumes)
        request = _request(run)
    except ModelUnusable as unusable:
        yield RunEnded(reason="model_unavailable", message=str(unusable))
        return
    finally:
        connection.close()  # the engine's thread needs the database no more
    asked = Asked(run.source, run.filename, run.entry, request.inputs, run_id=run.pk)
    judge = partial(make_judge, asked)
    yield from translate(request, cancel=cancel, endpoint=endpoint, earlier=earlier, make_judge=judge)


def _request(run: AgentRun) -> TranslateRequest:
    limits: dict[str, Any] = {"seconds": run.seconds_limit, "tokens": run.token_limit, "cost": run.cost_limit}
    if run.policy == "llm":
        limits["seconds"] = run.seconds_limit or settings.SECONDS_DEFAULT_LLM
        limits["protocol"] = run.protocol
    if run.profile is not None:
        said = settings_of(run.profile)
        own = [Skill.model_validate(skill.model_dump()) for skill in said.skills]
        limits["search"] = SearchOptions(strategy=said.strategy, samples=said.samples)
        limits["means"] = Means(tools=said.tools, skills=own)
    return TranslateRequest.model_validate(
        {
            "source": run.source,
            "filename": run.filename,
            "entry": run.entry,
            "inputs": None if run.inputs is None else Inputs.model_validate(run.inputs),
            "policy": run.policy,
            "backend": run.backend,
            "target": run.target,
            "turns": run.turn_limit,
            "start_from": run.start_from,
            "instruction": run.instruction,
            **{name: value for name, value in limits.items() if value is not None},
        }
    )


upkeep.keep(requeue=services.agent_runs_requeue, reconcile=services.agent_runs_reconcile)

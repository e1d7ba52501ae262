"""Reads of runs. Whatever a user may see of runs comes through `runs_visible_to`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber
from django.http import Http404

from agent.events import ActionTaken, Event, event_adapter
from agent.trajectory import Trajectory, fold
from webapp.accounts.models import User
from webapp.live.resources import ModelUsage
from webapp.runs.models import AgentRun, ModelUse, RunEvent
from webapp.workspaces.models import Workspace
from webapp.workspaces.selectors import workspaces_visible_to

#: What a run was asked with: up to a megabyte each, and nothing that a list or an event needs.
LARGE = ("source", "start_from", "inputs")
#: The events that say what a run's turns came to; all others tell how.
FOLDED = ("run_started", "turn_started", "action", "reflected", "turn_ended", "run_ended")


def runs_visible_to(user: User | AnonymousUser) -> QuerySet[AgentRun]:
    """The one place that decides: a run is seen by the members of its workspace, and nobody else."""
    return AgentRun.objects.filter(workspace__in=workspaces_visible_to(user)).select_related("workspace")


def runs_listed(user: User | AnonymousUser, workspace: Workspace) -> QuerySet[AgentRun]:
    """Those of one workspace, without what a list does not show."""
    return runs_visible_to(user).filter(workspace=workspace).defer(*LARGE)


def run_visible_to(user: User | AnonymousUser, run_id: UUID) -> AgentRun:
    """Raises Http404, the same for a run of another's as for none at all."""
    try:
        return runs_visible_to(user).get(pk=run_id)
    except AgentRun.DoesNotExist:
        raise Http404 from None


def events_after(run_id: UUID, after_seq: int, limit: int) -> list[RunEvent]:
    """In order, at most `limit`."""
    return list(RunEvent.objects.filter(run_id=run_id, seq__gt=after_seq).order_by("seq")[:limit])


def event_of(record: RunEvent) -> Event:
    return event_adapter.validate_python(record.payload)


def folded_events(run: AgentRun) -> list[Event]:
    """The events that make a trajectory, in order."""
    records = RunEvent.objects.filter(run=run, type__in=FOLDED).order_by("seq")
    return [event_of(record) for record in records]


def run_trajectory(run: AgentRun) -> Trajectory:
    return fold(folded_events(run))


def run_candidate(run: AgentRun, turn: int | None) -> tuple[int, str] | None:
    """The turn and its CUDA source; without `turn` the best one's. None when there is none."""
    wanted = turn or run.best_turn
    if wanted is None:
        return None
    for record in RunEvent.objects.filter(run=run, type="action").order_by("-seq"):
        event = event_of(record)
        if isinstance(event, ActionTaken) and event.turn == wanted and event.action == "submit":
            return wanted, event.source
    return None


#: Endings after which a run of a language model can go on. A turn limit is raised by improving instead.
_BROKEN_OFF = ("model_unavailable", "time_limit", "token_limit", "cost_limit", "cancelled", "interrupted")


def resumable(run: AgentRun) -> bool:
    return run.policy == "llm" and run.reason in _BROKEN_OFF


def turns_again(run: AgentRun) -> list[int]:
    """The turns that the run tells again: those judged in the run that it goes on from."""
    if run.resumes_id is None:
        return []
    judged = RunEvent.objects.filter(run=run.resumes_id, type="turn_ended").order_by("seq")
    return [int(payload["turn"]) for payload in judged.values_list("payload", flat=True)]


def stored_events(run: AgentRun) -> list[Event]:
    """All of them, in order."""
    return [event_of(record) for record in RunEvent.objects.filter(run=run).order_by("seq").iterator()]


def model_usage(run: AgentRun) -> ModelUsage | None:
    """What the run took of its language model so far; None for a run that has none."""
    if run.policy != "llm":
        return None
    use = ModelUse.objects.filter(run=run).first() or ModelUse()
    return ModelUsage(
        requests=use.requests,
        prompt_tokens=use.prompt_tokens,
        completion_tokens=use.completion_tokens,
        estimated=use.estimated,
        cost=use.cost,
        first_token_seconds=use.first_token_seconds,
    )


def queue_positions(runs: Sequence[AgentRun]) -> dict[UUID, int]:
    """Place in the queue of each queued run among `runs`, over all users; 1 is next."""
    if not any(run.state == AgentRun.State.QUEUED for run in runs):
        return {}
    place: Any = Window(RowNumber(), order_by=[F("created_at").asc(), F("id").asc()])
    queued = AgentRun.objects.filter(state=AgentRun.State.QUEUED).annotate(place=place)
    return dict(queued.values_list("pk", "place"))


def open_runs_count(workspace: Workspace | None, user: User | None, since: object = None) -> int:
    """Unfinished runs of a workspace (None: of any) that a user (None: anybody) started."""
    runs = AgentRun.objects.filter(ended_at=None)
    if workspace is not None:
        runs = runs.filter(workspace=workspace)
    if user is not None:
        runs = runs.filter(owner=user.pk)
    return runs.count()

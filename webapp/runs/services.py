"""Writes of runs: asked for, stopped, worked on, told event by event. Only here are events stored."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agent.events import (
    TRANSIENT,
    Answered,
    EndReason,
    Event,
    RunEnded,
    RunStarted,
    Spent,
    TextDelta,
    TurnEnded,
    TurnStarted,
)
from sandbox.cancellation import Cancellation
from sandbox.types import Problem
from trainer import reward
from webapp.accounts.models import User
from webapp.common import idempotency, jobs
from webapp.common.errors import ProblemError
from webapp.common.plain import plain
from webapp.live import publish
from webapp.live.resources import RunCreate
from webapp.live.worker import stopping
from webapp.profiles.selectors import version_named
from webapp.runs import queue, selectors, usage
from webapp.runs.models import AgentRun, RunEvent
from webapp.workspaces import audit
from webapp.workspaces.access import require
from webapp.workspaces.models import QuotaKind, Workspace
from webapp.workspaces.quotas import quota_check
from webapp.workspaces.selectors import workspace_visible_to

logger = logging.getLogger(__name__)

#: Works on a run: its events, in order, the last one `run_ended`. Looks at the cancellation often.
Translate = Callable[[AgentRun, Cancellation], Iterator[Event]]

State = AgentRun.State
INTERRUPTED = "The server stopped during this run. What was done is kept; the run can be started again."

_STATE_AFTER: dict[EndReason, AgentRun.State] = {
    "finished": State.FINISHED,
    "kept": State.FINISHED,
    "turn_limit": State.FINISHED,
    "time_limit": State.FINISHED,
    "token_limit": State.FINISHED,
    "cost_limit": State.FINISHED,
    "model_unavailable": State.FAILED,
    "cancelled": State.CANCELLED,
    "bad_input": State.FAILED,
    "unsupported": State.FAILED,
    "internal_error": State.FAILED,
    "interrupted": State.INTERRUPTED,
}
#: What appending an event may change of its run.
_CHANGED_BY_EVENTS = (
    "state",
    "task_name",
    "backend_used",
    "target",
    "turn_count",
    "best_turn",
    "verdict",
    "score",
    "last_seq",
    "ended_at",
    "changed_at",
    "reason",
    "message",
    "problem",
)


#: Told the key of each run that has ended.
ended: list[Callable[[UUID], None]] = []


class RunHasEnded(Exception):
    """Nothing can be added to a run after its `run_ended`."""


# --- Asked for ----------------------------------------------------------------------------------------------


def agent_run_create(*, user: User, request: RunCreate, idempotency_key: str = "") -> tuple[AgentRun, bool]:
    """The run, and whether it is new: the same key with the same request gives the same run again.

    `request` has its defaults filled in. Raises ProblemError for a key that was used with another request,
    for a quota that is used up, Denied or Http404 for a workspace in which the user may not.
    """
    workspace = workspace_visible_to(user, request.workspace)
    require(user, "run.create", workspace)
    request = request.model_copy(update={"workspace": workspace.slug})
    return idempotency.created_once(
        user=user,
        key=idempotency_key,
        what="runs",
        body=request,
        create=lambda: _run_insert(user=user, workspace=workspace, request=request),
        find=partial(_seen, user),
    )


def _request_of(run: AgentRun) -> RunCreate:
    return RunCreate(
        source=run.source,
        language=run.language,
        filename=run.filename,
        entry=run.entry,
        inputs=run.inputs,
        policy=run.policy,
        backend=run.backend,
        target=run.target,
        turns=run.turn_limit,
        start_from=run.start_from,
        instruction=run.instruction or None,
        model=run.model or None,
        protocol=run.protocol or "auto",
        seconds=run.seconds_limit,
        tokens=run.token_limit,
        cost=run.cost_limit,
    )


def agent_run_rerun(*, user: User, run: AgentRun, idempotency_key: str = "") -> tuple[AgentRun, bool]:
    """A new run of the same request, in the same workspace; else as above."""
    require(user, "run.create", run)
    return idempotency.created_once(
        user=user,
        key=idempotency_key,
        what=f"rerun {run.pk}",
        body=None,
        create=lambda: _run_insert(
            user=user, workspace=run.workspace, request=_request_of(run), rerun_of=run
        ),
        find=partial(_seen, user),
    )


def agent_run_resume(*, user: User, run: AgentRun, idempotency_key: str = "") -> tuple[AgentRun, bool]:
    """A new run that tells the judged turns of this one again and goes on after them; and whether it is new.

    Raises as above.
    """
    require(user, "run.create", run)

    def create() -> AgentRun:
        if not selectors.resumable(run):
            detail = (
                "Only a run of a language model that was broken off (the model stayed away, a limit of time, "
                "tokens or money, stopped, interrupted) can go on."
            )
            raise ProblemError(409, "not-resumable", detail)
        return _run_insert(user=user, workspace=run.workspace, request=_request_of(run), resumes=run)

    return idempotency.created_once(
        user=user,
        key=idempotency_key,
        what=f"resume {run.pk}",
        body=None,
        create=create,
        find=partial(_seen, user),
    )


def _seen(user: User, run_id: str) -> AgentRun | None:
    return selectors.runs_visible_to(user).filter(pk=run_id).first()


def _run_insert(
    *,
    user: User,
    workspace: Workspace,
    request: RunCreate,
    rerun_of: AgentRun | None = None,
    resumes: AgentRun | None = None,
) -> AgentRun:
    # `serializers.run_request` has filled these in.
    assert request.filename is not None
    assert request.language is not None
    assert request.target is not None
    assert request.turns is not None
    before = rerun_of or resumes
    profile = before.profile if before else None
    if before is None and request.profile is not None:
        profile = version_named(workspace, request.profile)
    kinds = [QuotaKind.RUNS_AT_ONCE]
    if request.policy != "builtin":
        kinds.append(QuotaKind.MODEL_TOKENS)
    if request.backend != "emulator":
        kinds.append(QuotaKind.GPU_SECONDS)
    with transaction.atomic():
        quota_check(user=user, workspace=workspace, kinds=kinds)
        run = AgentRun.objects.create(
            owner=user,
            workspace=workspace,
            rerun_of=rerun_of,
            filename=request.filename,
            language=request.language,
            source=request.source,
            entry=request.entry,
            inputs=None if request.inputs is None else request.inputs.model_dump(mode="json"),
            start_from=request.start_from,
            instruction=request.instruction or "",
            policy=request.policy,
            backend=request.backend,
            target=request.target,
            turn_limit=request.turns,
            model=request.model or "",
            protocol=request.protocol if request.policy == "llm" else "",
            seconds_limit=request.seconds,
            token_limit=request.tokens,
            cost_limit=request.cost,
            profile=profile,
            resumes=resumes,
        )
        audit.record(
            "run.create",
            actor=user,
            workspace=workspace,
            thing=run,
            detail={"filename": run.filename, "policy": run.policy, "backend": run.backend},
        )
        transaction.on_commit(partial(_enqueue, run))
        transaction.on_commit(partial(publish.run_changed, workspace.pk, run.pk))
    return run


def _enqueue(run: AgentRun) -> None:
    try:
        queue.run_enqueue(run.pk)
    except queue.QueueUnavailable as error:
        logger.error("run %s could not be queued: %s", run.pk, error)
        agent_run_end(
            run=run,
            reason="internal_error",
            message="The task queue cannot be reached, so the run was not started.",
            problem=Problem(
                kind="queue_unavailable", message="the task queue cannot be reached", hint="start it again"
            ),
        )
        run.refresh_from_db()


# --- Stopped, deleted ---------------------------------------------------------------------------------------


def agent_run_cancel(*, user: User, run: AgentRun) -> AgentRun:
    """Ends a queued run at once, asks a running one to stop, leaves an ended one alone. Raises Denied."""
    require(user, "run.cancel", run)
    with transaction.atomic():
        locked = AgentRun.objects.select_for_update().get(pk=run.pk)
        if locked.state == State.QUEUED:
            agent_run_end(run=locked, reason="cancelled", message="Cancelled before it started.")
        elif locked.state == State.RUNNING:
            locked.state = State.CANCELLING
            locked.save(update_fields=["state", "changed_at"])
            transaction.on_commit(partial(publish.run_changed, locked.workspace_id, locked.pk))
        else:
            return locked
        audit.record("run.cancel", actor=user, workspace=run.workspace_id, thing=run)
    run.refresh_from_db()
    return run


def agent_run_delete(*, user: User, run: AgentRun) -> None:
    """Raises ProblemError while the run has not ended. Who may is asked before: by REST, or by the admin."""
    with transaction.atomic():
        locked = AgentRun.objects.select_for_update().get(pk=run.pk)
        if not locked.has_ended:
            raise ProblemError(409, "run-not-ended", "Only an ended run can be deleted. Stop it first.")
        audit.record("run.delete", actor=user, workspace=locked.workspace_id, thing=locked)
        transaction.on_commit(partial(publish.run_deleted, locked.pk))
        locked.delete()


def agent_run_end(*, run: AgentRun, reason: EndReason, message: str, problem: Problem | None = None) -> None:
    """Ends a run from outside the loop. Does nothing when it has ended already."""
    if (current := AgentRun.objects.filter(pk=run.pk).defer(*selectors.LARGE).first()) is None:
        return
    seconds = (timezone.now() - current.started_at).total_seconds() if current.started_at else 0.0
    event = RunEnded(
        reason=reason,
        message=message,
        best_turn=current.best_turn,
        verdict=current.verdict,
        problem=problem,
        seconds=round(seconds, 3),
    )
    try:
        run_event_append(run=run, event=event)
    except RunHasEnded:
        pass


# --- Worked on ----------------------------------------------------------------------------------------------


def agent_run_claim(*, run_id: UUID) -> AgentRun | None:
    """The run, now this process's to work on; None when it is not waiting (cancelled, claimed before)."""
    run = jobs.claim(AgentRun, run_id)
    if run is not None:
        publish.run_changed(run.workspace_id, run.pk)
    return run


def agent_run_execute(*, run_id: UUID, translate: Translate) -> None:
    """Works on a run until it has ended, one way or another. Never raises for what the run does."""
    if stopping.is_set():
        return  # it stays queued, and is sent again when a worker starts
    run = agent_run_claim(run_id=run_id)
    if run is None:
        return
    cancel = Cancellation()
    try:
        with jobs.working(lambda: translate(run, cancel), cancel) as batches:
            _follow(run, cancel, batches)
    except RunHasEnded:
        logger.warning("run %s was ended from outside while this process worked on it", run.pk)
    except Exception as error:
        logger.exception("run %s failed", run.pk)
        agent_run_end(run=run, reason="internal_error", message=jobs.own_fault(error))


def _follow(run: AgentRun, cancel: Cancellation, batches: Iterator[list[Event]]) -> None:
    """Stores and publishes events as they come, and passes on that the run is to stop."""
    watch = jobs.Watch(run, cancel)
    for batch in batches:
        watch.look()
        if watch.patience_is_over:
            agent_run_interrupt(run=run)
            return
        run_events_send(run=run, events=[_completed(event, watch) for event in batch])
        if batch and isinstance(batch[-1], RunEnded):
            return
    raise RuntimeError("the events stopped without run_ended")


def _completed(event: Event, watch: jobs.Watch) -> Event:
    """The event with what only this side knows: the reward, and that stopping was nobody's wish."""
    if isinstance(event, TurnEnded):
        return event.model_copy(update={"evaluation": reward.attach(event.evaluation)})
    if isinstance(event, RunEnded) and event.reason == "cancelled" and watch.stopped_at is not None:
        return event.model_copy(update={"reason": "interrupted", "message": INTERRUPTED})
    return event


def agent_runs_reconcile() -> int:
    """Marks runs as interrupted whose worker is gone. Returns how many."""
    lost = jobs.lost(AgentRun.objects.defer(*selectors.LARGE))
    for run in lost:
        agent_run_interrupt(run=run)
    return len(lost)


def agent_run_interrupt(*, run: AgentRun) -> None:
    agent_run_end(run=run, reason="interrupted", message=INTERRUPTED)


def agent_runs_requeue() -> int:
    """Sends every waiting run to the task queue again. Returns how many."""
    return jobs.requeue(AgentRun.objects.defer(*selectors.LARGE), _enqueue)


# --- Told event by event ------------------------------------------------------------------------------------


def run_events_send(*, run: AgentRun, events: Sequence[Event]) -> None:
    """Stores and publishes events, in order; those that are not to be stored are only published."""
    for transient, group in groupby(events, key=lambda event: event.type in TRANSIENT):
        if transient:
            for event in group:
                if isinstance(event, TextDelta):
                    publish.run_delta(run.pk, event)
        else:
            run_events_append(run=run, events=list(group))


def run_event_append(*, run: AgentRun, event: Event) -> RunEvent:
    """One event; see `run_events_append`."""
    return run_events_append(run=run, events=[event])[0]


def run_events_append(*, run: AgentRun, events: Sequence[Event]) -> list[RunEvent]:
    """Stores events under the run's next numbers and copies into the run what they say of it.

    All or none. Raises RunHasEnded after `run_ended`, and when the run is gone. Safe from several processes.
    """
    if any(event.type in TRANSIENT for event in events):
        raise ValueError(f"{TRANSIENT} are never stored")
    now = timezone.now()
    payloads = [plain(event.model_dump(mode="json")) for event in events]
    with transaction.atomic():
        # The row lock (SQLite: the database's write lock) is what makes the numbers unique and without gaps.
        locked = AgentRun.objects.select_for_update().defer(*selectors.LARGE).filter(pk=run.pk).first()
        if locked is None:
            raise RunHasEnded
        records = []
        for event, payload in zip(events, payloads, strict=True):
            if locked.has_ended:
                raise RunHasEnded
            locked.last_seq += 1
            records.append(
                RunEvent(run=locked, seq=locked.last_seq, at=now, type=event.type, payload=payload)
            )
            _apply(locked, event)
        RunEvent.objects.bulk_create(records)
        locked.save(update_fields=_CHANGED_BY_EVENTS)
        if locked.has_ended:
            jobs.tell(ended, locked.pk)
        transaction.on_commit(partial(publish.run_reached, locked.pk, locked.last_seq))
        if any(isinstance(event, RunStarted | TurnStarted | TurnEnded | RunEnded) for event in events):
            transaction.on_commit(partial(publish.run_changed, locked.workspace_id, locked.pk))
    return records


def _apply(run: AgentRun, event: Event) -> None:
    """What an event says of its run as a whole."""
    match event:
        case RunStarted():
            run.task_name, run.backend_used, run.target = event.task.name[:200], event.backend, event.target
        case TurnStarted():
            run.turn_count = max(run.turn_count, event.turn)
        case TurnEnded():
            usage.book_gpu(run, event)
            run.best_turn = event.best_turn
            if event.best_turn is None:
                run.verdict = event.evaluation.verdict
            elif event.best_turn == event.turn:
                run.verdict, run.score = event.evaluation.verdict, event.evaluation.score
        case Spent() | Answered():
            usage.book(run, event)
        case RunEnded():
            run.state = _STATE_AFTER[event.reason]
            run.reason, run.message, run.ended_at = event.reason, event.message, timezone.now()
            run.problem = None if event.problem is None else plain(event.problem.model_dump(mode="json"))
        case _:
            pass

"""Writes of revisions: made when they are first named, judged once, never changed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from agent.trajectory import Turn
from sandbox.tasks.base import Inputs
from sandbox.types import Evaluation
from trainer.reward import reference_speedup
from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.common.plain import plain
from webapp.evaluations.models import EvaluationRecord
from webapp.evaluations.services import evaluations_insert
from webapp.live.resources import EvaluationItem
from webapp.reviews.changes import changing, say
from webapp.reviews.models import AgentTask, Chain, ReviewRequest, Revision
from webapp.reviews.sources import material_sha256, sha256
from webapp.runs.models import AgentRun
from webapp.runs.selectors import run_trajectory

#: What a chain keeps of the run or the evaluation that it began with.
_TASK = ("filename", "language", "source", "entry", "inputs", "backend", "target")


def revision_of_turn(*, run: AgentRun, turn: int | None) -> Revision:
    """A run's turn as a revision; without `turn` the best one's. The turns before it become revisions too.

    Turns are read from the run's events, which never change, so it does not matter when this happens. Raises
    ProblemError for a turn that has no candidate or is still being judged.
    """
    wanted = turn if turn is not None else run.best_turn
    if wanted is None:
        detail = "No turn of this run has passed yet, so there is no best one; name one as turn."
        raise ProblemError(409, "no-candidate", detail)
    turns = {it.number: it for it in run_trajectory(run).turns}
    named = turns.get(wanted)
    if named is None or not named.source:
        raise ProblemError(409, "no-candidate", f"Turn {wanted} of this run has no candidate.")
    if named.evaluation is None:
        raise ProblemError(409, "turn-not-ended", f"Turn {wanted} is still being judged. Wait for its end.")
    with transaction.atomic():
        locked = AgentRun.objects.select_for_update().select_related("workspace").get(pk=run.pk)
        chain = _chain_of(locked)
        made = {it.turn: it for it in Revision.objects.filter(run=locked).defer("source", "evaluation")}
        for number in sorted(turns):
            it = turns[number]
            if number <= wanted and number not in made and it.source and it.evaluation is not None:
                parent = made.get(it.base_turn)
                made[number] = _turn_insert(chain=chain, run=locked, turn=it, parent=parent)
    return made[wanted]


def revision_of_evaluation(*, record: EvaluationRecord) -> Revision:
    """The candidate that was given to be judged, as a revision in a chain of its own; the same one each time.

    Raises ProblemError while it has no evaluation.
    """
    with transaction.atomic():
        locked = EvaluationRecord.objects.select_for_update().get(pk=record.pk)
        made = Revision.objects.filter(judgement=locked, origin=Revision.Origin.UPLOAD).first()
        if made is not None:
            return made
        if locked.evaluation is None:
            detail = "This evaluation has no result: it has not ended, or could not be judged."
            raise ProblemError(409, "not-judged", detail)
        chain = Chain.objects.create(
            workspace_id=locked.workspace_id,
            owner_id=locked.owner_id,
            **{name: getattr(locked, name) for name in _TASK},
            policy="builtin",
        )
        return revision_insert(
            chain=chain,
            source=locked.candidate,
            origin=Revision.Origin.UPLOAD,
            author=locked.owner,
            parent=None,
            judged=Evaluation.model_validate(locked.evaluation),
            judgement=locked,
        )


def revision_insert(
    *,
    chain: Chain,
    source: str,
    origin: Revision.Origin,
    author: User | None,
    parent: Revision | None,
    credited: Collection[User] = (),
    run: AgentRun | None = None,
    turn: int | None = None,
    judged: Evaluation | None = None,
    judgement: EvaluationRecord | None = None,
) -> Revision:
    """Adds to a chain. Call it in a transaction; the chain is locked until its end."""
    Chain.objects.select_for_update().get(pk=chain.pk)
    last = Revision.objects.filter(chain=chain).aggregate(last=Max("number"))["last"] or 0
    said: dict[str, Any] = {} if judged is None else said_by(judged)
    revision = Revision.objects.create(
        workspace_id=chain.workspace_id,
        chain=chain,
        number=last + 1,
        origin=origin,
        run=run,
        turn=turn,
        parent=parent,
        author=author,
        source=source,
        source_sha256=sha256(source),
        material_sha256=material_sha256(source),
        judgement=judgement,
        **said,
    )
    revision.credited.set(credited)
    return revision


def said_by(evaluation: Evaluation) -> dict[str, Any]:
    """What a revision keeps of an evaluation."""
    return {
        "state": Revision.State.JUDGED,
        "evaluation": plain(evaluation.model_dump(mode="json")),
        "verdict": evaluation.verdict,
        "score": evaluation.score,
        "speedup": reference_speedup(evaluation.timing),
        "message": plain(evaluation.message),
    }


def source_checked(source: str) -> str:
    """Raises ProblemError for what is no text or too long."""
    size = len(source.encode())
    if size > settings.SOURCE_BYTES_MAX:
        limit = settings.SOURCE_BYTES_MAX
        raise ProblemError(413, "too-large", f"source: is {size} bytes; at most {limit} are taken")
    if not source.strip():
        raise ProblemError(400, "invalid", "source: is empty")
    return source


def _turn_insert(*, chain: Chain, run: AgentRun, turn: Turn, parent: Revision | None) -> Revision:
    return revision_insert(
        chain=chain,
        source=turn.source,
        origin=Revision.Origin.TURN,
        author=None,
        parent=parent,
        run=run,
        turn=turn.number,
        judged=turn.evaluation,
    )


def _chain_of(run: AgentRun) -> Chain:
    """The chain in which the run's turns stand: where it went on from a review, that one's."""
    if (made := Revision.objects.filter(run=run).select_related("chain").first()) is not None:
        return made.chain
    task = AgentTask.objects.filter(run=run).select_related("thread__request__head__chain").first()
    if task is not None:
        return task.thread.request.head.chain
    return Chain.objects.create(
        workspace=run.workspace,
        owner=run.owner,
        **{name: getattr(run, name) for name in _TASK},
        policy=run.policy,
        model=run.model,
    )


# --- Judged -------------------------------------------------------------------------------------------------


def judge_when_needed(revision: Revision, *, user: User) -> None:
    """Gives a revision that nobody has judged to the same queue as every evaluation. In a transaction."""
    if revision.state == Revision.State.JUDGED and revision.verdict is not None:
        return
    chain = revision.chain
    item = EvaluationItem(
        source=chain.source,
        filename=chain.filename,
        language=chain.language,
        entry=chain.entry,
        inputs=None if chain.inputs is None else Inputs.model_validate(chain.inputs),
        candidate=revision.source,
        backend=chain.backend,
        target=chain.target,
    )
    [record] = evaluations_insert(user=user, workspace=chain.workspace, items=[item])
    waiting = Revision.objects.filter(pk=revision.pk)
    waiting.update(judgement=record, state=Revision.State.PENDING, message="")


def revision_judge_again(revision: Revision, *, user: User) -> None:
    """Where a judgement did not come to an end. Does nothing while there is one, or a verdict."""
    with transaction.atomic():
        Chain.objects.select_for_update().get(pk=revision.chain_id)
        now = Revision.objects.select_related("chain__workspace").get(pk=revision.pk)
        if now.state == Revision.State.JUDGED:
            judge_when_needed(now, user=user)


def revision_judged(evaluation_id: UUID) -> None:
    """A judgement has ended: its word becomes the revision's, once."""
    waiting = Revision.objects.filter(judgement=evaluation_id).exclude(state=Revision.State.JUDGED)
    if not waiting.exists():
        return
    record = EvaluationRecord.objects.get(pk=evaluation_id)
    said: dict[str, Any]
    if record.evaluation is not None:
        said = said_by(Evaluation.model_validate(record.evaluation))
    else:
        message = record.message or "It could not be judged."
        said = {"state": Revision.State.JUDGED, "message": message}
    for revision in waiting.defer("source", "evaluation"):
        Revision.objects.filter(pk=revision.pk).update(**said)
        for request in ReviewRequest.objects.filter(head=revision):
            with changing(request, ended=True) as locked:
                about = {"revision": str(revision.pk), "verdict": said.get("verdict")}
                say(locked, "review_request.revision_judged", about)


def revisions_reconcile() -> int:
    """Takes in judgements that ended, or were deleted, while nobody listened. Returns how many."""
    waiting = Revision.objects.exclude(state=Revision.State.JUDGED).defer("source", "evaluation")
    missed = list(waiting.filter(judgement__ended_at__isnull=False).values_list("judgement", flat=True))
    for evaluation_id in missed:
        revision_judged(evaluation_id)
    gone = waiting.filter(judgement=None, origin__in=[Revision.Origin.EDIT, Revision.Origin.SUGGESTION])
    return len(missed) + gone.update(
        state=Revision.State.JUDGED, message="Its judgement was deleted. Ask for another."
    )

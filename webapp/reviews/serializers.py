"""Records become the data that goes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox.types import Evaluation
from webapp.accounts.models import User
from webapp.common.jobs import Job
from webapp.live import resources_reviews as out
from webapp.reviews import models, selectors
from webapp.reviews.anchoring import Range, lines_of, quoted
from webapp.reviews.checklist import checklist
from webapp.reviews.diffs import Whitespace, hunks, metric_deltas
from webapp.reviews.placing import is_on_base, place_of
from webapp.reviews.rights import rights

GONE = "deleted user"


def person(user: User | None) -> out.Person:
    return out.Person(username=GONE if user is None else user.get_username())


# --- Revisions ----------------------------------------------------------------------------------------------


def revision_summary(revision: models.Revision) -> out.RevisionSummary:
    return out.RevisionSummary(**_revision(revision))


def revision_detail(revision: models.Revision) -> out.Revision:
    chain = revision.chain
    return out.Revision(
        **_revision(revision),
        source=revision.source,
        evaluation=evaluation_of(revision),
        reference=out.ReferenceSource(
            filename=chain.filename,
            language=chain.language,
            source=chain.source,
        ),
    )


def evaluation_of(revision: models.Revision) -> Evaluation | None:
    return None if revision.evaluation is None else Evaluation.model_validate(revision.evaluation)


def _revision(revision: models.Revision) -> dict[str, Any]:
    by_agent = revision.origin == models.Revision.Origin.TURN
    return {
        "id": revision.pk,
        "number": revision.number,
        "origin": revision.origin,
        "run": revision.run_id,
        "turn": revision.turn,
        "parent": revision.parent_id,
        "author": None if by_agent else person(revision.author),
        "credited": sorted(user.get_username() for user in revision.credited.all()),
        "source_sha256": revision.source_sha256,
        "filename": revision.chain.filename,
        "state": _revision_state(revision),
        "verdict": revision.verdict,
        "score": revision.score,
        "speedup": revision.speedup,
        "message": revision.message,
        "created_at": revision.created_at,
    }


def _revision_state(revision: models.Revision) -> str:
    work = revision.judgement if revision.state != models.Revision.State.JUDGED else None
    if work is not None and work.state in (Job.State.RUNNING, Job.State.CANCELLING):
        return models.Revision.State.JUDGING
    return revision.state


def revision_diff(
    old: models.Revision | None, new: models.Revision, *, whitespace: Whitespace, context: int | None
) -> out.RevisionDiff:
    before = "" if old is None else old.source
    parts = hunks(before, new.source, whitespace=whitespace, context=context)
    lines = [line for part in parts for line in part.lines]
    return out.RevisionDiff(
        old=None if old is None else old.pk,
        new=new.pk,
        whitespace=whitespace,
        hunks=parts,
        old_line_count=_line_count(before),
        new_line_count=_line_count(new.source),
        added=sum(line.kind == "added" for line in lines),
        removed=sum(line.kind == "removed" for line in lines),
        material=old is None or old.material_sha256 != new.material_sha256,
        metrics=metric_deltas(None if old is None else evaluation_of(old), evaluation_of(new)),
    )


def _line_count(source: str) -> int:
    return len(lines_of(source)) if source else 0


# --- Requests -----------------------------------------------------------------------------------------------


def request_summaries(requests: Sequence[models.ReviewRequest]) -> list[out.ReviewRequestSummary]:
    """Of requests read by `selectors.listed`."""
    return [
        out.ReviewRequestSummary(**_request(it), head=revision_summary(it.head), unresolved=it.unresolved)  # type: ignore[attr-defined]
        for it in requests
    ]


def request_detail(request: models.ReviewRequest, user: User) -> out.ReviewRequestDetail:
    """As it stands now, with what `user` may do."""
    entry = getattr(request, "library_entry", None)
    return out.ReviewRequestDetail(
        **_request(request),
        description=request.description,
        head=revision_detail(request.head),
        base=None if request.base is None else revision_detail(request.base),
        revisions=[revision_summary(it) for it in selectors.heads_of(request)],
        turns=[revision_summary(it) for it in selectors.turns_of(request)],
        rule=out.ApprovalRule(**{name: getattr(request, name) for name in out.ApprovalRule.model_fields}),
        checklist=checklist(request),
        can=rights(request, user),
        unresolved=selectors.unresolved_count(request),
        library_entry=None if entry is None else entry.pk,
    )


def _request(request: models.ReviewRequest) -> dict[str, Any]:
    return {
        "id": request.pk,
        "workspace": request.workspace.slug,
        "number": request.number,
        "title": request.title,
        "state": request.state,
        "author": person(request.author),
        "tags": request.tags,
        "reviewers": [_reviewer(it) for it in request.reviewers.all()],
        "created_at": request.created_at,
        "changed_at": request.changed_at,
        "version": request.version,
    }


def _reviewer(reviewer: models.Reviewer) -> out.Reviewer:
    return out.Reviewer(
        username=reviewer.user.get_username(),
        state=reviewer.state,
        asked=reviewer.asked,
        revision=reviewer.revision_id,
    )


# --- What is said -------------------------------------------------------------------------------------------


def thread_detail(request: models.ReviewRequest, thread: models.Thread) -> out.ReviewThread:
    """`thread` as `selectors.threads_visible_to` reads it."""
    return out.ReviewThread(
        id=thread.pk,
        request=thread.request_id,
        revision=thread.revision_id,
        anchor=out.Anchor(
            revision=thread.revision_id,
            side=thread.side,
            line=thread.line,
            end_line=thread.end_line,
            quoted=thread.quoted,
            context_hash=thread.context_hash,
        ),
        place=place_of(request, thread),
        gone=thread.gone,
        moved=_moved(request, thread),
        resolved=thread.resolved,
        resolved_by=person(thread.resolved_by) if thread.resolved else None,
        comments=[comment_detail(it) for it in thread.comments.all()],
        evidence=None if thread.evidence is None else out.Evidence(**thread.evidence),
        runs=[it.run_id for it in thread.agent_tasks.all()],
        created_at=thread.created_at,
    )


def _moved(request: models.ReviewRequest, thread: models.Thread) -> bool:
    if thread.gone or is_on_base(request, thread) or thread.placed_on_id == thread.revision_id:
        return False
    if (thread.place_line, thread.place_end_line) != (thread.line, thread.end_line):
        return True
    return quoted(request.head.source, Range(thread.line, thread.end_line)) != thread.quoted


def comment_detail(comment: models.Comment) -> out.ReviewComment:
    return out.ReviewComment(
        id=comment.pk,
        thread=comment.thread_id,
        author=None if comment.by_agent else person(comment.author),
        body=comment.body,
        suggestion=None if comment.suggestion is None else out.Suggestion(**comment.suggestion),
        revision=comment.revision_id,
        applied_in=comment.applied_in_id,
        draft=comment.draft,
        deleted=comment.deleted,
        created_at=comment.created_at,
        edited_at=comment.edited_at,
    )


def submission_detail(submission: models.Submission, head: models.Revision) -> out.ReviewSubmission:
    """As `selectors.submissions_of` reads it."""
    approval = submission.verdict == "approve"
    return out.ReviewSubmission(
        id=submission.pk,
        author=person(submission.author),
        verdict=submission.verdict,
        body=submission.body,
        revision=submission.revision_id,
        stale=approval and submission.revision.material_sha256 != head.material_sha256,
        comments=submission.said,  # type: ignore[attr-defined]
        created_at=submission.created_at,
    )


def rule_item(rule: models.ReviewRule) -> out.ReviewRuleItem:
    return out.ReviewRuleItem(
        id=rule.pk,
        path_glob=rule.path_glob,
        tag=rule.tag,
        reviewers=sorted(user.get_username() for user in rule.reviewers.all()),
    )


def notification_item(notification: models.Notification) -> out.NotificationItem:
    return out.NotificationItem(
        id=notification.pk,
        kind=notification.kind,
        request=notification.request_id,
        request_title=str(notification.request),
        thread=notification.thread_id,
        actor=None if notification.actor is None else person(notification.actor),
        text=notification.text,
        read=notification.read_at is not None,
        created_at=notification.created_at,
    )

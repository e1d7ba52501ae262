"""Writes of threads and comments: begun at lines, answered, edited, resolved."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from sandbox.types import Evaluation
from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.live.resources_reviews import (
    AnchorInput,
    CommentCreate,
    CommentPatch,
    Evidence,
    Place,
    Suggestion,
    ThreadCreate,
)
from webapp.reviews import notifications, placing
from webapp.reviews.anchoring import Range, context_hash, found_in, lines_of, quoted
from webapp.reviews.changes import changing, code_moved, locked_request, say
from webapp.reviews.diffs import metrics_of
from webapp.reviews.models import Comment, ReviewRequest, Revision, Thread
from webapp.reviews.selectors import belongs
from webapp.workspaces import audit
from webapp.workspaces.access import require

BODY_MAX = 50_000


def thread_create(*, user: User, request: ReviewRequest, data: ThreadCreate) -> Thread:
    """Begun at lines of a revision. Raises ProblemError "code-moved" where the head has other lines there."""
    require(user, "review.comment", request)
    body_checked(data.body, data.suggestion)
    with transaction.atomic():
        locked = locked_request(request)
        revision, lines = _anchored(locked, data.anchor)
        suggestion = suggestion_checked(revision, data.suggestion, side=data.anchor.side)
        thread = Thread(
            workspace=locked.workspace,
            request=locked,
            author=user,
            revision=revision,
            side=data.anchor.side,
            line=lines.line,
            end_line=lines.end_line,
            quoted=quoted(revision.source, lines),
            context_hash=context_hash(revision.source, lines),
            evidence=None if data.evidence is None else _evidence(locked.head, data.evidence),
            placed_on=revision,
            place_line=lines.line,
            place_end_line=lines.end_line,
        )
        _place(locked, thread, carry=data.carry)
        thread.save()
        comment = Comment.objects.create(
            workspace=locked.workspace,
            thread=thread,
            author=user,
            revision=revision,
            body=data.body,
            suggestion=suggestion,
            draft=data.draft,
        )
        if not data.draft:
            _published(locked, comment, user)
    return thread


def _anchored(request: ReviewRequest, anchor: AnchorInput) -> tuple[Revision, Range]:
    """The revision with its lines, as the page says that it shows them."""
    revision = belongs(request, anchor.revision)
    if revision is None:
        raise ProblemError(400, "invalid", "anchor.revision: is none of this request's revisions")
    lines = placing.range_of(revision, anchor)
    if lines is None:
        last = len(lines_of(revision.source))
        raise ProblemError(400, "invalid", f"anchor: the revision has lines 1 to {last}, in ascending order")
    if anchor.quoted is not None and _plain(anchor.quoted) != _plain(quoted(revision.source, lines)):
        raise ProblemError(400, "invalid", "anchor.quoted: is not what the revision says in these lines")
    return revision, lines


def _plain(text: str) -> list[str]:
    return [line.rstrip() for line in text.replace("\r\n", "\n").rstrip("\n").split("\n")]


def _place(request: ReviewRequest, thread: Thread, *, carry: bool) -> None:
    """Where the lines are on the head. Raises ProblemError when they have moved, unless `carry`."""
    head = request.head
    if thread.revision_id == head.pk or placing.is_on_base(request, thread):
        return
    place = found_in(thread.revision.source, Range(thread.line, thread.end_line), head.source)
    if place is not None:
        same_lines = (place.line, place.end_line) == (thread.line, thread.end_line)
        same_text = quoted(head.source, place) == thread.quoted
        thread.placed_on, thread.place_line, thread.place_end_line = head, place.line, place.end_line
        if same_lines and same_text:
            return
    thread.gone = place is None
    if carry:
        return
    if place is None:
        raise code_moved(request, None, f"These lines are gone from the head, revision {head.number}.")
    where = Place(side="new", line=place.line, end_line=place.end_line)
    detail = f"The code has moved: on the head, revision {head.number}, it is at line {place.line}."
    raise code_moved(request, where, detail)


def comment_create(*, user: User, thread: Thread, data: CommentCreate) -> Comment:
    """An answer."""
    require(user, "review.comment", thread)
    body_checked(data.body, data.suggestion)
    with transaction.atomic():
        locked = locked_request(thread.request)
        head = locked.head
        comment = Comment.objects.create(
            workspace=locked.workspace,
            thread=thread,
            author=user,
            revision=head,
            body=data.body,
            suggestion=suggestion_checked(head, data.suggestion, side="new"),
            draft=data.draft,
        )
        if not data.draft:
            _published(locked, comment, user)
    return comment


def _published(request: ReviewRequest, comment: Comment, user: User) -> None:
    with changing(request, ended=True) as locked:
        notifications.comments_told(locked, [comment], actor=user)
        about = {"thread": str(comment.thread_id), "comment": str(comment.pk)}
        audit.record(
            "review.comment", actor=user, workspace=locked.workspace, thing=comment.thread, detail=about
        )
        say(locked, "review_request.commented", about)


def comment_patch(*, user: User, comment: Comment, patch: CommentPatch) -> Comment:
    """One's own, also after it was published: then it says that it was edited."""
    _own(user, comment)
    with transaction.atomic():
        locked = locked_request(comment.thread.request)
        comment = Comment.objects.select_for_update().select_related("revision", "thread").get(pk=comment.pk)
        if comment.deleted:
            raise ProblemError(409, "comment-deleted", "This comment is deleted.")
        if "suggestion" in patch.model_fields_set:
            if comment.applied_in_id is not None:
                raise ProblemError(409, "suggestion-applied", "This suggestion is in a revision already.")
            side = comment.thread.side if comment.revision_id == comment.thread.revision_id else "new"
            comment.suggestion = suggestion_checked(comment.revision, patch.suggestion, side=side)
        if patch.body is not None:
            comment.body = patch.body
        body_checked(comment.body, comment.suggestion)
        if not comment.draft:
            comment.edited_at = timezone.now()
        comment.save()
        if not comment.draft:
            _note(locked, comment, user, {"edited": True})
    return comment


def comment_delete(*, user: User, comment: Comment) -> None:
    """A draft is gone; of what others have read it stays visible that there was something."""
    _own(user, comment)
    with transaction.atomic():
        locked = locked_request(comment.thread.request)
        if comment.draft:
            thread = comment.thread
            comment.delete()
            if not thread.comments.exists():
                thread.delete()
            return
        if comment.applied_in_id is not None:
            raise ProblemError(409, "suggestion-applied", "This suggestion is in a revision already.")
        Comment.objects.filter(pk=comment.pk).update(body="", suggestion=None, deleted=True)
        _note(locked, comment, user, {"deleted": True})


def _note(request: ReviewRequest, comment: Comment, user: User, detail: dict[str, bool]) -> None:
    """What became of a comment that others have read is a change of its request, and in the audit log."""
    with changing(request, ended=True) as changed:
        audit.record("review.comment", actor=user, workspace=changed.workspace, thing=comment, detail=detail)


def _own(user: User, comment: Comment) -> None:
    require(user, "review.comment", comment)
    if comment.author_id != user.pk:
        raise ProblemError(403, "not-allowed", "Only its author changes a comment.")


def thread_resolve(*, user: User, thread: Thread, resolved: bool) -> Thread:
    """Resolves or reopens. Does nothing to one that is so already."""
    require(user, "review.comment", thread)
    if not thread.comments.filter(draft=False).exists():
        raise ProblemError(409, "draft", "This thread is a draft: nobody but you sees it. Delete it instead.")
    with changing(thread.request, ended=True) as locked:
        changed = Thread.objects.filter(pk=thread.pk, resolved=not resolved).update(
            resolved=resolved, resolved_by=user if resolved else None
        )
        if changed:
            action = "review.resolve"
            detail = {"resolved": resolved}
            audit.record(action, actor=user, workspace=locked.workspace, thing=thread, detail=detail)
            event = "review_request.thread_resolved" if resolved else "review_request.thread_reopened"
            say(locked, event, {"thread": str(thread.pk)})
    return thread


# --- Checked ------------------------------------------------------------------------------------------------


def body_checked(body: str, suggestion: object) -> None:
    if len(body) > BODY_MAX:
        raise ProblemError(400, "invalid", f"body: takes text of at most {BODY_MAX} characters")
    if not body.strip() and suggestion is None:
        raise ProblemError(400, "invalid", "body: is empty; write something, or suggest a change")


def suggestion_checked(
    revision: Revision, suggestion: Suggestion | None, *, side: str
) -> dict[str, object] | None:
    """As it is stored. Raises ProblemError for lines that are not there or the base's."""
    if suggestion is None:
        return None
    if side == "old":
        raise ProblemError(
            400, "invalid", "suggestion: the old side cannot be changed; suggest on the new one"
        )
    last = len(lines_of(revision.source))
    if not suggestion.line <= suggestion.end_line <= last:
        raise ProblemError(
            400, "invalid", f"suggestion: the revision has lines 1 to {last}, in ascending order"
        )
    if len(suggestion.text) > 200_000:
        raise ProblemError(400, "invalid", "suggestion.text: takes text of at most 200000 characters")
    return suggestion.model_dump()


def _evidence(head: Revision, wanted: Evidence) -> dict[str, str]:
    """With the value that the judge found. Raises ProblemError for what the evaluation does not hold."""
    evaluation = None if head.evaluation is None else Evaluation.model_validate(head.evaluation)
    if wanted.kind == "metric":
        values = {name: str(value) for name, value in metrics_of(evaluation).items()}
    else:
        checks = (
            [] if evaluation is None or evaluation.verification is None else evaluation.verification.checks
        )
        values = {it.name: "passed" if it.passed else f"failed: {it.detail}" for it in checks}
    if wanted.name not in values:
        known = ", ".join(values) or "none, since it is not judged"
        raise ProblemError(400, "invalid", f"evidence.name: the head's evaluation has {known}")
    return {"kind": wanted.kind, "name": wanted.name, "value": values[wanted.name][:500]}

"""Writes of reviews: a reviewer's drafts, sent as one with a verdict."""

from __future__ import annotations

from django.utils import timezone

from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.live.resources_reviews import ReviewVerdict, SubmissionCreate
from webapp.reviews import notifications
from webapp.reviews.changes import changing, head_expected, say
from webapp.reviews.models import Comment, Reviewer, ReviewRequest, Submission
from webapp.reviews.selectors import authors_of
from webapp.reviews.threads import BODY_MAX
from webapp.workspaces import audit
from webapp.workspaces.access import require

_SAID: dict[ReviewVerdict, str] = {
    "comment": "commented on",
    "approve": "approved",
    "request_changes": "asked for changes of",
}
_STATES: dict[ReviewVerdict, str] = {
    "approve": Reviewer.State.APPROVED,
    "request_changes": Reviewer.State.CHANGES_REQUESTED,
}


def submission_create(*, user: User, request: ReviewRequest, data: SubmissionCreate) -> Submission:
    """Publishes the user's drafts. Raises ProblemError "code-moved" when the head is another by now,
    "own-work" for a verdict on what one has a hand in."""
    require(user, "review.comment" if data.verdict == "comment" else "review.write", request)
    if len(data.body) > BODY_MAX:
        raise ProblemError(400, "invalid", f"body: takes text of at most {BODY_MAX} characters")
    with changing(request) as locked:
        head_expected(locked, data.revision)
        if data.verdict != "comment" and user.pk in authors_of(locked):
            detail = (
                "Nobody decides over their own work, and some of this is yours: the request, its run, a "
                "revision or a suggestion in one. You can comment."
            )
            raise ProblemError(403, "own-work", detail)
        drafts = list(
            Comment.objects.filter(thread__request=locked, author=user, draft=True).select_related("thread")
        )
        if data.verdict == "comment" and not drafts and not data.body.strip():
            raise ProblemError(400, "invalid", "There is nothing to send: no draft, and no text.")
        made = Submission.objects.create(
            request=locked, author=user, revision=locked.head, verdict=data.verdict, body=data.body
        )
        now = timezone.now()
        keys = [it.pk for it in drafts]
        Comment.objects.filter(pk__in=keys).update(draft=False, submission=made, created_at=now)
        _reviewer_set(locked, user, data.verdict)
        _tell(locked, made, drafts, user)
    return made


def _reviewer_set(request: ReviewRequest, user: User, verdict: ReviewVerdict) -> None:
    """A comment takes back neither an approval nor a wish for changes, but for one who has a hand in the code
    by now: they cannot approve, so this is how they say that they are content."""
    if verdict == "comment" and user.pk in authors_of(request):
        wanting = request.reviewers.filter(user=user, state=Reviewer.State.CHANGES_REQUESTED)
        wanting.update(state=Reviewer.State.COMMENTED, revision=request.head, at=timezone.now())
        return
    reviewer, _ = Reviewer.objects.get_or_create(request=request, user=user, defaults={"asked": False})
    if verdict != "comment":
        reviewer.state = _STATES[verdict]
    elif reviewer.state == Reviewer.State.WAITING:
        reviewer.state = Reviewer.State.COMMENTED
    else:
        return
    reviewer.revision, reviewer.at = request.head, timezone.now()
    reviewer.save()


def _tell(request: ReviewRequest, made: Submission, drafts: list[Comment], user: User) -> None:
    verdict: ReviewVerdict = made.verdict  # type: ignore[assignment]
    about = {"submission": str(made.pk), "verdict": verdict, "revision": str(made.revision_id)}
    audit.record("review.write", actor=user, workspace=request.workspace, thing=request, detail=about)
    say(request, "review_request.reviewed", about)
    text = f"{user.get_username()} {_SAID[verdict]} {request}"
    notifications.notify(request, notifications.everybody(request), kind="submission", text=text, actor=user)
    for comment in drafts:
        mentioned = notifications.mentioned_in(comment.body)
        told = f"{user.get_username()} mentioned you in {request}"
        notifications.notify(request, mentioned, kind="mention", text=told, actor=user, thread=comment.thread)
    if mentioned := notifications.mentioned_in(made.body):
        told = f"{user.get_username()} mentioned you in {request}"
        notifications.notify(request, mentioned, kind="mention", text=told, actor=user)

"""What a request still lacks, in the words that the page shows."""

from __future__ import annotations

from django.db.models import QuerySet

from webapp.live.resources_reviews import CheckItem
from webapp.reviews.models import Reviewer, ReviewRequest, Revision
from webapp.reviews.selectors import authors_of, unresolved_count

_NOT_JUDGED = "The judge has not said anything yet."


def checklist(request: ReviewRequest) -> list[CheckItem]:
    """Every condition of the approval rule, as it stands now."""
    head = request.head
    reviewers = list(members_among(request).select_related("user"))
    items = [_approvals(request, reviewers), _changes_requested(reviewers)]
    if request.no_unresolved:
        count = unresolved_count(request)
        detail = f"{count} unresolved thread{'s' * (count != 1)}" if count else "Every thread is resolved."
        items.append(CheckItem(name="no_unresolved", ok=not count, detail=detail))
    if request.verdict_passed:
        said = _NOT_JUDGED if head.verdict is None else f"The judge's verdict is {head.verdict}."
        items.append(
            CheckItem(name="verdict_passed", ok=head.verdict == "passed", detail=head.message or said)
        )
    if request.score_at_least is not None:
        items.append(_score(head, request.score_at_least))
    if request.speedup_at_least is not None:
        items.append(_speedup(head, request.speedup_at_least))
    return items


def members_among(request: ReviewRequest) -> QuerySet[Reviewer]:
    """The reviewers who are members still: who has left neither approves nor holds up."""
    return request.reviewers.filter(user__is_active=True, user__memberships__workspace=request.workspace_id)


def approved_by(request: ReviewRequest) -> int:
    """Approvals that count: given for what the code still is, and by none of its authors."""
    valid = members_among(request).filter(state=Reviewer.State.APPROVED)
    return valid.exclude(user__in=authors_of(request)).count()


def _approvals(request: ReviewRequest, reviewers: list[Reviewer]) -> CheckItem:
    count, needed = approved_by(request), request.approvals
    detail = f"{count} of {needed} approvals"
    if stale := [it.user.get_username() for it in reviewers if it.state == Reviewer.State.STALE]:
        detail += f"; the code has changed since {', '.join(stale)} approved"
    return CheckItem(name="approvals", ok=count >= needed, detail=detail)


def _changes_requested(reviewers: list[Reviewer]) -> CheckItem:
    wanting = [it.user.get_username() for it in reviewers if it.state == Reviewer.State.CHANGES_REQUESTED]
    detail = f"{', '.join(wanting)} asked for changes" if wanting else "Nobody waits for changes."
    return CheckItem(name="no_changes_requested", ok=not wanting, detail=detail)


def _score(head: Revision, wanted: float) -> CheckItem:
    if head.score is None:
        said = _NOT_JUDGED if head.verdict is None else "It did not pass, so it has no score."
        return CheckItem(name="score", ok=False, detail=said)
    detail = f"structural score {head.score:.1f}, at least {wanted:g} wanted"
    return CheckItem(name="score", ok=head.score >= wanted, detail=detail)


def _speedup(head: Revision, wanted: float) -> CheckItem:
    if head.speedup is None:
        said = (
            _NOT_JUDGED if head.verdict is None else "It was not timed: a speedup is only measured on a GPU."
        )
        return CheckItem(name="speedup", ok=False, detail=said)
    detail = f"speedup {head.speedup:.2f}, at least {wanted:g} wanted"
    return CheckItem(name="speedup", ok=head.speedup >= wanted, detail=detail)

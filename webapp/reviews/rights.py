"""What somebody may do with a request now, and why not what they may not."""

from __future__ import annotations

from django.http import Http404

from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.live.resources_reviews import ReviewRights
from webapp.reviews.checklist import checklist
from webapp.reviews.models import ReviewRequest
from webapp.reviews.selectors import authors_of
from webapp.workspaces.access import require

_ACTIONS = {
    "comment": "review.comment",
    "approve": "review.write",
    "push": "review.push",
    "merge": "library.approve",
    "close": "review.edit",
}


def rights(request: ReviewRequest, user: User) -> ReviewRights:
    """The services decide; this says beforehand what they will."""
    why = {name: said for name, action in _ACTIONS.items() if (said := _refused(user, action, request))}
    if request.has_ended:
        for name in ("approve", "push", "merge"):
            why.setdefault(name, f"The request is {request.state}.")
    if request.state == ReviewRequest.State.MERGED:
        why.setdefault("close", "The request is merged.")
    if user.pk in authors_of(request):
        why["approve"] = "Some of this is your own work, and nobody approves their own."
    if missing := [it for it in checklist(request) if not it.ok]:
        why.setdefault("merge", "; ".join(it.detail.rstrip(".") for it in missing) + ".")
    return ReviewRights(**{name: name not in why for name in _ACTIONS}, why=why)


def _refused(user: User, action: str, request: ReviewRequest) -> str:
    try:
        require(user, action, request)
    except ProblemError as refused:
        return refused.detail
    except Http404:
        return "You are no member of the workspace."
    return ""

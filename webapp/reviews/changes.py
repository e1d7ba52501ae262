"""One way to change a request: under its lock, with a new version, its state settled, and everybody told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import transaction

from webapp.common.announce import announce
from webapp.common.errors import ProblemError
from webapp.live import publish
from webapp.live.resources_reviews import CodeMoved, Place
from webapp.reviews.checklist import approved_by, members_among
from webapp.reviews.models import Reviewer, ReviewRequest, Revision

State = ReviewRequest.State


@contextmanager
def changing(request: ReviewRequest, *, ended: bool = False) -> Iterator[ReviewRequest]:
    """The request, locked until the end of this block; then settled, saved and told. All or nothing.

    Raises ProblemError for a closed or merged one, unless `ended`.
    """
    with transaction.atomic():
        locked = locked_request(request)
        if locked.has_ended and not ended:
            raise ProblemError(409, "review-ended", f"This request is {locked.state}; reopen it first.")
        yield locked
        settle(locked)


def locked_request(request: ReviewRequest) -> ReviewRequest:
    """As it is now. Only the request's own row is locked: whoever changes it comes this way."""
    ReviewRequest.objects.select_for_update().get(pk=request.pk)
    related = ReviewRequest.objects.select_related(
        "workspace", "author", "head__chain", "head__author", "base"
    )
    return related.get(pk=request.pk)


def settle(request: ReviewRequest) -> None:
    """Works out the state, counts the version up, saves, and tells whoever looks at it. In a transaction."""
    before = request.state
    if not request.has_ended:
        request.state = _state(request)
    request.version += 1
    request.save()
    transaction.on_commit(partial(publish.review_changed, request.pk, request.version))
    if request.state != before:
        say(request, f"review_request.{request.state}")


def say(request: ReviewRequest, event_type: str, more: Mapping[str, Any] | None = None) -> None:
    """Announces what happened, with what a program needs to ask for the rest."""
    payload = {
        "review_request": str(request.pk),
        "number": request.number,
        "title": request.title,
        "state": request.state,
        "head": str(request.head_id),
        **(more or {}),
    }
    announce(request.workspace_id, event_type, payload)


def _state(request: ReviewRequest) -> str:
    if members_among(request).filter(state=Reviewer.State.CHANGES_REQUESTED).exists():
        return State.CHANGES_REQUESTED
    return State.APPROVED if approved_by(request) >= request.approvals else State.OPEN


def head_expected(request: ReviewRequest, revision_id: Any, place: Place | None = None) -> None:
    """Raises ProblemError "code-moved" when the head is another. Call it under the request's lock."""
    if request.head_id != revision_id:
        raise code_moved(request, place)


def code_moved(request: ReviewRequest, place: Place | None, detail: str = "") -> ProblemError:
    number = Revision.objects.values_list("number", flat=True).get(pk=request.head_id)
    detail = detail or f"The code has moved on: the head is now revision {number}. Look at it and send again."
    return ProblemError(409, "code-moved", detail, code_moved=CodeMoved(head=request.head_id, place=place))

"""Reads of reviews. Whatever a user may see comes through the functions that end in `visible_to`."""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Model, Prefetch, Q, QuerySet
from django.http import Http404

from webapp.accounts.models import User
from webapp.reviews.models import (
    Comment,
    Notification,
    RequestRevision,
    Reviewer,
    ReviewRequest,
    ReviewRule,
    Revision,
    Submission,
    Thread,
)
from webapp.workspaces.models import Workspace
from webapp.workspaces.selectors import workspaces_visible_to

Viewer = User | AnonymousUser
Record = TypeVar("Record", bound=Model)

#: What a list of revisions does not show.
LARGE = ("source", "evaluation")
LARGE_OF_JUDGEMENT = tuple(
    f"judgement__{name}" for name in ("source", "candidate", "inputs", "evaluation", "problem")
)
LARGE_OF_HEAD = (
    *(f"head__{name}" for name in LARGE_OF_JUDGEMENT),
    *("base__source", "base__evaluation", "base__chain__source", "base__chain__inputs"),
    *("head__source", "head__evaluation", "head__chain__source", "head__chain__inputs"),
)

# --- What may be seen ---------------------------------------------------------------------------------------


def revisions_visible_to(user: Viewer) -> QuerySet[Revision]:
    visible = Revision.objects.filter(workspace__in=workspaces_visible_to(user))
    related = visible.select_related("workspace", "chain__workspace", "author", "judgement")
    return related.defer(*LARGE_OF_JUDGEMENT).prefetch_related("credited")


def requests_visible_to(user: Viewer) -> QuerySet[ReviewRequest]:
    """The one place that decides: a request is seen by the members of its workspace, and nobody else."""
    visible = ReviewRequest.objects.filter(workspace__in=workspaces_visible_to(user))
    related = (
        "workspace",
        "author",
        "head__chain",
        "head__author",
        "head__judgement",
        "base__chain",
        "library_entry",
    )
    return visible.select_related(*related)


def requests_listed(user: Viewer, workspace: Workspace) -> QuerySet[ReviewRequest]:
    """Those of one workspace, with what a list shows."""
    return listed(requests_visible_to(user).filter(workspace=workspace))


def listed(requests: QuerySet[ReviewRequest]) -> QuerySet[ReviewRequest]:
    """With what a list shows, and without what it does not."""
    said = Q(threads__resolved=False, threads__comments__draft=False)
    return (
        requests.defer(*LARGE_OF_HEAD)
        .annotate(unresolved=Count("threads", filter=said, distinct=True))
        .prefetch_related("head__credited", Prefetch("reviewers", Reviewer.objects.select_related("user")))
    )


def threads_visible_to(user: Viewer) -> QuerySet[Thread]:
    """Those of visible requests in which there is something that the user may read."""
    visible = Thread.objects.filter(workspace__in=workspaces_visible_to(user))
    readable = Comment.objects.filter(_readable(user))
    threads = visible.filter(pk__in=readable.values("thread"))
    return threads.select_related("request", "resolved_by", "workspace").prefetch_related(
        Prefetch("comments", readable.select_related("author")), "agent_tasks"
    )


def comments_visible_to(user: Viewer) -> QuerySet[Comment]:
    visible = Comment.objects.filter(_readable(user), workspace__in=workspaces_visible_to(user))
    return visible.select_related("thread", "thread__request", "author", "workspace")


def _readable(user: Viewer) -> Q:
    return Q(draft=False) | Q(author=user.pk)


def submissions_of(request: ReviewRequest) -> QuerySet[Submission]:
    said = Count("comments", filter=Q(comments__deleted=False))
    return request.submissions.select_related("author", "revision").annotate(said=said)


def rules_of(workspace: Workspace) -> QuerySet[ReviewRule]:
    return ReviewRule.objects.filter(workspace=workspace).prefetch_related("reviewers")


def notifications_of(user: User) -> QuerySet[Notification]:
    """A user's own, of workspaces that they may still see."""
    seen = Notification.objects.filter(user=user.pk, request__workspace__in=workspaces_visible_to(user))
    return seen.select_related("request", "actor")


# --- One of them; each raises Http404, the same for another's as for none -----------------------------------


def revision_visible_to(user: Viewer, revision_id: UUID) -> Revision:
    return found(revisions_visible_to(user).filter(pk=revision_id))


def request_visible_to(user: Viewer, request_id: UUID) -> ReviewRequest:
    return found(requests_visible_to(user).filter(pk=request_id))


def thread_visible_to(user: Viewer, thread_id: UUID) -> Thread:
    return found(threads_visible_to(user).filter(pk=thread_id))


def comment_visible_to(user: Viewer, comment_id: UUID) -> Comment:
    return found(comments_visible_to(user).filter(pk=comment_id))


def found(records: QuerySet[Record]) -> Record:
    record = records.first()
    if record is None:
        raise Http404
    return record


def rule_visible_to(user: Viewer, rule_id: int) -> ReviewRule:
    visible = ReviewRule.objects.filter(workspace__in=workspaces_visible_to(user))
    return found(visible.filter(pk=rule_id).select_related("workspace"))


# --- Of one request -----------------------------------------------------------------------------------------


def heads_of(request: ReviewRequest) -> list[Revision]:
    """Oldest first, without their sources."""
    large = [f"revision__{name}" for name in LARGE] + ["revision__chain__source", "revision__chain__inputs"]
    heads = RequestRevision.objects.filter(request=request).order_by("place").defer(*large)
    related = heads.select_related("revision__chain", "revision__author")
    return [it.revision for it in related.prefetch_related("revision__credited")]


def turns_of(request: ReviewRequest) -> list[Revision]:
    """The revisions that are turns of the run the head comes from, to compare with."""
    turns = Revision.objects.filter(chain=request.head.chain_id, origin=Revision.Origin.TURN)
    return list(turns.defer(*LARGE).select_related("chain", "author").prefetch_related("credited"))


def belongs(request: ReviewRequest, revision_id: UUID) -> Revision | None:
    """A revision that may be shown beside the request's: its heads, its base, and all of its chain."""
    own = Q(head_of__request=request) | Q(pk=request.base_id) | Q(chain=request.head.chain_id)
    revisions = Revision.objects.filter(own, pk=revision_id, workspace=request.workspace_id)
    return revisions.select_related("chain", "author").prefetch_related("credited").first()


def beside(request: ReviewRequest, text: str) -> Revision:
    """A revision that may be shown beside the request's, by the text of its id. Raises Http404."""
    try:
        found = belongs(request, UUID(text))
    except ValueError:
        found = None
    if found is None:
        raise Http404
    return found


def unresolved_count(request: ReviewRequest) -> int:
    """Threads that others can see and that nobody has resolved."""
    said = Comment.objects.filter(thread__request=request, draft=False).values("thread")
    return Thread.objects.filter(pk__in=said, resolved=False).count()


def authors_of(request: ReviewRequest) -> set[int]:
    """Whose work the head is: who asked for the review, who asked the agent for the run, who brought each
    head in, and whose suggestions those took in, where these changed more than white space and comments."""
    authors = {request.author_id, request.head.chain.owner_id}
    authors.update(RequestRevision.objects.filter(request=request).values_list("by", flat=True))
    before: str | None = None
    for revision in heads_of(request):
        authors.add(revision.author_id)
        if revision.material_sha256 != before:
            authors.update(user.pk for user in revision.credited.all())
        before = revision.material_sha256
    return {author for author in authors if author is not None}


def waiting_on(user: User) -> QuerySet[ReviewRequest]:
    """What waits on a user: reviews asked of them and not given (or gone stale), and own requests with
    changes requested or ready to be merged."""
    State, Asked = ReviewRequest.State, Reviewer.State
    running = [State.OPEN, State.APPROVED, State.CHANGES_REQUESTED]
    to_review = Reviewer.objects.filter(user=user.pk, asked=True, state__in=[Asked.WAITING, Asked.STALE])
    own = Q(author=user.pk, state__in=[State.CHANGES_REQUESTED, State.APPROVED])
    mine = Q(pk__in=to_review.values("request")) | own
    return listed(requests_visible_to(user).filter(mine, state__in=running))

"""Writes of review requests: asked for, changed, pushed to, closed, merged into the library."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.db.models import Max
from django.http import Http404

from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.evaluations.selectors import evaluation_visible_to
from webapp.library.models import LibraryEntry
from webapp.library.selectors import newest_entry
from webapp.live.resources_reviews import (
    ApprovalRule,
    ReviewRequestCreate,
    ReviewRequestPatch,
    RevisionPush,
)
from webapp.reviews import notifications, placing, revisions
from webapp.reviews.changes import changing, head_expected, say
from webapp.reviews.checklist import checklist
from webapp.reviews.models import (
    RequestRevision,
    Reviewer,
    ReviewRequest,
    Revision,
)
from webapp.reviews.selectors import revision_visible_to, rules_of
from webapp.runs.selectors import run_visible_to
from webapp.workspaces import audit
from webapp.workspaces.access import require
from webapp.workspaces.models import Workspace
from webapp.workspaces.selectors import workspaces_visible_to

State = ReviewRequest.State


def revision_named(user: User, request: ReviewRequestCreate) -> Revision:
    """The revision that a request's body names. Raises ProblemError, Http404."""
    named = [it for it in (request.revision, request.run, request.evaluation) if it is not None]
    if len(named) != 1:
        raise ProblemError(
            400, "invalid", "Name one thing: a revision, a run with its turn, or an evaluation."
        )
    if request.turn is not None and request.run is None:
        raise ProblemError(400, "invalid", "turn: goes with a run")
    if request.revision is not None:
        return revision_visible_to(user, request.revision)
    if request.run is not None:
        run = run_visible_to(user, request.run)
        require(user, "review.create", run.workspace)
        return revisions.revision_of_turn(run=run, turn=request.turn)
    record = evaluation_visible_to(user, named[0])
    require(user, "review.create", record.workspace)
    return revisions.revision_of_evaluation(record=record)


# --- Asked for ----------------------------------------------------------------------------------------------


def review_request_create(*, user: User, request: ReviewRequestCreate) -> ReviewRequest:
    """Raises Http404 for what the user cannot see, ProblemError for what is wrong."""
    title = title_checked(request.title)
    head = revision_named(user, request)
    workspace = head.workspace
    require(user, "review.create", workspace)
    base = None if request.base is None else revision_visible_to(user, request.base)
    if base is not None and base.workspace_id != workspace.pk:
        raise Http404
    tags = tags_checked(request.tags)
    named = members_named(workspace, request.reviewers)
    rule = request.rule or ApprovalRule()
    with transaction.atomic():
        # One at a time in a workspace, so that the numbers have no gaps.
        Workspace.objects.select_for_update().get(pk=workspace.pk)
        if base is None and (entry := newest_entry(workspace, title)) is not None:
            base = entry.revision
        last = ReviewRequest.objects.filter(workspace=workspace).aggregate(last=Max("number"))["last"] or 0
        made = ReviewRequest.objects.create(
            workspace=workspace,
            number=last + 1,
            title=title,
            description=request.description,
            tags=tags,
            author=user,
            head=head,
            base=base,
            **rule.model_dump(),
        )
        RequestRevision.objects.create(request=made, revision=head, place=1, by=user)
        _reviewers_ask(made, [*named, *_reviewers_by_rules(made)], actor=user)
        audit.record("review.create", actor=user, workspace=workspace, thing=made)
        say(made, "review_request.created")
    return made


def _reviewers_by_rules(request: ReviewRequest) -> list[User]:
    """Whom the workspace's rules ask: those whose patterns fit, while they are still members."""
    fitting: list[User] = []
    for rule in rules_of(request.workspace):
        path_fits = not rule.path_glob or fnmatchcase(request.head.chain.filename, rule.path_glob)
        if path_fits and (not rule.tag or rule.tag in request.tags):
            fitting += rule.reviewers.all()
    return [it for it in fitting if is_member(request.workspace, it)]


def _reviewers_ask(request: ReviewRequest, users: Sequence[User], *, actor: User) -> None:
    """Adds those who are not asked yet. Nobody is asked for a review of their own request."""
    for user in users:
        if user.pk == request.author_id:
            continue
        reviewer, created = Reviewer.objects.get_or_create(request=request, user=user)
        if not created and reviewer.asked:
            continue
        Reviewer.objects.filter(pk=reviewer.pk).update(asked=True)
        text = f"{actor.get_username()} asks you to review {request}"
        notifications.notify(request, [user], kind="review_asked", text=text, actor=actor)


# --- Changed ------------------------------------------------------------------------------------------------


def review_request_patch(
    *, user: User, request: ReviewRequest, patch: ReviewRequestPatch, version: int
) -> ReviewRequest:
    """Raises ProblemError 412 when somebody changed it since `version`."""
    require(user, "review.edit", request)
    with changing(request) as locked:
        if locked.version != version:
            detail = f"Somebody has changed this request: it is at version {locked.version}. Load it again."
            raise ProblemError(412, "changed-meanwhile", detail)
        if patch.title is not None:
            locked.title = title_checked(patch.title)
        if patch.description is not None:
            locked.description = patch.description
        if patch.tags is not None:
            locked.tags = tags_checked(patch.tags)
        if patch.rule is not None:
            for name, value in patch.rule.model_dump().items():
                setattr(locked, name, value)
        if patch.reviewers is not None:
            wanted = members_named(locked.workspace, patch.reviewers)
            # Who has said something stays; only those who were asked and have not answered are let go.
            unanswered = locked.reviewers.filter(state=Reviewer.State.WAITING)
            unanswered.exclude(user__in=[it.pk for it in wanted]).delete()
            _reviewers_ask(locked, wanted, actor=user)
        changed = patch.model_dump(mode="json", exclude_none=True, exclude={"description"})
        audit.record("review.edit", actor=user, workspace=locked.workspace, thing=locked, detail=changed)
    return locked


def review_request_push(*, user: User, request: ReviewRequest, push: RevisionPush) -> Revision:
    """A new head: a human's edit (judged next), or a turn of another run for the same task."""
    require(user, "review.push", request)
    if (push.source is None) == (push.run is None):
        raise ProblemError(400, "invalid", "Give either a source, or a run with its turn.")
    taken = None
    if push.run is not None:
        run = run_visible_to(user, push.run)
        if run.workspace_id != request.workspace_id:
            raise Http404
        taken = revisions.revision_of_turn(run=run, turn=push.turn)
    with changing(request) as locked:
        head_expected(locked, push.base_revision)
        head = locked.head
        if taken is None:
            source = revisions.source_checked(push.source or "")
            if source == head.source:
                raise ProblemError(409, "no-change", "This is what the head says already.")
            taken = revisions.revision_insert(
                chain=head.chain, source=source, origin=Revision.Origin.EDIT, author=user, parent=head
            )
        elif taken.chain.source != head.chain.source:
            raise ProblemError(409, "another-task", "That run translates another program than this request.")
        head_move(locked, taken, by=user)
    return taken


def head_move(request: ReviewRequest, revision: Revision, *, by: User) -> None:
    """Makes a revision the head: approvals of other code go stale, threads go along. Under the lock."""
    old = request.head
    last = request.heads.aggregate(last=Max("place"))["last"] or 0
    RequestRevision.objects.create(request=request, revision=revision, place=last + 1, by=by)
    request.head = revision
    for reviewer in request.reviewers.filter(state=Reviewer.State.APPROVED).select_related("revision"):
        if reviewer.revision is None or reviewer.revision.material_sha256 != revision.material_sha256:
            Reviewer.objects.filter(pk=reviewer.pk).update(state=Reviewer.State.STALE)
    placing.threads_move(request, old=old, new=revision)
    number = {"revision": str(revision.pk), "revision_number": revision.number}
    audit.record("review.push", actor=by, workspace=request.workspace, thing=request, detail=number)
    text = f"{by.get_username()} made revision {revision.number} the head of {request}"
    notifications.notify(request, notifications.everybody(request), kind="revision", text=text, actor=by)
    say(request, "review_request.revision_added", number)
    revisions.judge_when_needed(revision, user=by)


def review_request_close(*, user: User, request: ReviewRequest) -> ReviewRequest:
    """Does nothing to one that is closed."""
    require(user, "review.edit", request)
    with changing(request, ended=True) as locked:
        if locked.state == State.MERGED:
            raise ProblemError(409, "review-ended", "This request is merged: it is in the library.")
        if locked.state != State.CLOSED:
            locked.state = State.CLOSED
            say(locked, "review_request.closed")
            _told(locked, user, "review.close", f"{user.get_username()} closed {locked}")
    return locked


def review_request_reopen(*, user: User, request: ReviewRequest) -> ReviewRequest:
    """Does nothing to one that is open."""
    require(user, "review.edit", request)
    with changing(request, ended=True) as locked:
        if locked.state == State.MERGED:
            raise ProblemError(409, "review-ended", "This request is merged: it is in the library.")
        if locked.state == State.CLOSED:
            locked.state = State.OPEN
            say(locked, "review_request.reopened")
            _told(locked, user, "review.reopen", f"{user.get_username()} reopened {locked}")
    return locked


def review_request_merge(*, user: User, request: ReviewRequest, head: UUID | None) -> LibraryEntry:
    """Into the library, as the next version of its title. Raises ProblemError that names what is missing.

    `head`: the one the user saw; 409 "code-moved" when that is another by now.
    """
    require(user, "library.approve", request)
    with changing(request) as locked:
        if head is not None:
            head_expected(locked, head)
        if missing := [it for it in checklist(locked) if not it.ok]:
            said = "; ".join(it.detail.rstrip(".") for it in missing)
            raise ProblemError(
                409, "not-approved", f"Not all that the approval rule asks for is there: {said}."
            )
        Workspace.objects.select_for_update().get(pk=locked.workspace_id)
        before = newest_entry(locked.workspace, locked.title)
        entry = LibraryEntry.objects.create(
            workspace=locked.workspace,
            title=locked.title,
            version=1 if before is None else before.version + 1,
            revision=locked.head,
            request=locked,
        )
        locked.state = State.MERGED
        say(locked, "review_request.merged", {"library_entry": str(entry.pk), "version": entry.version})
        _told(locked, user, "library.approve", f"{user.get_username()} merged {locked} into the library")
    return entry


def _told(request: ReviewRequest, actor: User, action: str, text: str) -> None:
    audit.record(action, actor=actor, workspace=request.workspace, thing=request)
    notifications.notify(request, notifications.everybody(request), kind="state", text=text, actor=actor)


# --- Checked ------------------------------------------------------------------------------------------------


def title_checked(title: str) -> str:
    title = " ".join(title.split())
    if not 1 <= len(title) <= 200:
        raise ProblemError(400, "invalid", "title: takes 1 to 200 characters of text")
    return title


def tags_checked(tags: Collection[str]) -> list[str]:
    if any(not 1 <= len(tag) <= 50 for tag in tags):
        raise ProblemError(400, "invalid", "tags: each takes 1 to 50 characters")
    return list(dict.fromkeys(tags))


def members_named(workspace: Workspace, names: Collection[str]) -> list[User]:
    """Raises ProblemError that names those who are no members."""
    members = {it.get_username(): it for it in User.objects.filter(memberships__workspace=workspace)}
    if strangers := [name for name in names if name not in members]:
        raise ProblemError(400, "invalid", f"reviewers: {', '.join(strangers)} is no member of {workspace}")
    return [members[name] for name in dict.fromkeys(names)]


def is_member(workspace: Workspace, user: User | AnonymousUser) -> bool:
    return workspaces_visible_to(user).filter(pk=workspace.pk).exists()

"""What REST answers and accepts of reviews, as frozen data."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, StrictInt

from sandbox.tasks.base import Language
from sandbox.types import Data, Evaluation, Verdict

RevisionOrigin = Literal["turn", "edit", "suggestion", "upload"]
RevisionState = Literal["pending", "judging", "judged"]
ReviewState = Literal["open", "approved", "changes_requested", "closed", "merged"]
ReviewerState = Literal["waiting", "commented", "approved", "changes_requested", "stale"]
ReviewVerdict = Literal["comment", "approve", "request_changes"]
Side = Literal["old", "new"]


def _storable(text: str) -> str:
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("is not text: it holds a NUL or half of a surrogate pair")
    return text


#: What somebody writes: text that every database takes.
Words = Annotated[str, AfterValidator(_storable)]


class Person(Data):
    username: str


class RevisionSummary(Data):
    """A revision without its source. Revisions never change, but for being judged once."""

    id: UUID
    number: int  # in its chain, from 1
    origin: RevisionOrigin
    run: UUID | None  # the run whose turn it is
    turn: int | None
    parent: UUID | None
    author: Person | None  # None: the agent
    credited: list[str]  # whose suggestions are in it
    source_sha256: str
    filename: str
    state: RevisionState
    verdict: Verdict | None  # None until it is judged
    score: float | None  # structural score, 0..100
    speedup: float | None  # over the reference; only ever measured on a GPU
    message: str  # why it could not be judged, or the verdict's sentence
    created_at: datetime


class ReferenceSource(Data):
    """The user's own program that a revision translates."""

    filename: str
    language: Language
    source: str


class Revision(RevisionSummary):
    """A revision with its source and all that the judge found out."""

    source: str
    evaluation: Evaluation | None
    reference: ReferenceSource


class ApprovalRule(Data):
    """What it takes until a request may be merged."""

    approvals: int = Field(default=1, ge=1, le=20)
    no_unresolved: bool = True
    verdict_passed: bool = True
    score_at_least: float | None = Field(default=None, ge=0, le=100)
    speedup_at_least: float | None = Field(default=None, gt=0, le=1e6)


class CheckItem(Data):
    """One line of the checklist."""

    name: Literal["approvals", "no_changes_requested", "no_unresolved", "verdict_passed", "score", "speedup"]
    ok: bool
    detail: str  # one sentence


class Reviewer(Data):
    username: str
    state: ReviewerState  # "stale": approved a revision from which the code has changed since
    asked: bool  # False: came by themselves
    revision: UUID | None  # the one the state is about


class ReviewRights(Data):
    """What the one who asks may do now; `why` names the reason for each that is False."""

    comment: bool
    approve: bool
    push: bool
    merge: bool
    close: bool
    why: dict[str, str]


class ReviewRequestSummary(Data):
    """A review request as a list shows it."""

    id: UUID
    workspace: str
    number: int  # in its workspace, from 1
    title: str
    state: ReviewState
    author: Person
    tags: list[str]
    head: RevisionSummary
    reviewers: list[Reviewer]
    unresolved: int  # threads
    created_at: datetime
    changed_at: datetime
    version: int  # the ETag: send it as If-Match with PATCH


class ReviewRequestDetail(ReviewRequestSummary):
    description: str
    head: Revision
    base: Revision | None  # what it is compared with; None: everything is new
    revisions: list[RevisionSummary]  # its heads so far, oldest first
    turns: list[RevisionSummary]  # of its run, to compare with
    rule: ApprovalRule
    checklist: list[CheckItem]
    can: ReviewRights
    library_entry: UUID | None  # once merged


class ReviewRequestPage(Data):
    results: list[ReviewRequestSummary]
    next: str | None
    previous: str | None


class ReviewRequestCreate(Data):
    """What `POST review-requests` takes: a revision, a run with its turn (absent: the best one), or an
    evaluation, whose candidate becomes a revision."""

    title: Words
    description: Words = Field(default="", max_length=50_000)
    revision: UUID | None = None
    run: UUID | None = None
    turn: int | None = None
    evaluation: UUID | None = None
    base: UUID | None = None  # absent: what the library holds under this title, if anything
    reviewers: list[Words] = Field(default_factory=list, max_length=50)  # usernames
    tags: list[Words] = Field(default_factory=list, max_length=20)
    rule: ApprovalRule | None = None


class ReviewRequestPatch(Data):
    """What `PATCH review-requests/{id}` takes; what is absent stays as it is."""

    title: Words | None = None
    description: Words | None = Field(default=None, max_length=50_000)
    reviewers: list[Words] | None = Field(default=None, max_length=50)
    tags: list[Words] | None = Field(default=None, max_length=20)
    rule: ApprovalRule | None = None


class RevisionPush(Data):
    """A new head: an edited source, or a turn of a run that went on from here."""

    base_revision: UUID  # the head it was made from: 409 "code-moved" when that is another by now
    source: Words | None = None
    run: UUID | None = None
    turn: int | None = None


class MergeInput(Data):
    revision: UUID | None = None  # the head that you saw: 409 "code-moved" when that is another by now


class AnchorInput(Data):
    revision: UUID
    side: Side = "new"
    line: int = Field(ge=1)
    end_line: int = Field(ge=1)
    quoted: Words | None = None  # as the page shows it; 400 when the revision does not read so


class Anchor(Data):
    """Where a thread was begun. Never changes."""

    revision: UUID
    side: Side
    line: int
    end_line: int
    quoted: str
    context_hash: str  # of the quoted lines with three on either side


class Place(Data):
    """Lines, 1-based, both inclusive."""

    side: Side  # "old" only for threads on the request's base
    line: int
    end_line: int


class Evidence(Data):
    """A number or a check of the evaluation that a thread speaks of."""

    kind: Literal["metric", "check"]
    name: Words = Field(max_length=200)
    value: Words = Field(default="", max_length=500)  # filled in from the evaluation when absent


class Suggestion(Data):
    """These lines of the comment's revision are to read so. Empty text deletes them."""

    line: int = Field(ge=1)
    end_line: int = Field(ge=1)
    text: Words


class ReviewComment(Data):
    id: UUID
    thread: UUID
    author: Person | None  # None: the agent
    body: str  # Markdown
    suggestion: Suggestion | None
    revision: UUID  # the head when it was written; the suggestion's lines are this one's
    applied_in: UUID | None  # the revision that took the suggestion in
    draft: bool  # only its author sees it
    deleted: bool
    created_at: datetime
    edited_at: datetime | None


class ReviewThread(Data):
    id: UUID
    request: UUID
    revision: UUID
    anchor: Anchor
    place: Place | None  # on the head; None: gone
    gone: bool  # the code it speaks of is no longer there
    moved: bool  # its lines or their text are others than when it was begun
    resolved: bool
    resolved_by: Person | None
    comments: list[ReviewComment]
    evidence: Evidence | None
    runs: list[UUID]  # runs that were given this thread as instruction
    created_at: datetime


class ReviewThreadList(Data):
    """A request's threads; drafts only of the one who asks."""

    results: list[ReviewThread]
    next: str | None
    previous: str | None


class ThreadCreate(Data):
    anchor: AnchorInput
    body: Words = ""
    suggestion: Suggestion | None = None
    draft: bool = False
    evidence: Evidence | None = None
    carry: bool = False  # the code has moved since: take the thread along to where it is now


class CommentCreate(Data):
    body: Words = ""
    suggestion: Suggestion | None = None
    draft: bool = False


class CommentPatch(Data):
    body: Words | None = None
    suggestion: Suggestion | None = None


class SubmissionCreate(Data):
    """Publishes one's drafts as one review."""

    verdict: ReviewVerdict
    body: Words = ""
    revision: UUID  # the head it is about: 409 "code-moved" when that is another by now


class ReviewSubmission(Data):
    id: UUID
    author: Person
    verdict: ReviewVerdict
    body: str
    revision: UUID
    stale: bool  # an approval of code that has changed since
    comments: int  # how many it published
    created_at: datetime


class ReviewSubmissionList(Data):
    results: list[ReviewSubmission]
    next: str | None
    previous: str | None


class SuggestionsApply(Data):
    comments: list[UUID] = Field(min_length=1, max_length=100)


class AgentAsk(Data):
    turns: int | None = None  # absent: the policy's own default
    policy: Literal["builtin", "llm"] | None = None  # absent: that of the run the code is from
    model: Words | None = None


class AgentAsked(Data):
    run: UUID
    follows_words: bool  # False: the built-in policy takes its own next step instead
    detail: str  # one sentence on what the run does


class DiffLine(Data):
    kind: Literal["same", "added", "removed"]
    text: str
    old: int | None  # line numbers
    new: int | None


class DiffHunk(Data):
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: list[DiffLine]


class MetricDelta(Data):
    name: str
    old: float | str | None
    new: float | str | None
    better: bool | None  # None: neither better nor worse, or not known


class RevisionDiff(Data):
    old: UUID | None  # None: nothing, everything is new
    new: UUID
    whitespace: Literal["show", "ignore"]
    hunks: list[DiffHunk]
    old_line_count: int
    new_line_count: int
    added: int
    removed: int
    material: bool  # more than white space and comments
    metrics: list[MetricDelta]


class CodeMoved(Data):
    """Of a 409 "code-moved": the head now, and where the code is on it."""

    head: UUID
    place: Place | None  # None: it is gone, or no code was meant


class ReviewRuleWrite(Data):
    """Who is asked for which requests. Both patterns, where given, must fit; at least one is given."""

    path_glob: Words = Field(default="", max_length=200)  # of the file's name: "attention*", "*.c"
    tag: Words = Field(default="", max_length=50)
    reviewers: list[Words] = Field(min_length=1, max_length=50)


class ReviewRuleItem(Data):
    id: int
    path_glob: str
    tag: str
    reviewers: list[str]


class ReviewRuleList(Data):
    results: list[ReviewRuleItem]
    next: str | None
    previous: str | None


class NotificationItem(Data):
    id: int
    kind: Literal["review_asked", "mention", "comment", "submission", "revision", "state", "agent"]
    request: UUID
    request_title: str
    thread: UUID | None
    actor: Person | None
    text: str  # one sentence
    read: bool
    created_at: datetime


class NotificationPage(Data):
    results: list[NotificationItem]
    next: str | None
    previous: str | None
    unread: int


class NotificationsRead(Data):
    ids: list[StrictInt] | None = Field(default=None, max_length=1000)  # absent: all


class NotificationSettings(Data):
    mail: Literal["each", "digest", "none"]

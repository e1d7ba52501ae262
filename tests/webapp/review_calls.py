"""The routes of reviews for the matrix of roles: each makes what it needs in the team, for `user` to ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.webapp import scripted
from tests.webapp.teams import Team
from webapp.accounts.models import User
from webapp.evaluations import services as evaluations
from webapp.evaluations.models import EvaluationRecord
from webapp.live.resources_reviews import (
    AnchorInput,
    ApprovalRule,
    ReviewRequestCreate,
    ReviewRuleWrite,
    RevisionPush,
    SubmissionCreate,
    Suggestion,
    ThreadCreate,
)
from webapp.reviews import requests, rules, submissions, threads
from webapp.reviews.models import Comment, ReviewRequest, ReviewRule, Revision, Thread
from webapp.workspaces.roles import Role

Call = tuple[str, Any, dict[str, str]]
Make = Callable[[Team, User], Call]


def asked(team: Team) -> ReviewRequest:
    run = team.run()
    wanted = ReviewRequestCreate(title="A kernel", run=run.pk, rule=ApprovalRule(approvals=1))
    return requests.review_request_create(user=team.maker, request=wanted)


def begun(team: Team, author: User | None = None, *, draft: bool = False) -> Thread:
    request = asked(team)
    wanted = ThreadCreate(
        anchor=AnchorInput(revision=request.head_id, line=1, end_line=1),
        body="Why?",
        suggestion=Suggestion(line=1, end_line=1, text="// other"),
        draft=draft,
    )
    return threads.thread_create(user=author or team.maker, request=request, data=wanted)


def said(team: Team, author: User) -> Comment:
    """Their own comment, or the maker's where they may not say anything."""
    role = next((role for role, it in team.people.items() if it == author), Role.ADMIN)
    return begun(team, author if role.rank >= Role.AUTHOR.rank else None).comments.get()


def approved(team: Team) -> ReviewRequest:
    request = asked(team)
    review = SubmissionCreate(verdict="approve", revision=request.head_id)
    submissions.submission_create(user=team.people[Role.REVIEWER], request=request, data=review)
    return request


def pushed(team: Team, *, judged: bool) -> Revision:
    request = asked(team)
    push = RevisionPush(base_revision=request.head_id, source="// edited\nint x;\n")
    made = requests.review_request_push(user=team.maker, request=request, push=push)
    made.refresh_from_db()
    assert made.judgement is not None
    ended = EvaluationRecord.State.FINISHED if judged else EvaluationRecord.State.INTERRUPTED
    evaluation = scripted.evaluation("passed", 60.0) if judged else None
    evaluations.evaluation_end(record=made.judgement, state=ended, message="said", evaluation=evaluation)
    return made


def ruled(team: Team) -> ReviewRule:
    rule = ReviewRuleWrite(tag="a", reviewers=[team.maker.username])
    return rules.rule_create(user=team.founder, workspace=team.workspace, rule=rule)


def _of(suffix: str, body: Callable[[ReviewRequest], Any] = lambda it: None) -> Make:
    def make(team: Team, user: User) -> Call:
        request = asked(team)
        return f"review-requests/{request.pk}{suffix}", body(request), {}

    return make


def _thread(suffix: str = "", body: Any = None) -> Make:
    return lambda team, user: (f"threads/{begun(team).pk}{suffix}", body, {})


def _patch(team: Team, user: User) -> Call:
    request = asked(team)
    return f"review-requests/{request.pk}", {"title": "Other"}, {"If-Match": f'"{request.version}"'}


def _apply(team: Team, user: User) -> Call:
    comment = begun(team).comments.get()
    return (
        f"review-requests/{comment.thread.request_id}/suggestions/apply",
        {"comments": [str(comment.pk)]},
        {},
    )


CALLS: dict[tuple[str, str], Make] = {
    ("GET", "inbox"): lambda team, user: ("inbox", None, {}),
    ("GET", "review-requests"): lambda team, user: (
        f"review-requests?workspace={team.workspace.slug}",
        None,
        {},
    ),
    ("POST", "review-requests"): lambda team, user: (
        "review-requests",
        {"title": "Mine", "run": str(team.run().pk)},
        {},
    ),
    ("GET", "review-request"): _of(""),
    ("PATCH", "review-request"): _patch,
    ("POST", "review-request-close"): _of("/close"),
    ("POST", "review-request-reopen"): lambda team, user: (
        f"review-requests/{requests.review_request_close(user=team.maker, request=asked(team)).pk}/reopen",
        None,
        {},
    ),
    ("POST", "review-request-merge"): lambda team, user: (
        f"review-requests/{approved(team).pk}/merge",
        {},
        {},
    ),
    ("POST", "review-request-revisions"): _of(
        "/revisions", lambda it: {"source": "// edited\nint x;\n", "base_revision": str(it.head_id)}
    ),
    ("POST", "suggestions-apply"): _apply,
    ("GET", "review-request-diff"): _of("/diff"),
    ("GET", "review-threads"): _of("/threads"),
    ("POST", "review-threads"): _of(
        "/threads",
        lambda it: {"anchor": {"revision": str(it.head_id), "line": 1, "end_line": 1}, "body": "Why?"},
    ),
    ("GET", "review-submissions"): _of("/submissions"),
    ("POST", "review-submissions"): _of(
        "/submissions", lambda it: {"verdict": "comment", "body": "Hm", "revision": str(it.head_id)}
    ),
    ("GET", "revision"): lambda team, user: (f"revisions/{pushed(team, judged=True).pk}", None, {}),
    ("POST", "revision-judge"): lambda team, user: (
        f"revisions/{pushed(team, judged=False).pk}/judge",
        None,
        {},
    ),
    ("GET", "review-thread"): _thread(),
    ("POST", "review-comments"): _thread("/comments", {"body": "Because."}),
    ("POST", "review-thread-resolve"): _thread("/resolve"),
    ("POST", "review-thread-reopen"): lambda team, user: (
        f"threads/{threads.thread_resolve(user=team.maker, thread=begun(team), resolved=True).pk}/reopen",
        None,
        {},
    ),
    ("POST", "send-to-agent"): _thread("/send-to-agent", {"turns": 2}),
    ("GET", "review-rules"): lambda team, user: (f"review-rules?workspace={team.workspace.slug}", None, {}),
    ("POST", "review-rules"): lambda team, user: (
        f"review-rules?workspace={team.workspace.slug}",
        {"path_glob": "*.c", "reviewers": [team.maker.username]},
        {},
    ),
    ("DELETE", "review-rule"): lambda team, user: (f"review-rules/{ruled(team).pk}", None, {}),
    ("GET", "notifications"): lambda team, user: ("notifications", None, {}),
    ("POST", "notifications-read"): lambda team, user: ("notifications/read", {}, {}),
    ("GET", "notification-settings"): lambda team, user: ("notifications/settings", None, {}),
    ("PUT", "notification-settings"): lambda team, user: ("notifications/settings", {"mail": "each"}, {}),
    ("PATCH", "review-comment"): lambda team, user: (
        f"comments/{said(team, user).pk}",
        {"body": "Why not?"},
        {},
    ),
    ("DELETE", "review-comment"): lambda team, user: (f"comments/{said(team, user).pk}", None, {}),
}

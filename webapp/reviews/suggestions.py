"""Suggested changes become a revision: one of them or several at once, all or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.live.resources import FieldProblem
from webapp.reviews import revisions
from webapp.reviews.anchoring import Range, found_in, lines_of, quoted
from webapp.reviews.changes import changing
from webapp.reviews.models import Comment, ReviewRequest, Revision
from webapp.reviews.requests import head_move
from webapp.reviews.sources import one_line_ends
from webapp.workspaces.access import require


@dataclass(frozen=True)
class Change:
    """Lines of the head that are to read otherwise."""

    comment: UUID
    lines: Range
    text: str


def suggestions_apply(*, user: User, request: ReviewRequest, comments: Sequence[UUID]) -> Revision:
    """A new head with these suggestions in it, credited to who made them. Raises ProblemError that names each
    one which cannot be applied: the code under it has changed, or another of them changes the same lines."""
    require(user, "review.push", request)
    wanted = list(dict.fromkeys(comments))
    with changing(request) as locked:
        head = locked.head
        rows = Comment.objects.select_for_update(of=("self",)).filter(
            pk__in=wanted, thread__request=locked, draft=False
        )
        found = {it.pk: it for it in rows.select_related("revision", "author")}
        changes, problems = [], []
        for key in wanted:
            said = _change(found.get(key), head)
            if isinstance(said, str):
                problems.append(FieldProblem(field=str(key), message=said))
            else:
                changes.append(said)
        problems += _overlaps(changes)
        if problems:
            detail = "Nothing was applied: " + "; ".join(f"{it.field}: {it.message}" for it in problems)
            raise ProblemError(409, "suggestions-conflict", detail, errors=problems)
        source = applied(head.source, changes)
        if source == head.source:
            raise ProblemError(409, "no-change", "The code says what is suggested already.")
        credited = {it.author_id: it.author for it in found.values() if it.author is not None}
        made = revisions.revision_insert(
            chain=head.chain,
            source=revisions.source_checked(source),
            origin=Revision.Origin.SUGGESTION,
            author=user,
            parent=head,
            credited=list(credited.values()),
        )
        Comment.objects.filter(pk__in=wanted).update(applied_in=made)
        head_move(locked, made, by=user)
    return made


def applied(source: str, changes: Sequence[Change]) -> str:
    """The source with all changes, which do not overlap; its line ends stay what they are."""
    lines = lines_of(source)
    for change in sorted(changes, key=lambda it: it.lines.line, reverse=True):
        text = one_line_ends(change.text)
        put = [] if text == "" else text.removesuffix("\n").split("\n")
        lines[change.lines.line - 1 : change.lines.end_line] = put
    end = "\r\n" if "\r\n" in source else "\n"
    last = end if one_line_ends(source).endswith("\n") else ""
    return end.join(lines) + last if lines else ""


def _change(comment: Comment | None, head: Revision) -> Change | str:
    """Where a suggestion belongs on the head; a sentence when it cannot be applied."""
    if comment is None or comment.suggestion is None or comment.deleted:
        return "there is no such suggestion in this request"
    if comment.applied_in_id is not None:
        return "is in a revision already"
    lines = Range(comment.suggestion["line"], comment.suggestion["end_line"])
    if comment.revision_id != head.pk:
        place = found_in(comment.revision.source, lines, head.source)
        if place is None or quoted(head.source, place) != quoted(comment.revision.source, lines):
            return "the code it would change is not what it was"
        lines = place
    return Change(comment.pk, lines, comment.suggestion["text"])


def _overlaps(changes: Sequence[Change]) -> list[FieldProblem]:
    ordered = sorted(changes, key=lambda it: (it.lines.line, it.lines.end_line))
    problems = []
    for i, one in enumerate(ordered):
        for other in ordered[i + 1 :]:
            if other.lines.line <= one.lines.end_line:
                same = f"line {other.lines.line}"
                problems.append(
                    FieldProblem(field=str(other.comment), message=f"changes {same}, as {one.comment} does")
                )
    return problems

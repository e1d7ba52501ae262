"""Threads go along with their code: where each is on the head, worked out when the head changes."""

from __future__ import annotations

from webapp.live.resources_reviews import AnchorInput, Place
from webapp.reviews.anchoring import Range, found_in, lines_of
from webapp.reviews.models import ReviewRequest, Revision, Thread


def is_on_base(request: ReviewRequest, thread: Thread) -> bool:
    """The base does not change, so what was said of it stays where it is."""
    return thread.side == "old" and thread.revision_id == request.base_id


def threads_move(request: ReviewRequest, *, old: Revision, new: Revision) -> None:
    """Every thread, drafts and resolved ones too: reopened, they should stand where their code is.

    A thread is looked for from where it was last found, then from where it was begun: code that was taken
    out and put back is found again. Call it under the request's lock.
    """
    for thread in request.threads.select_related("revision", "placed_on"):
        if is_on_base(request, thread):
            continue
        last = Range(thread.place_line, thread.place_end_line)
        place = found_in(thread.placed_on.source, last, new.source)
        if place is None and thread.placed_on_id != thread.revision_id:
            first = Range(thread.line, thread.end_line)
            place = found_in(thread.revision.source, first, new.source)
        thread.gone = place is None
        if place is not None:
            thread.placed_on, thread.place_line, thread.place_end_line = new, place.line, place.end_line
        thread.save(update_fields=["gone", "placed_on", "place_line", "place_end_line"])


def place_of(request: ReviewRequest, thread: Thread) -> Place | None:
    """On the head now; None when the code is gone."""
    if thread.gone:
        return None
    side = "old" if is_on_base(request, thread) else "new"
    return Place(side=side, line=thread.place_line, end_line=thread.place_end_line)


def range_of(revision: Revision, anchor: AnchorInput) -> Range | None:
    """The anchor's lines; None when the revision has no such lines."""
    if not anchor.line <= anchor.end_line <= len(lines_of(revision.source)):
        return None
    return Range(anchor.line, anchor.end_line)

"""Text that a model writes travels in few messages, and every character has its place."""

from __future__ import annotations

from collections.abc import Iterator

from agent.events import Event, Stage, TextDelta
from webapp.live.feed import feed

WORDS = "Each thread takes one element; neighbours read neighbouring words."


def written() -> Iterator[Event]:
    for start in range(0, len(WORDS), 3):
        yield TextDelta(turn=1, text=WORDS[start : start + 3], start=start)
    yield TextDelta(turn=1, text="anew", request=2)
    yield Stage(turn=1, stage="compile")
    yield TextDelta(turn=1, text="hm", thought=True, request=3)
    yield TextDelta(turn=1, text="said", request=3, start=2)


def test_pieces_of_one_request_become_one_and_others_stay_apart() -> None:
    told = [event for batch in feed(written, tick=0.1) for event in batch]
    pieces = [event for event in told if isinstance(event, TextDelta)]
    first = [piece for piece in pieces if piece.request == 1]
    assert "".join(piece.text for piece in first) == WORDS
    assert len(first) < len(WORDS) / 3
    place = 0
    for piece in first:
        assert piece.start == place
        place += len(piece.text)
    assert [piece.text for piece in pieces if piece.request > 1] == ["anew", "hm", "said"]
    assert [event.type for event in told][-4:] == ["text_delta", "stage", "text_delta", "text_delta"]

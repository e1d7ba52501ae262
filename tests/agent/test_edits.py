from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.edits import apply_edits, edited_events, range_edits

line = st.sampled_from(["a\n", "b\n", "\n", "float x = 1;\n", "}\n", "// \f a\u2028\r b\n"])
text = st.lists(line, max_size=40).map("".join)


@given(text, text)
def test_range_edits_turn_base_into_new(base: str, new: str) -> None:
    edits = range_edits(base, new)
    assert apply_edits(base, sorted(edits, key=lambda e: -e.start_line)) == new


@given(text, text, st.integers(min_value=1, max_value=5))
def test_streamed_edits_apply_one_after_the_other(base: str, new: str, lines: int) -> None:
    shown, version = base, 7
    for event in edited_events(1, base, new, file="kernel.cu", version=7, lines=lines):
        assert event.base_version == version
        shown, version = apply_edits(shown, event.edits), event.version
    assert shown == new


def test_only_a_line_feed_ends_a_line() -> None:
    edits = range_edits("a\f b\u2028\nc\n", "a\f b\u2028\nd\n")
    assert [(edit.start_line, edit.end_line) for edit in edits] == [(2, 3)]


def test_a_text_without_a_final_newline_survives() -> None:
    base, new = "a\nb", "a\nc"
    shown = base
    for event in edited_events(1, base, new, file="kernel.cu", version=0):
        shown = apply_edits(shown, event.edits)
    assert shown == new

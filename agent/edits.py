"""Edits as data: how one version of a file becomes the next, and what an editor shows while it is written."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from agent.events import Edited, RangeEdit


def split_lines(text: str) -> list[str]:
    """Lines with their ends. Only a line feed ends one: compilers, editors and the page count so, while
    `str.splitlines` also breaks at form feeds and a few more."""
    *whole, rest = text.split("\n")
    return [line + "\n" for line in whole] + ([rest] if rest else [])


def range_edits(base: str, new: str) -> list[RangeEdit]:
    """The edits from `base` to `new`, from top to bottom; lines are counted in `base`, from 1."""
    old, fresh = split_lines(base), split_lines(new)
    matcher = difflib.SequenceMatcher(a=old, b=fresh, autojunk=False)
    return [
        RangeEdit(start_line=i1 + 1, end_line=i2 + 1, text="".join(fresh[j1:j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def apply_edits(base: str, edits: list[RangeEdit]) -> str:
    """Apply edits given in descending order of line. Raises ValueError when they do not fit `base`."""
    lines = split_lines(base)
    for edit in edits:
        if not 1 <= edit.start_line <= edit.end_line <= len(lines) + 1:
            raise ValueError(
                f"edit of lines {edit.start_line} to {edit.end_line} in a file of {len(lines)} lines"
            )
        lines[edit.start_line - 1 : edit.end_line - 1] = split_lines(edit.text)
    return "".join(lines)


def edited_events(
    turn: int, base: str, new: str, *, file: str, version: int, lines: int = 12
) -> Iterator[Edited]:
    """The events that turn version `version` (`base`) into `new`, in pieces of at most `lines` lines.

    Each piece makes a version of its own, top to bottom, as a person would write it.
    """
    shift = 0  # how far lines below have moved through the pieces so far
    for edit in range_edits(base, new):
        fresh = split_lines(edit.text)
        start, replaced = edit.start_line + shift, edit.end_line - edit.start_line
        for i in range(0, max(len(fresh), 1), lines):
            piece = fresh[i : i + lines]
            yield Edited(
                turn=turn,
                file=file,
                base_version=version,
                version=version + 1,
                edits=[
                    RangeEdit(
                        start_line=start + i,
                        end_line=start + i + (replaced if i == 0 else 0),
                        text="".join(piece),
                    )
                ],
            )
            version += 1
        shift += len(fresh) - replaced

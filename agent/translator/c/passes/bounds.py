"""Bounds of tiles, as C text."""

from __future__ import annotations

from agent.translator.c.syntax import For


def plus(lo: str, text: str) -> str:
    """`lo + text`, without a zero."""
    return text if lo == "0" else f"{lo} + {text}"


def within(text: str, loop: For) -> str:
    """The rest of `index ... bound`: the loop's relation with its bound."""
    return f"{'<' if loop.relation == '!=' else loop.relation} {text}"

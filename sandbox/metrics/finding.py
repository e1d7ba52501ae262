"""What one family says: a score, how much it matters for this program, and one sentence of evidence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """`score` in [0, 1], or None where the family does not apply.

    `relevance` in [0, 1] scales the family's weight: about what share of the cost the family speaks of. It is
    what keeps a program from earning credit for what it hardly does.
    """

    score: float | None
    note: str
    relevance: float = 1.0


def soft(ratio: float) -> float:
    """2r / (1 + r): the score of doing with `ratio` (0..1) of the work what could be done with all of it.

    Smooth and increasing; 1 -> 1, 1/2 -> 0.67, 1/4 -> 0.40, 1/8 -> 0.22, 1/32 -> 0.06. The first halving of
    waste earns as much as the whole road from 1/8 to 1/32, yet the gradient never vanishes.
    """
    ratio = min(max(ratio, 0.0), 1.0)
    return 2 * ratio / (1 + ratio)


def number(value: float) -> str:
    """Two or three significant digits and no exponent, for sentences: 0.12, 4, 12.5, 1,234."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 1 if abs(value) >= 10 else 2
    text = f"{value:.{digits}f}" if abs(value) >= 1 else f"{value:.2g}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def counted(value: float, noun: str) -> str:
    """ "1 sector", "2.5 sectors"; `noun` is made plural by an s."""
    return f"{number(value)} {noun}" + ("" if value == 1 else "s")


def percent(share: float) -> str:
    """0.004 -> "0.4%", 0.5 -> "50%"."""
    return f"{100 * share:.0f}%" if share >= 0.1 or share == 0 else f"{100 * share:.1f}%"


def at(line: int) -> str:
    """How a sentence begins that speaks of `line`; line 0 means that nvcc gave none."""
    return f"Line {line}" if line else "Code without a line"

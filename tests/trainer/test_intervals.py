"""Intervals and tests of counted shares, against values from the literature and by hand."""

from __future__ import annotations

import pytest

from trainer.intervals import mcnemar, paired_difference, wilson


@pytest.mark.parametrize(
    ("passed", "of", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (15, 60, 0.1578, 0.3723),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilson(passed: int, of: int, low: float, high: float) -> None:
    assert wilson(passed, of) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


@pytest.mark.parametrize(
    ("gained", "lost", "p"), [(0, 0, 1.0), (5, 0, 0.0625), (0, 5, 0.0625), (9, 1, 0.021484375), (3, 3, 1.0)]
)
def test_mcnemar_is_the_sign_test_of_those_that_changed(gained: int, lost: int, p: float) -> None:
    assert mcnemar(gained, lost) == pytest.approx(p)


def test_a_paired_difference_has_its_interval() -> None:
    before, after = [False] * 40 + [True] * 20, [True] * 15 + [False] * 25 + [True] * 20
    difference, low, high = paired_difference(before, after)
    assert difference == pytest.approx(0.25)
    assert 0.12 < low < 0.17
    assert 0.33 < high < 0.38
    assert paired_difference(before, before) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="no pairs"):
        paired_difference([], [])

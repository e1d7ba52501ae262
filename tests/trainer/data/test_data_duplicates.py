"""Duplicates are found whatever their names and layout; different programs are not taken for them."""

from __future__ import annotations

from itertools import combinations, islice

from trainer.data.duplicates import NEAR, Index, fingerprint, jaccard
from trainer.data.registry import all_families, sketch

SUM = """
#include <math.h>
/* Adds things up. */
void total(int n, const float *x, float *out) {
    float s = 0.0f;
    for (int i = 0; i < n; i++) {
        s += x[i] * x[i] + fabsf(x[i]);
    }
    out[0] = s;
}
"""
RESTYLED = """
typedef double real_t;

void acc_energy(int32_t count, real_t *restrict values, real_t *res)
{
  real_t t = 0.0;   // running total
  for (int32_t k = 0; k < count; k++)
    t += values[k] * values[k] + fabs(values[k]);
  res[0] = t;
}
"""


def test_names_types_comments_and_layout_count_for_nothing() -> None:
    assert fingerprint(SUM).exact == fingerprint(RESTYLED).exact


def test_what_is_computed_counts() -> None:
    for old, new in (
        ("x[i] + fabsf", "x[i] - fabsf"),
        ("i < n", "i <= n"),
        ("s += x[i] * x[i]", "s += x[i]"),
    ):
        changed = SUM.replace(old, new)
        assert changed != SUM
        assert fingerprint(changed).exact != fingerprint(SUM).exact


def test_swapped_names_are_told_apart() -> None:
    one = "void f(int n, float *a, float *b) { for (int i = 0; i < n; i++) a[i] = b[i] - a[i]; }"
    other = "void f(int n, float *a, float *b) { for (int i = 0; i < n; i++) a[i] = a[i] - b[i]; }"
    assert fingerprint(one).exact != fingerprint(other).exact


def test_the_index_finds_what_comparing_everything_with_everything_finds() -> None:
    """Near duplicates of real programs, and unrelated ones."""
    sources = [sketch(family, 1, 1).source for family in islice(all_families(), 40)]
    longest = max(sources, key=len)
    near = [longest.replace("<", "<=", 1), longest + "\nint unused_helper;\n"]
    prints = {str(number): fingerprint(source) for number, source in enumerate([*sources, *near])}
    index = Index()
    found = set()
    for name, print_ in prints.items():
        hit = index.find(print_)
        if hit is not None:
            found.add(frozenset((name, hit[0])))
        index.add(name, print_)
    pairs = {
        frozenset((a, b))
        for a, b in combinations(prints, 2)
        if jaccard(prints[a].runs, prints[b].runs) >= NEAR
    }
    assert found <= pairs
    assert {min(p, key=int) for p in pairs if max(p, key=int) == "40"} == {
        min(p, key=int) for p in found if max(p, key=int) == "40"
    }
    assert any("41" in pair for pair in found)


def test_anything_has_a_fingerprint() -> None:
    for text in ("", "\0\xff", "'", '"never closed', "/* never closed", "@@@ $$$ ???", "0x 1e+ .5f ...."):
        assert fingerprint(text) == fingerprint(text)

"""The comparison for people: `docs/measurements/emulator-vs-h200.md`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sandbox.agreement.bounds import Row
from sandbox.agreement.result import Result

COMMAND = "kernelwright bench emulator-vs-card"
_HEAD = """# The emulator beside a card
    {command} --out docs/measurements/emulator-vs-h200.md

ran {cases} cases of {kernels} small kernels ([kernels](../../sandbox/agreement/kernels)) in the emulator
and on a card: outputs through the GPU backend, built with `-fmad=false` and with nvcc's own flags; counts,
of the build with nvcc's own flags, from Nsight Compute on a plain executable of the same sources.

{date}: {card}, {tools}.
"""
_READ = """
- *over*: further apart than the bound allows. *told*: shown, and nothing is asked of it. *not measured*: the
  card did not tell. Bounds are relative to the card's number.
- PTX is not SASS: ptxas unrolls, predicates short branches and shares instructions, so lanes per instruction
  and the busiest warp differ a little where nothing is wrong.
- Where ptxas predicates a short branch, its lanes count as active, though they do nothing; *lanes not
  predicated off* is Nsight Compute's number without those.
- Half-precision FLOP are compared where the PTX has any: elsewhere ptxas loads constants with HFMA2 and
  converts with HADD2, which no source asked for.
- *busiest warp over the average* is measured where each warp has a scheduler to itself: blocks of at most
  128 threads, and no more blocks than multiprocessors. Otherwise Nsight Compute tells nothing of single
  warps.
- In the *winner* cases lanes of one store meet at one address, on purpose: a race, which the emulator's
  checks may report. What is asked is which lane wins.
"""


def markdown(result: Result) -> str:
    head = _HEAD.format(
        command=COMMAND,
        cases=result.cases,
        kernels=result.kernels,
        date=result.date,
        card=result.card,
        tools=result.tools,
    )
    parts = [head, *(f"- {note}\n" for note in result.notes), _READ]
    parts += [
        "\n## In sum\n",
        *_table(("what", "bound", "ok", "over", "not measured", "told"), _sums(result.rows)),
    ]
    over = [row for row in result.rows if row.verdict == "over"]
    parts += ["\n## Over\n", *(_rows(over) if over else ["Nothing.\n"])]
    if result.expansions:
        cells = [
            (
                e.case,
                e.why,
                f"{e.flop:,}",
                ", ".join(f"{name} {_number(count)}" for name, count in sorted(e.instructions.items()))
                or "not measured",
            )
            for e in result.expansions
        ]
        heads = ("case", "has", "FLOP in PTX", "instructions on the machine, by lane")
        parts += ["\n## What one operation becomes\n", *_table(heads, cells)]
    parts += ["\n## All\n", *_rows(result.rows)]
    return "".join(parts)


def summary(result: Result) -> str:
    """One line."""
    counts = Counter(row.verdict for row in result.rows)
    words = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("ok", "over", "not measured", "told"))
    return f"{result.cases} cases on {result.card}: {words}"


def _sums(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    kinds = list(dict.fromkeys(row.what for row in rows))
    found = []
    for kind in kinds:
        these = [row for row in rows if row.what == kind]
        counts = Counter(row.verdict for row in these)
        bounds = dict.fromkeys(row.bound for row in these)
        bound = next(iter(bounds)) if len(bounds) == 1 else "by case"
        told = (counts[verdict] for verdict in ("ok", "over", "not measured", "told"))
        found.append((kind, bound, *(str(count) if count else "" for count in told)))
    return found


def _rows(rows: Sequence[Row]) -> list[str]:
    heads = ("case", "what", "emulator", "card", "bound", "verdict", "")
    cells = [(r.case, r.what, _number(r.emulator), _number(r.card), r.bound, r.verdict, r.note) for r in rows]
    return _table(heads, cells)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(cells)} |\n" for cells in lines]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3f}"

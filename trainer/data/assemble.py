"""From journals to a data set: `tasks.jsonl`, what was left out and why, counts that add up, a manifest with
hashes, and a data card."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from sandbox.types import Data
from trainer.data.generate import Generated
from trainer.data.journal import Journal, write_lines
from trainer.data.rows import SCHEMA, Draft, Row, difficulty
from trainer.data.sources import HeldOut
from trainer.data.split import split_of
from trainer.data.work import Examined, Solved

TASKS, REJECTED, REPORT = "tasks.jsonl", "rejected.jsonl", "report.json"
MANIFEST, CARD, CONTAMINATION = "manifest.json", "README.md", "decontamination.json"


class Rejected(Data):
    """A draft that is no task, and why."""

    id: str
    index: int
    family: str
    outcome: str
    message: str
    source: str


class Summary(Data):
    """`report.json`: every draft that was written is in exactly one of these counts."""

    written: int  # drafts, by families or by users
    left_out: dict[str, int]  # before anything was run: duplicates, and what resembles a held-out program
    examined: dict[str, int]  # by outcome
    tasks: int  # rows of tasks.jsonl
    given: int  # of them, a user's own
    with_solutions: int
    refused_by_translator: int
    solutions: dict[str, int]  # by verdict
    candidates_failed: int  # candidates that could not be written or judged
    configurations: int
    configurations_dropped: int
    places_left_empty: int  # of the sequence, because all attempts were duplicates
    unreadable: list[str]  # files and lines that are no tasks or rows
    died: list[str]  # tasks whose solving ended with its worker; the next run tries again
    failures: dict[str, int]  # the commonest reasons of failed candidates

    @property
    def adds_up(self) -> bool:
        kept = self.written - sum(self.left_out.values())
        return kept == sum(self.examined.values()) and self.tasks == self.examined.get("taken", 0)


def assemble(
    folder: Path,
    *,
    drafts: Sequence[Draft],
    taken: Sequence[Draft],
    examined: Mapping[str, Examined],
    solving: Journal[Solved],
    generated: Generated,
    held_out: HeldOut,
    unreadable: Sequence[str],
    died: Sequence[str],
    settings: dict[str, Any],
) -> Summary:
    """Writes all files of the data set, each whole or not at all. Raises TaskProblem on a full disk."""
    places = solving.places()
    tally = Counter[str]()
    verdicts, failures = Counter[str](), Counter[str]()

    def lines() -> Iterator[str]:
        for draft in taken:
            seen = examined[draft.id]
            solved = solving.at(places[draft.id]) if draft.id in places else None
            tally["configurations"] += len(seen.inputs)
            tally["dropped"] += len(seen.configurations_dropped)
            if solved is not None:
                tally["with_solutions"] += bool(solved.solutions)
                tally["refused"] += bool(solved.translator)
                tally["failed"] += len(solved.failed)
                verdicts.update(s.evaluation.verdict for s in solved.solutions)
                failures.update(reason[:120] for reason in solved.failed)
            yield _row(draft, seen, solved).model_dump_json()

    write_lines(folder / TASKS, lines())
    write_lines(folder / REJECTED, _rejected(drafts, examined))
    outcomes = Counter(examined[d.id].outcome if d.id in examined else "not_examined" for d in drafts)
    summary = Summary(
        written=generated.counts["written"],
        left_out={k: generated.counts[k] for k in ("exact_duplicate", "near_duplicate", "held_out")},
        examined=dict(sorted(outcomes.items())),
        tasks=len(taken),
        given=sum(d.origin == "given" for d in taken),
        with_solutions=tally["with_solutions"],
        refused_by_translator=tally["refused"],
        solutions=dict(sorted(verdicts.items())),
        candidates_failed=tally["failed"],
        configurations=tally["configurations"],
        configurations_dropped=tally["dropped"],
        places_left_empty=generated.counts["places_left_empty"],
        unreadable=list(unreadable),
        died=list(died),
        failures=dict(failures.most_common(10)),
    )
    write_lines(folder / REPORT, [_json({**summary.model_dump(), "adds_up": summary.adds_up})])
    contamination = {
        "programs_compared_with": held_out.programs,
        "unreadable": held_out.unreadable,
        "threshold": generated.held_out.near,
        "dropped": generated.similar,
    }
    write_lines(folder / CONTAMINATION, [_json(contamination)])
    families = Counter(d.family for d in taken)
    write_lines(folder / CARD, [_card(summary, families, settings)])
    write_lines(folder / MANIFEST, [_json(_manifest(folder, families, settings))])
    return summary


def _row(draft: Draft, seen: Examined, solved: Solved | None) -> Row:
    solutions = solved.solutions if solved is not None else []
    refused = solved.translator if solved is not None else ""
    return Row(
        **{**draft.model_dump(), "inputs": seen.inputs},
        structure=seen.structure,
        translator=refused,
        difficulty=difficulty(solutions, bool(refused)),
        solutions=solutions,
    )


def _rejected(drafts: Sequence[Draft], examined: Mapping[str, Examined]) -> Iterator[str]:
    for draft in drafts:
        seen = examined.get(draft.id)
        if seen is not None and seen.outcome != "taken":
            yield Rejected(
                id=draft.id,
                index=draft.index,
                family=draft.family,
                outcome=seen.outcome,
                message=seen.message,
                source=draft.source,
            ).model_dump_json()


def _manifest(folder: Path, families: Mapping[str, int], settings: dict[str, Any]) -> dict[str, Any]:
    names = (TASKS, REJECTED, REPORT, CONTAMINATION, CARD)
    return {
        "schema_version": SCHEMA,
        "kernelwright": version("kernelwright"),
        "settings": settings,
        "files": {
            name: {"sha256": _hash(folder / name), "bytes": (folder / name).stat().st_size} for name in names
        },
        "splits": {family: split_of(family) for family in sorted(families)},
    }


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _card(summary: Summary, families: Mapping[str, int], settings: dict[str, Any]) -> str:
    """What a person should know before using the data."""
    splits = Counter[str]()
    for family, count in families.items():
        splits[split_of(family)] += count
    given = "and users' own sources " if settings["sources"] else ""
    shares = ", ".join(f"{name} {count}" for name, count in sorted(splits.items()))
    return f"""# Tasks in C, with judged CUDA solutions
Written by `kernelwright train synthesize c` (seed {settings["seed"]}, generator {settings["generator"]}).

**What it is.** {summary.tasks} C functions from {len(families)} families of generated programs
{given}with several input configurations each, and candidates in CUDA with the judge's evaluation of each:
{sum(summary.solutions.values())} solutions for {summary.with_solutions} tasks. A row of `tasks.jsonl` is one
task. `report.json` counts everything that was written and left out; `rejected.jsonl` holds what the judge did
not take, with its reason.

**How it was made.** Programs come from grammars, not from people: names, types, loops and layout vary, but a
family has the shapes its author thought of. Candidates come from the built-in translator, turn by turn, with
improvements left out, and spoiled or broken on purpose; `provenance` says which. Evaluations are measured in
an emulator: they hold no times.

**Splits** (`manifest.json`), by family and never by row: {shares} tasks.

**Not for** conclusions on how often real programs look like this, or how fast kernels are on hardware.

**Licence.** Generated text, no third party's; sources that a user supplied keep theirs."""


def _json(document: Any) -> str:
    return to_json(document, indent=1).decode()

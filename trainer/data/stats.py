"""What is in a data set: counts by family, decision, verdict, structure and difficulty."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.errors import TaskProblem
from sandbox.types import Problem
from trainer.data import assemble
from trainer.data.journal import BrokenLine, read_rows
from trainer.data.rows import HONEST, Row, parallel, solved
from trainer.data.split import split_of

#: Upper ends of the classes of difficulty.
_CLASSES = (("simple", 0.0), ("moderate", 0.34), ("hard", 0.67), ("very hard", 1.0))


@dataclass
class _Counts:
    tasks: int = 0
    configurations: int = 0
    ids: set[str] = field(default_factory=set)
    repeated: int = 0
    by: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    verdicts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    changes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    scores: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, row: Row) -> None:
        self.repeated += row.id in self.ids
        self.ids.add(row.id)
        self.tasks += 1
        self.configurations += len(row.inputs)
        self.by["family"][row.family] += 1
        self.by["group"][row.group] += 1
        self.by["language"][row.language] += 1
        self.by["decision"][row.decision] += 1
        self.by["origin"][row.origin] += 1
        self.by["split"][split_of(row.family)] += 1
        self.by["structure"][row.structure] += 1
        self.by["difficulty"][_class(row.difficulty)] += 1
        self.by["translator"][_translated(row)] += 1
        for solution in row.solutions:
            where = solution.provenance
            self.verdicts[where.kind][solution.evaluation.verdict] += 1
            if where.change:
                self.changes[f"{where.kind} {where.change}"][solution.evaluation.verdict] += 1
            score = solution.evaluation.score
            if score is not None:
                self.scores[where.kind].append(score)


def statistics(folder: Path) -> dict[str, Any]:
    """One JSON document. Raises TaskProblem where the folder holds no data set."""
    path = folder / assemble.TASKS
    if not path.is_file():
        unfinished = (folder / "journal").is_dir()
        hint = "give the synthesize command again: it goes on where it stopped" if unfinished else ""
        message = f"{folder} holds no {assemble.TASKS}"
        raise TaskProblem(Problem(kind="no_data", message=message, hint=hint))
    counts, broken = _Counts(), list[BrokenLine]()
    for row in read_rows(path, Row, broken):
        counts.add(row)
    report = _document(folder / assemble.REPORT)
    verdicts = Counter[str]()
    for kind in counts.verdicts.values():
        verdicts.update(kind)
    made = counts.by["translator"]
    tried = counts.tasks - made["not tried"]
    unsolved = made["refused"] + made["wrong"]
    return {
        "tasks": counts.tasks,
        "configurations": counts.configurations,
        "families": dict(sorted(counts.by["family"].items())),
        "groups": dict(sorted(counts.by["group"].items())),
        "languages": dict(counts.by["language"]),
        "decisions": dict(sorted(counts.by["decision"].items())),
        "origins": dict(counts.by["origin"]),
        "splits": dict(sorted(counts.by["split"].items())),
        "structures": len(counts.by["structure"]),
        "commonest_structures": dict(counts.by["structure"].most_common(10)),
        "difficulty": {
            name: counts.by["difficulty"][name] for name in ("not tried", *(c for c, _ in _CLASSES))
        },
        "translator": dict(sorted(counts.by["translator"].items())),
        "unsolved_share": _share(unsolved, tried),
        "unsolved_or_serial_share": _share(unsolved + made["serial"], tried),
        "solutions": sum(verdicts.values()),
        "verdicts": dict(sorted(verdicts.items())),
        "verdicts_by_provenance": {k: dict(sorted(v.items())) for k, v in sorted(counts.verdicts.items())},
        "verdicts_by_change": {k: dict(sorted(v.items())) for k, v in sorted(counts.changes.items())},
        "mean_score_by_provenance": {k: round(sum(v) / len(v), 2) for k, v in sorted(counts.scores.items())},
        "filters": {k: report.get(k) for k in ("written", "left_out", "examined", "places_left_empty")},
        "broken_rows": [f"{b.file}:{b.line}: {b.message}" for b in broken],
        "repeated_ids": counts.repeated,
        "adds_up": bool(report.get("adds_up")) and counts.tasks == report.get("tasks") and not broken,
    }


def _class(difficulty: float | None) -> str:
    if difficulty is None:
        return "not tried"
    return next(name for name, top in _CLASSES if difficulty <= top)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _translated(row: Row) -> str:
    """What the built-in translator made of the task, at its best; a program to be kept may well be serial."""
    honest = [s for s in row.solutions if s.provenance.kind in HONEST]
    if not honest:
        return "refused" if row.translator else "not tried"
    if not solved(row.solutions):
        return "wrong"
    if row.decision == "KEEP":
        return "kept"
    return "parallel" if any(parallel(s) for s in honest) else "serial"


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}

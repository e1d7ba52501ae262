"""Making a data set of C tasks, from a seed to a folder: generate, examine, solve, put together.

Generation is pure and quick, so it is done anew each time; what the judge says is kept in journals, one line
a draft, and is never asked twice. A run that was broken off, for whatever reason, goes on from there.
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from pydantic import Field, ValidationError

from sandbox.errors import TaskProblem
from sandbox.types import Data, Problem
from trainer.data import assemble
from trainer.data.generate import Generated
from trainer.data.journal import Journal, no_room, write_lines
from trainer.data.pool import Died, run_all
from trainer.data.rows import Draft
from trainer.data.sources import given_drafts, held_out
from trainer.data.work import (
    Effort,
    Examined,
    Solved,
    begin_worker,
    examine_draft,
    solve_draft,
)

#: Of the families and styles: another number, other programs for the same seed.
GENERATOR = 1


class Settings(Data):
    """What makes a data set; kept in its folder, so that it is always finished as it was begun."""

    seed: int = 1
    generator: int = GENERATOR
    sources: list[str] = Field(default_factory=list)  # folders of a user's own tasks
    held_out: list[str] = Field(default_factory=list)  # folders of programs that no task may resemble
    effort: Effort = Field(default_factory=Effort)


@dataclass(frozen=True)
class Progress:
    """For whoever watches."""

    stage: str  # "examine" or "solve"
    done: int
    of: int
    counts: Counter[str]


Report = Callable[[Progress], None]


@dataclass
class Synthesis:
    """One data set in the making."""

    folder: Path
    settings: Settings
    jobs: int
    report: Report
    examined: dict[str, Examined] = field(default_factory=dict)
    solved: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)  # lines of journals that are done again
    died: list[str] = field(default_factory=list)  # tasks whose solving ended with its worker

    def run(self, count: int, *, solutions: bool) -> assemble.Summary:
        """Raises TaskProblem for a folder of other settings, unreadable sources, or a full disk."""
        with self._locked():
            self._check_settings()
            examinations = Journal(self.folder / "journal" / "examined.jsonl", Examined)
            solving = Journal(self.folder / "journal" / "solved.jsonl", Solved)
            self.examined = {row.id: row for row in examinations.read()}
            places = solving.places()
            self.solved = set(places)
            self.broken = [f"{b.file}:{b.line}: {b.message}" for b in (*examinations.broken, *solving.broken)]
            held = held_out(self.settings.held_out)
            generated = Generated(self.settings.seed, held.index)
            given = given_drafts(self.settings.sources)
            own = [draft for draft in given.drafts if generated.admit(draft)]
            self._examine(own, examinations)
            drafts = [*own, *self._generate(generated, count, examinations)]
            taken = [d for d in drafts if self.examined[d.id].outcome == "taken"]
            try:
                if solutions:
                    self._solve(taken, solving)
            finally:  # also when interrupted: what there is becomes a data set
                summary = assemble.assemble(
                    self.folder,
                    drafts=drafts,
                    taken=taken,
                    examined=self.examined,
                    solving=solving,
                    generated=generated,
                    held_out=held,
                    unreadable=[*given.unreadable, *self.broken],
                    died=self.died,
                    settings=self.settings.model_dump(mode="json"),
                )
            return summary

    # ---- stages

    def _generate(self, generated: Generated, count: int, journal: Journal[Examined]) -> list[Draft]:
        """Drafts in their order, until `count` of them are taken or too many are not."""
        stream = generated.drafts()
        drafts: list[Draft] = []
        missing = count
        while missing > 0 and len(drafts) < 2 * count + 50:
            drafts += islice(stream, missing)
            self._examine(drafts, journal)
            missing = count - sum(self.examined[d.id].outcome == "taken" for d in drafts)
        return drafts

    def _examine(self, drafts: Sequence[Draft], journal: Journal[Examined]) -> None:
        """Has every draft examined that was not yet."""
        counts = Counter(self.examined[d.id].outcome for d in drafts if d.id in self.examined)
        missing = [d for d in drafts if d.id not in self.examined]
        if missing:
            self.report(Progress("examine", len(drafts) - len(missing), len(drafts), Counter(counts)))
        for draft, result in run_all(
            examine_draft, missing, jobs=self.jobs, begin=partial(begin_worker, os.getpid())
        ):
            if isinstance(result, Died):
                message = f"the worker died (exit code {result.exit_code})"
                result = Examined(id=draft.id, outcome="worker_failed", message=message)
            if result.outcome != "worker_failed":  # our own fault: the next run asks again
                journal.append(result)
            self.examined[draft.id] = result
            counts[result.outcome] += 1
            self.report(Progress("examine", sum(counts.values()), len(drafts), Counter(counts)))

    def _solve(self, taken: Sequence[Draft], journal: Journal[Solved]) -> None:
        counts: Counter[str] = Counter()
        missing = [
            d.model_copy(update={"inputs": self.examined[d.id].inputs})
            for d in taken
            if d.id not in self.solved
        ]
        done = len(taken) - len(missing)
        self.report(Progress("solve", done, len(taken), counts))
        work = partial(solve_draft, effort=self.settings.effort)
        for draft, result in run_all(work, missing, jobs=self.jobs, begin=partial(begin_worker, os.getpid())):
            if isinstance(result, Died):
                self.died.append(f"{draft.id}: the worker died (exit code {result.exit_code})")
                continue  # the next run tries again
            journal.append(result)
            self.solved.add(draft.id)
            done += 1
            counts.update(s.evaluation.verdict for s in result.solutions)
            self.report(Progress("solve", done, len(taken), counts))

    # ---- the folder

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process a folder."""
        with no_room(self.folder):
            (self.folder / "journal").mkdir(parents=True, exist_ok=True)
            lock = (self.folder / "journal" / "lock").open("w")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                message = f"somebody else is writing to {self.folder}"
                raise TaskProblem(
                    Problem(kind="busy", message=message, hint="wait for it, or name another folder")
                ) from error
            yield

    def _check_settings(self) -> None:
        path = self.folder / "settings.json"
        if path.exists():
            try:
                before = Settings.model_validate_json(path.read_bytes())
            except ValidationError as error:
                message = f"{path} is not what this version writes"
                raise TaskProblem(
                    Problem(kind="bad_settings", message=message, hint="name another folder with --out")
                ) from error
            fields = before.model_dump().items()
            other = [name for name, value in fields if value != self.settings.model_dump()[name]]
            if other:
                message = f"{self.folder} was begun with another {', '.join(other)}"
                hint = "give the same again, or name another folder with --out"
                raise TaskProblem(Problem(kind="other_settings", message=message, hint=hint))
        write_lines(path, [self.settings.model_dump_json(indent=1)])

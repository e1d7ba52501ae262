"""Candidates that cheat, beside honest ones that look alike: what the judge makes of each.

`table.toml` in the folder says what is expected: for every candidate its task, the way of cheating (a number
under `[ways]`) and the verdict. The candidate itself is NAME.cu, in `honest/` where it has no way. A cheat
that passes gains nothing (`no_better_than` names the honest candidate whose score it must not exceed), or is
said to be open, with the reason: it is not defended.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox import client, toolchain
from sandbox.cancellation import Cancellation
from sandbox.gpu.client import usable
from sandbox.gpu.devices import NoDevice
from sandbox.tasks.base import Inputs
from sandbox.tasks.load import load_task
from sandbox.types import Backend, Evaluation

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/fixtures/kernels/cheats"


@dataclass(frozen=True)
class Row:
    """One candidate and what is expected of the judge."""

    name: str
    task: str  # key of `Table.tasks`
    verdict: str
    way: str = ""  # key of `Table.ways`; empty: honest
    gpu: str = ""  # the verdict on a card, where it is another
    says: str = ""  # a piece of the message
    no_better_than: str = ""  # name of an honest candidate for the same task
    open: str = ""  # why this cheat gets what it wants

    @property
    def honest(self) -> bool:
        return not self.way

    @property
    def path(self) -> Path:
        return FOLDER / ("honest" if self.honest else "") / f"{self.name}.cu"

    def expected(self, backend: str) -> str:
        return self.gpu if backend == "gpu" and self.gpu else self.verdict


@dataclass(frozen=True)
class TaskEntry:
    file: str  # relative to the repository, or to the folder of the table
    inputs: Inputs

    @property
    def path(self) -> Path:
        return ROOT / self.file if "/" in self.file else FOLDER / "tasks" / self.file


@dataclass(frozen=True)
class Table:
    ways: dict[str, str]  # number -> a few words
    elsewhere: dict[
        str, str
    ]  # ways that no candidate can try -> the test that shows them, or why there is none
    tasks: dict[str, TaskEntry]
    rows: list[Row]


def read_table() -> Table:
    raw: dict[str, Any] = tomllib.loads((FOLDER / "table.toml").read_text())
    return Table(
        ways=raw["ways"],
        elsewhere=raw["elsewhere"],
        tasks={
            name: TaskEntry(entry["file"], Inputs.model_validate(entry.get("inputs", {})))
            for name, entry in raw["tasks"].items()
        },
        rows=[Row(**row) for row in [*raw["cheats"], *raw["honest"]]],
    )


@dataclass
class Judges:
    """One judge a task, so that the next reference is computed while a candidate is judged."""

    backend: Backend
    tasks: dict[str, TaskEntry]
    _open: dict[str, client.Judge] = field(default_factory=dict)
    _known: dict[Path, Evaluation] = field(default_factory=dict)
    _cancel: Cancellation = field(default_factory=Cancellation)
    _compilers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=2))

    def compile_ahead(self, row: Row) -> None:
        """Starts nvcc, which takes most of a judgement and keeps what it made on disk."""
        self._compilers.submit(
            toolchain.compile_candidate,
            row.path.read_text(),
            target=client.default_target(self.backend),
            cancel=self._cancel,
        )

    def evaluate(self, row: Row) -> Evaluation:
        """Judged once; asked again, the same evaluation."""
        if row.path not in self._known:
            self._known[row.path] = self._evaluate(row)
        return self._known[row.path]

    def _evaluate(self, row: Row) -> Evaluation:
        progress = self._judge(row.task).evaluate(row.path.read_text())
        while True:
            try:
                next(progress)
            except StopIteration as stop:
                evaluation: Evaluation = stop.value
                return evaluation

    def _judge(self, name: str) -> client.Judge:
        if name not in self._open:
            entry, cancel = self.tasks[name], Cancellation()
            task = load_task(
                entry.path.read_bytes(),
                filename=entry.path.name,
                entry=None,
                inputs=entry.inputs,
                cancel=cancel,
            )
            target = client.default_target(self.backend)
            self._open[name] = client.Judge(task, backend=self.backend, target=target, cancel=cancel)
        return self._open[name]

    def close(self) -> None:
        self._cancel.set()
        self._compilers.shutdown(wait=True, cancel_futures=True)
        for judge in self._open.values():
            judge.close()


@contextmanager
def judges(backend: Backend, table: Table) -> Iterator[Judges]:
    made = Judges(backend, table.tasks)
    try:
        yield made
    finally:
        made.close()


def fault(row: Row, table: Table, judged: Judges) -> str:
    """What is not as the row expects, as a clause; empty when all is."""
    evaluation = judged.evaluate(row)
    if evaluation.verdict != row.expected(judged.backend):
        return f"{evaluation.verdict}, not {row.expected(judged.backend)}: {evaluation.message}"
    if row.says not in evaluation.message:
        return f"does not say {row.says!r}: {evaluation.message}"
    if row.no_better_than and evaluation.verdict == "passed":
        twin = next(other for other in table.rows if other.name == row.no_better_than and other.honest)
        own, honest = evaluation.score, judged.evaluate(twin).score
        if own is None or honest is None or own > honest + 0.05:
            return f"scores {own} where the honest {twin.name} scores {honest}"
    return ""


def judged_table(table: Table, rows: Sequence[Row], say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Each of the rows, judged: on a card where there is one, else in the emulator."""
    backend: Backend = "gpu" if _has_card() else "emulator"
    with judges(backend, table) as judged:
        for row in rows:
            judged.compile_ahead(row)
        for number, row in enumerate(rows, 1):
            wrong, evaluation = fault(row, table, judged), judged.evaluate(row)
            say(f"{number} of {len(rows)}: {row.name}: {wrong or 'as expected'}")
            yield {
                "name": row.name,
                "number": row.way,
                "way": f"{row.way}: {table.ways[row.way]}" if row.way else "honest",
                "backend": backend,
                "expected": row.expected(backend),
                "verdict": evaluation.verdict,
                "score": evaluation.score,
                "open": row.open,
                "fault": wrong,
                "says": wrong or (f"not defended: {row.open}" if row.open else evaluation.message),
            }


def _has_card() -> bool:
    try:
        return bool(usable())
    except NoDevice:
        return False

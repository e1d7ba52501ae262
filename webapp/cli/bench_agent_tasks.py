"""The tasks of `bench agent`: sixty C functions of the source tree by default, the same for the same seed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import ValidationError

from sandbox.errors import TaskProblem
from sandbox.tasks.base import Inputs
from sandbox.types import Problem
from trainer.data.generate import Generated
from trainer.data.grammar.grammar import Decision
from webapp.cli.common import read_text

ROOT = Path(__file__).resolve().parents[2]
#: Written by hand, ahead of generated ones.
_FOLDERS = {"c_functions": "tests/fixtures/c_functions", "examples": "examples/c"}
COUNT = 60


@dataclass(frozen=True)
class BenchTask:
    name: str  # unique: "c_functions/01_gemv_t", "families/biquad.7"
    source: str
    filename: str
    entry: str | None
    inputs: Inputs | None
    decision: Decision = "PARALLELIZE"  # KEEP: leaving it sequential is right, and counts as passed


def default_tasks(count: int, seed: int) -> list[BenchTask]:
    """The functions of the tests and examples, then generated ones of all families in turn."""
    found = [task for name, folder in _FOLDERS.items() for task in _of_folder(ROOT / folder, name)]
    return (found + list(islice(_generated(seed), max(count - len(found), 0))))[:count]


def tasks_of(folder: Path) -> list[BenchTask]:
    """The .c and .py files of a folder, each with the .toml beside it. Raises TaskProblem where none is."""
    found = list(_of_folder(folder, folder.name))
    if not found:
        raise TaskProblem(Problem(kind="no_file", message=f"{folder} has no .c or .py file to translate"))
    return found


def _of_folder(folder: Path, name: str) -> Iterator[BenchTask]:
    for path in sorted([*folder.glob("*.c"), *folder.glob("*.py")]):
        block = path.with_suffix(".toml")
        inputs = _inputs(block) if block.exists() else None
        yield BenchTask(f"{name}/{path.stem}", read_text(path), path.name, None, inputs)


def _inputs(path: Path) -> Inputs:
    try:
        return Inputs.model_validate(tomllib.loads(read_text(path)))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise TaskProblem(Problem(kind="bad_inputs", message=str(error), file=str(path))) from error


def _generated(seed: int) -> Iterator[BenchTask]:
    for draft in Generated(seed).drafts():
        yield BenchTask(
            name=f"families/{draft.family}.{draft.index}",
            source=draft.source,
            filename=f"{draft.entry}.c",
            entry=draft.entry,
            inputs=draft.inputs[0] if draft.inputs else None,
            decision=draft.decision,
        )

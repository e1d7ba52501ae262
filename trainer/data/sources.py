"""Programs from elsewhere: a user's own tasks, and held-out sets that no task may resemble."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from sandbox.errors import TaskProblem
from sandbox.tasks.base import Inputs
from sandbox.tasks.load import MAX_SOURCE_BYTES, decode
from sandbox.types import Problem
from trainer.data.duplicates import Index, fingerprint
from trainer.data.rows import Draft, content_id

_SUFFIXES = (".c", ".cu", ".cpp", ".h", ".py")


@dataclass
class Given:
    """A user's own tasks."""

    drafts: list[Draft] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)  # files that are none, and why


def given_drafts(folders: Sequence[str]) -> Given:
    """Every `.c` file below the folders, with the `.toml` beside it as its inputs block.

    The folder that a file lies in is its family. Raises TaskProblem for a folder that is not there.
    """
    found = Given()
    for folder in map(Path, folders):
        _require(folder)
        for path in sorted(folder.rglob("*.c")):
            try:
                source = decode(path.read_bytes(), path.name)
                inputs = _inputs(path.with_suffix(".toml"))
            except (OSError, TaskProblem, tomllib.TOMLDecodeError, ValidationError) as error:
                found.unreadable.append(f"{path}: {error}")
                continue
            found.drafts.append(
                Draft(
                    id=content_id("c", None, source),
                    index=-1,
                    family=f"given/{path.parent.name}",
                    group="given",
                    language="c",
                    entry=None,
                    source=source,
                    inputs=[inputs],
                    decision="PARALLELIZE",
                    origin="given",
                )
            )
    return found


def _inputs(path: Path) -> Inputs:
    return Inputs.model_validate(tomllib.loads(path.read_text())) if path.exists() else Inputs()


@dataclass
class HeldOut:
    """Programs that no task may resemble."""

    index: Index = field(default_factory=Index)
    programs: int = 0
    unreadable: list[str] = field(default_factory=list)


def held_out(folders: Sequence[str]) -> HeldOut:
    """Every program below the folders: source files, and rows of JSON lines. Raises TaskProblem."""
    found = HeldOut()
    for folder in map(Path, folders):
        _require(folder)
        for name, text in _programs(folder, found.unreadable):
            found.index.add(name, fingerprint(text))
            found.programs += 1
    return found


def _programs(folder: Path, unreadable: list[str]) -> Iterator[tuple[str, str]]:
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder.parent))
        if path.suffix in _SUFFIXES and path.stat().st_size <= MAX_SOURCE_BYTES:
            yield name, path.read_text(errors="replace")
        elif path.suffix == ".jsonl":
            with path.open(errors="replace") as file:
                for number, line in enumerate(file, 1):
                    text = _source_of(line)
                    if text is None:
                        unreadable.append(f"{name}:{number}: no row with a source")
                    else:
                        yield f"{name}:{number}", text


def _source_of(line: str) -> str | None:
    """Of a row of ours or of a published data set."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    if not isinstance(row, dict):
        return None
    return next((row[key] for key in ("source", "seq_code", "code") if isinstance(row.get(key), str)), None)


def _require(folder: Path) -> None:
    if not folder.is_dir():
        raise TaskProblem(Problem(kind="no_folder", message=f"there is no folder {folder}"))

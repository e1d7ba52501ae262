"""Files that survive being broken off: append-only journals of JSON lines, and whole files or none.

A line is there when its newline is there. What a kill left behind half written is cut off at the next start
and done again; a line that is no valid row is reported and done again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from sandbox.errors import TaskProblem
from sandbox.types import Problem

Model = TypeVar("Model", bound=BaseModel)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class BrokenLine:
    """A line that could not be read."""

    file: str
    line: int
    message: str


@dataclass
class Journal(Generic[Model]):
    """One journal. Only one process writes to it."""

    path: Path
    model: type[Model]
    broken: list[BrokenLine] = field(default_factory=list)  # of the last reading

    def read(self) -> Iterator[Model]:
        """All whole and valid lines, in order; the others are listed in `broken`."""
        self._repair()
        self.broken = []
        return read_rows(self.path, self.model, self.broken)

    def places(self, key: str = "id") -> dict[str, int]:
        """Where the line of each id begins: for rows too large to be held together. The last line counts."""
        self._repair()
        self.broken = []
        found: dict[str, int] = {}
        for number, at, line in _lines(self.path):
            try:
                found[str(from_json(line)[key])] = at
            except (ValueError, KeyError, TypeError) as error:
                self.broken.append(BrokenLine(self.path.name, number, str(error)))
        return found

    def at(self, place: int) -> Model:
        """The row whose line begins there."""
        with self.path.open("rb") as file:
            file.seek(place)
            return self.model.model_validate_json(file.readline())

    def append(self, row: Model) -> None:
        """Raises TaskProblem where there is no room left; what stands there before stays whole."""
        data = row.model_dump_json().encode() + b"\n"
        with no_room(self.path):
            before = self.path.stat().st_size if self.path.exists() else 0
            try:
                with self.path.open("ab") as file:
                    file.write(data)
            except OSError:
                with contextlib.suppress(OSError):
                    os.truncate(self.path, before)
                raise

    def _repair(self) -> None:
        """Cuts off what a kill left of the last line."""
        if not self.path.exists():
            return
        with self.path.open("rb+") as file:
            end = file.seek(0, os.SEEK_END)
            at = end
            while at > 0:
                start = max(0, at - 65536)
                file.seek(start)
                found = file.read(at - start).rfind(b"\n")
                if found >= 0:
                    at = start + found + 1
                    break
                at = start
            if at < end:
                file.truncate(at)


def read_rows(path: Path, model: type[Model], broken: list[BrokenLine]) -> Iterator[Model]:
    """Valid rows, one at a time; what is wrong with other lines is added to `broken`.

    Raises TaskProblem where the file cannot be read; a file that is not there has no rows.
    """
    for number, _, line in _lines(path):
        if not line.strip():
            continue
        try:
            row = model.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            broken.append(
                BrokenLine(path.name, number, f"{where}: {first['msg']}" if where else first["msg"])
            )
            continue
        yield row


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """(number, where it begins, line)."""
    at = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield number, at, line
                at += len(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise TaskProblem(
            Problem(kind="no_file", message=f"cannot read {path}: {error.strerror}", file=str(path))
        ) from error


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """The whole file or none of it. Raises TaskProblem where there is no room."""
    with no_room(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def no_room(path: Path) -> Iterator[None]:
    """A full disk as a problem with what to do. Other errors of the file system are problems as well."""
    try:
        yield
    except OSError as error:
        full = error.errno in _FULL
        message = f"no room left to write {path}" if full else f"cannot write {path}: {error.strerror}"
        hint = "free some space and give the same command again; it goes on where it stopped" if full else ""
        kind = "no_room" if full else "bad_output"
        raise TaskProblem(Problem(kind=kind, message=message, hint=hint, file=str(path))) from error

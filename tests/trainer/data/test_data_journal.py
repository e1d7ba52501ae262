"""Files that were broken off, spoilt or ran out of room: what was there stays, and is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.errors import TaskProblem
from sandbox.types import Data
from trainer.data.journal import Journal, write_lines


class Line(Data):
    id: str
    value: int


def journal(folder: Path) -> Journal[Line]:
    return Journal(folder / "lines.jsonl", Line)


def test_a_torn_last_line_is_cut_off_and_the_rest_is_there(tmp_path: Path) -> None:
    one = journal(tmp_path)
    for number in range(3):
        one.append(Line(id=str(number), value=number))
    whole = one.path.read_bytes()
    for cut in range(1, len(whole.splitlines()[-1]) + 1):
        one.path.write_bytes(whole[:-cut])
        again = journal(tmp_path)
        rows = list(again.read())
        assert [row.value for row in rows] == [0, 1]
        assert not again.broken
        again.append(Line(id="2", value=2))
        assert one.path.read_bytes() == whole


def test_broken_lines_are_named_and_the_others_read(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text(
        '{"id":"a","value":1}\nnot json\n{"id":"b"}\n{"id":"c","value":3,"more":1}\n{"id":"d","value":4}\n'
    )
    one = journal(tmp_path)
    assert [row.id for row in one.read()] == ["a", "d"]
    assert [(b.file, b.line) for b in one.broken] == [("lines.jsonl", n) for n in (2, 3, 4)]
    assert "value" in one.broken[1].message
    assert sorted(one.places()) == ["a", "b", "c", "d"]
    assert [b.line for b in one.broken] == [2]
    assert one.at(one.places()["d"]).value == 4


def test_no_file_has_no_rows(tmp_path: Path) -> None:
    assert list(journal(tmp_path).read()) == []
    assert journal(tmp_path).places() == {}


def test_a_full_disk_is_a_problem_that_says_what_to_do_and_leaves_whole_lines(tmp_path: Path) -> None:
    """The limit on a file's size stands for the disk's: writing fails half way through a line."""
    script = f"""
import resource
from pathlib import Path
from sandbox.errors import TaskProblem
from sandbox.types import Data
from trainer.data.journal import Journal, write_lines
class Line(Data):
    id: str
    value: int
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
one = Journal(Path({str(tmp_path / "lines.jsonl")!r}), Line)
written = 0
try:
    while True:
        one.append(Line(id=str(written), value=written))
        written += 1
except TaskProblem as error:
    print(written, error.problem.kind, error.problem.hint)
try:
    write_lines(Path({str(tmp_path / "whole.txt")!r}), ["x" * 200])
except TaskProblem as error:
    print(error.problem.kind)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    written, kind, hint = first.split(" ", 2)
    assert kind == second == "no_room"
    assert "same command again" in hint
    again = journal(tmp_path)
    assert len(list(again.read())) == int(written) > 2
    assert os.listdir(tmp_path) == ["lines.jsonl"]  # no half of the other file


def test_whole_files_are_replaced_or_left(tmp_path: Path) -> None:
    path = tmp_path / "whole.txt"
    write_lines(path, ["one"])

    def failing() -> object:
        yield "two"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_lines(path, failing())  # type: ignore[arg-type]
    assert path.read_text() == "one\n"
    assert os.listdir(tmp_path) == ["whole.txt"]
    with pytest.raises(TaskProblem):
        write_lines(tmp_path / "nowhere" / "x", ["one"])

"""Threads go along with their code: recorded edits of CUDA sources, the place after each written by hand.

In the fixtures a line that begins with "a» " is one of those that thread a is about; the mark is none of the
code. A thread without marks in a version is to be gone there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from webapp.reviews.anchoring import Range, context_hash, found_in, lines_of, quoted

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "reviews"
CASES = sorted(path.stem for path in FOLDER.glob("*.json"))
_MARK = re.compile(r"^([a-z])» ?")


def versions(name: str) -> list[tuple[str, dict[str, Range]]]:
    """The sources of a fixture, each with where its threads are."""
    found = []
    for lines in json.loads((FOLDER / f"{name}.json").read_text())["versions"]:
        places: dict[str, Range] = {}
        for number, line in enumerate(lines, 1):
            if mark := _MARK.match(line):
                first = places[mark[1]].line if mark[1] in places else number
                places[mark[1]] = Range(first, number)
        found.append(("\n".join(_MARK.sub("", line) for line in lines) + "\n", places))
    return found


def test_there_are_thirty_recorded_edits() -> None:
    assert len(CASES) >= 30


@pytest.mark.parametrize("name", CASES)
def test_a_thread_is_where_a_person_would_look_for_it(name: str) -> None:
    (first, threads), *following = versions(name)
    for thread, start in threads.items():
        last, place = first, start
        for number, (source, places) in enumerate(following, 2):
            found = found_in(last, place, source)
            if found is None and last != first:
                found = found_in(first, start, source)
            assert found == places.get(thread), f"thread {thread} in version {number}"
            if found is not None:
                last, place = source, found


@pytest.mark.parametrize("name", CASES)
def test_nothing_moves_where_nothing_changes(name: str) -> None:
    for source, places in versions(name):
        for place in places.values():
            assert found_in(source, place, source.replace("\r\n", "\n")) == place
            shifted = found_in(source, place, "// a line above\n" + source)
            assert shifted == Range(place.line + 1, place.end_line + 1)


def test_what_a_thread_keeps_of_its_place() -> None:
    source = "a\r\nb\r\nc\r\nd\r\ne\r\n"
    assert lines_of(source) == ["a", "b", "c", "d", "e"]
    assert quoted(source, Range(2, 3)) == "b\nc"
    around = context_hash(source, Range(1, 1))
    assert around == context_hash("a\nb\nc\nd\nother\n", Range(1, 1))
    assert around != context_hash("a\nb\nc\nother\ne\n", Range(1, 1))


def test_a_large_file_of_like_kernels_keeps_nobody_waiting() -> None:
    body = "    int i = blockIdx.x * 256 + t;\n    if (i >= n) return;\n    x[i] = x[i] * {0}.0f;\n}}\n"
    source = "".join(f"__global__ void k{i}(int n, float *x) {{\n" + body.format(i) for i in range(500))
    changed = source.replace("x[i] = x[i] * 250.0f;", "float v = x[i];\n    x[i] = v * 250.5f;")
    found = found_in(source, Range(250 * 5 + 4, 250 * 5 + 4), changed)
    assert found is not None
    assert "250.5f" in quoted(changed, found)
    assert found_in(source, Range(300 * 5 + 3, 300 * 5 + 3), changed) == Range(300 * 5 + 4, 300 * 5 + 4)

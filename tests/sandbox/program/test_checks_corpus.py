"""Every kind of fault as a whole program, and beside it the program that does it right: no alarm there."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_program import build, run

PROGRAMS = Path(__file__).resolve().parents[2] / "fixtures" / "programs" / "checks"

#: Program -> kind of its finding, and a mark on its line (None: the host did it).
FAULTS: dict[str, tuple[str, str | None]] = {
    "out_of_bounds_global": ("out of bounds", "// the last one"),
    "out_of_bounds_shared": ("out of bounds", "// counts from the end"),
    "out_of_bounds_local": ("out of bounds", "// one a place"),
    "out_of_bounds_constant": ("out of bounds", "// all taps"),
    "into_another_allocation": ("out of bounds", "// where it leads"),
    "misaligned": ("misaligned", "// a record each"),
    "null": ("null", "// of each link"),
    "use_after_free": ("use after free", "// still there?"),
    "uninitialised_global": ("uninitialised", "// to what?"),
    "uninitialised_again": ("uninitialised", "// of what was copied"),
    "uninitialised_shared": ("uninitialised", "// the bin of the thread"),
    "uninitialised_local": ("uninitialised", "// one of nine"),
    "race_shared": ("race", "// a value each"),
    "race_blocks": ("race", "// in place?"),
    "race_warps": ("race", "// its own"),
    "race_lanes": ("race", "// of another lane"),
    "barrier_divergent": ("barrier", "// not for all"),
    "barrier_missing": ("barrier", "// of two warps"),
    "deadlock": ("deadlock", "// for whom?"),
    "shuffle": ("barrier", "// among the first"),
    "assert": ("assert", "// of what is no root"),
    "stack_overflow": ("stack overflow", None),
    "leak": ("leak", None),
    "host_copy": ("out of bounds", None),
    "host_free": ("bad free", None),
}
CLEAN = sorted(path.stem for path in PROGRAMS.glob("*_clean.cu"))


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_the_fault_is_found(jail: None, tmp_path: Path, name: str) -> None:
    kind, mark = FAULTS[name]
    source = PROGRAMS / f"{name}_faulty.cu"
    found = run(build(source, tmp_path)).faults
    assert {finding["kind"] for finding in found} == {kind}, found
    if mark is not None:
        lines = [n for n, text in enumerate(source.read_text().split("\n"), 1) if mark in text]
        # A launch that goes on finds what follows from the fault, too.
        assert set(lines) <= {finding["line"] for finding in found}, found


@pytest.mark.parametrize("name", CLEAN)
def test_what_is_right_gives_no_alarm(jail: None, tmp_path: Path, name: str) -> None:
    ran = run(build(PROGRAMS / f"{name}.cu", tmp_path))
    assert (ran.returncode, ran.faults, ran.unsupported) == (0, [], {}), ran

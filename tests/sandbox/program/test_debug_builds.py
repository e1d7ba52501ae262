"""Programs built with -G do what optimised ones do, with checks and without."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_program import build, run

from sandbox import program

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
CHECKED = HERE.parents[1] / "fixtures" / "programs" / "checks"

pytestmark = pytest.mark.usefixtures("jail")


@pytest.mark.parametrize(
    "source",
    [
        *(PROGRAMS / "tiles.cu", PROGRAMS / "surfaces.cu"),
        *(CHECKED / "shuffle_clean.cu", CHECKED / "ordered_hand_overs_clean.cu"),
    ],
    ids=lambda path: path.stem,
)
def test_a_debug_build_gives_what_an_optimised_one_does(source: Path, tmp_path: Path) -> None:
    told = set()
    for options in ([], ["-G"]):
        executable = build(source, tmp_path, "-DONE_SIZE", *options)
        for checks in (program.CHECKS, ()):
            result = run(executable, checks=checks)
            assert (result.returncode, result.stderr, result.unsupported) == (0, "", {})
            assert [fault for fault in result.faults if fault["severity"] == "error"] == []
            told.add(result.stdout)
    assert len(told) == 1

"""The CUDA runtime as whole programs use it: each program checks itself; here its end and reports count."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_program import Ran, build, run

PROGRAMS = Path(__file__).parent / "programs"


def ran(name: str, folder: Path, *arguments: str, **options: str) -> Ran:
    return run(build(PROGRAMS / f"{name}.cu", folder), *arguments, **options)


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("name", ["saxpy"])
def test_a_program_that_checks_itself(name: str, tmp_path: Path) -> None:
    result = ran(name, tmp_path)
    assert result.ok, result

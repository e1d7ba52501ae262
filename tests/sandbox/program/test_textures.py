"""Textures and surfaces, by a program that works out on the host what it fetches."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_program import build, run

PROGRAM = Path(__file__).parent / "programs" / "surfaces.cu"

pytestmark = pytest.mark.usefixtures("jail")


@pytest.fixture(scope="module")
def textures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(PROGRAM, tmp_path_factory.mktemp("textures"))


def test_textures_and_surfaces(textures: Path) -> None:
    result = run(textures)
    assert (result.returncode, result.stderr) == (0, "")
    assert (result.faults, result.unsupported) == ([], {})


def test_a_write_outside_a_surface(textures: Path) -> None:
    result = run(textures, "outside")
    assert [fault["kind"] for fault in result.faults] == ["out of bounds"]
    assert "surface" in result.faults[0]["message"]

"""docs/metrics.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox.metrics import WEIGHTS
from sandbox.toolchain import find_toolkit

PAGE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"


def test_weights() -> None:
    rows = re.findall(r"^\| ([a-z ]+) \| (0\.\d\d) \|", PAGE.read_text(), re.MULTILINE)
    assert {name.replace(" ", "_"): float(weight) for name, weight in rows} == dict(WEIGHTS)


@pytest.mark.usefixtures("jail")
def test_table() -> None:
    pytest.importorskip("sandbox.emulator.client", reason="the emulator is not there")
    from textbook import table

    version = find_toolkit().version
    if not version.startswith("13.0."):
        pytest.skip(f"the page's numbers are of nvcc 13.0, here is {version}")
    between = re.search(r"<!-- table -->\n(.*?)\n?<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert between is not None
    assert between[1] == table(), "run: python tests/sandbox/metrics/textbook.py"

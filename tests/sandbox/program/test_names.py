"""Kernels' names for people: demangled, and short enough for a line."""

from __future__ import annotations

import pytest

from sandbox.program.names import Demangler, shortened

LONG = "int" * 50


@pytest.mark.usefixtures("jail")
def test_names_are_demangled() -> None:
    assert Demangler()("_Z5scalePfif") == "scale(float*, int, float)"
    assert Demangler()("plain") == "plain"
    assert Demangler()("\x1b[2J") == " [2J"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("scale(float*, int)", "scale(float*, int)"),
        (f"void a::kernel<{LONG}, b<c>, (d)1>(int*, {LONG}<int>)", "void a::kernel<...>(...)"),
        (f"void (anonymous namespace)::kernel({LONG})", "void (anonymous namespace)::kernel(...)"),
        (f"void a<{LONG}>::b<int>::kernel(int)", "void a<...>::b<...>::kernel(...)"),
    ],
)
def test_long_names_lose_their_arguments(name: str, short: str) -> None:
    assert shortened(name) == short

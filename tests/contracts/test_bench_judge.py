"""`kernelwright bench judge`: what it counts, and that it judges."""

from __future__ import annotations

import json

import pytest

from tests.sandbox.gpu.host_card import HostCard, host_card, host_driver
from webapp.cli.bench_judge import Span, overlapping
from webapp.cli.main import main

__all__ = ["host_card", "host_driver"]  # fixtures


def test_only_different_stages_overlap() -> None:
    compiling = [Span("compile", 0, 4), Span("compile", 1, 3)]
    assert overlapping(compiling) == 0
    assert overlapping([*compiling, Span("replay", 2, 6)]) == 2
    assert overlapping([Span("compile", 0, 2), Span("replay", 2, 3)]) == 0


@pytest.mark.usefixtures("jail")
def test_it_judges_several_at_a_time_and_knows_the_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--backend", "emulator", "--only", "right/saxpy_plain,saxpy_last,translated/saxpy"]
    assert main(["bench", "judge", *arguments, "--jobs", "2", "--repeat", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["judged"], result["backend"], result["surprises"]) == (3, "emulator", [])
    assert result["per_minute"] == pytest.approx(60 * 3 / result["seconds"])
    assert result["latency"]["p50"] <= result["latency"]["p99"] <= result["seconds"]
    assert result["in_flight"] > 1
    assert {"compile", "replay", "verify"} <= set(result["stages"])


def test_on_a_card_it_times_and_says_how_much_of_it_was_used(
    host_card: HostCard, capsys: pytest.CaptureFixture[str]
) -> None:
    """The card is the tests' own driver: how fast it is says nothing."""
    arguments = ["--backend", "gpu", "--only", "right/saxpy_plain", "--repeat", "2", "--jobs", "2"]
    assert main(["bench", "judge", *arguments]) == 0
    said = capsys.readouterr().out
    assert f"Host Card, {host_card.uuid}" in said
    assert "timed: " in said
    assert "the goal is 60 a minute" in said
    assert "| time |" in said
    assert main(["bench", "judge", *arguments, "--no-timing"]) == 0
    assert "the goal is 100 a minute" in capsys.readouterr().out


def test_names_that_fit_nothing_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "judge", "--only", "none-like-this"]) == 2
    assert "right/saxpy_plain" in capsys.readouterr().err

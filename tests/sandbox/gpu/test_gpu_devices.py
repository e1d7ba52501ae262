"""What nvidia-smi says, taken apart; locks and marks of cards."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from host_card import health

from sandbox.cancellation import Cancellation
from sandbox.gpu.client import usable
from sandbox.gpu.devices import Device, NoDevice, clocks_slowed, devices, parse_devices, parse_sickness
from sandbox.gpu.lease import heal, leased, quarantine, quarantined

LISTED = """0, GPU-1, NVIDIA H200, 9.0, 580.159.03, Default, Enabled, 143771
1, GPU-2, NVIDIA GeForce RTX 3090, 8.6, 580.159.03, Exclusive_Process, [N/A], 24576
"""
CARD, OTHER = parse_devices(LISTED)


def test_cards_are_listed() -> None:
    assert CARD.arch == "sm_90"
    assert OTHER.compute_capability == (8, 6)
    assert str(CARD) == (
        "NVIDIA H200, GPU-1, sm_90, 143,771 MiB, driver 580.159.03, compute mode Default, ECC Enabled"
    )
    assert parse_devices("No devices were found\n") == []


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (health("GPU-1"), ""),
        (health("GPU-1", action="N/A"), ""),
        (health("GPU-1", action="Drain and Reset"), "asks for this: Drain and Reset"),
        (health("GPU-1", uncorrectable=3), "3 errors of memory that ECC could not correct"),
        (health("GPU-1").replace("failure>No<", "failure>Yes<"), "could not be replaced"),
        (health("GPU-2"), "does not list it any more"),
        ("Unable to determine the device handle", "cannot be read"),
    ],
)
def test_sickness(said: str, reason: str) -> None:
    found = parse_sickness(said, "GPU-1")
    assert reason in found
    assert bool(reason) == bool(found)


@pytest.mark.parametrize(
    ("target", "runs"),
    [("sm_90", True), ("sm_90a", True), ("sm_80", False), ("sm_100", False), ("sm_100a", False)],
)
def test_which_code_a_card_runs(target: str, runs: bool) -> None:
    assert CARD.runs(target) is runs


def test_later_minor_versions_run_earlier_code() -> None:
    assert OTHER.runs("sm_80")
    assert not OTHER.runs("sm_89")


def tool(folder: Path, script: str) -> None:
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "nvidia-smi").chmod(0o755)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'No devices were found'", "lists no device"),
        ("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", "version mismatch"),
        (None, "there is no nvidia-smi"),
    ],
)
def test_why_there_is_no_card(
    script: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin" if script else str(tmp_path))
    if script:
        tool(tmp_path, script)
    with pytest.raises(NoDevice, match=words):
        devices()


def test_everything_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_bindings() -> None:
        raise NoDevice("no bindings", "get them")

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sandbox.gpu.client.require_bindings", no_bindings)
    with pytest.raises(NoDevice) as caught:
        usable("sm_90")
    assert str(caught.value) == "no NVIDIA driver: there is no nvidia-smi; no bindings"
    assert "get them" in caught.value.how


def test_slowed_clocks_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for state, reasons in (("Active", ["sw_thermal_slowdown"]), ("Not Active", [])):
        (tmp_path / "health").write_text(health("GPU-1", hot=state))
        tool(tmp_path, f"cat {tmp_path}/health")
        assert clocks_slowed("GPU-1") == reasons


def test_a_second_lease_takes_the_second_card(tmp_path: Path) -> None:
    cancel = Cancellation()
    with leased([CARD, OTHER], cancel, folder=tmp_path) as first:
        with leased([CARD, OTHER], cancel, folder=tmp_path) as second:
            assert (first, second) == (CARD, OTHER)
        assert _in_time([CARD, OTHER], tmp_path) is OTHER
    assert _in_time([CARD, OTHER], tmp_path) is CARD


def _in_time(cards: list[Device], folder: Path) -> Device:
    cancel = Cancellation()
    timer = threading.Timer(5, cancel.set)
    timer.start()
    try:
        with leased(cards, cancel, folder=folder) as card:
            return card
    finally:
        timer.cancel()


def test_a_mark_lasts_until_the_card_is_healed(tmp_path: Path) -> None:
    quarantine("GPU-1", "it smokes", folder=tmp_path)
    assert quarantined("GPU-1", folder=tmp_path) == "it smokes"
    assert _in_time([CARD, OTHER], tmp_path) is OTHER
    with pytest.raises(NoDevice, match="it smokes"), leased([CARD], Cancellation(), folder=tmp_path):
        pass
    heal("GPU-1", folder=tmp_path)
    assert _in_time([CARD], tmp_path) is CARD

"""The doctor on this machine, and on one that lacks things."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import doctor
from sandbox.toolchain import find


def test_every_finding_is_either_fine_or_says_what_to_do() -> None:
    findings = doctor.examine()
    names = [finding.name for finding in findings]
    assert names == ["nvcc", "host_compiler", "jail", "native", "programs", "libraries", "torch", "gpu"]
    for finding in findings:
        assert finding.detail
        assert finding.ok or finding.how or not finding.needed


def test_a_missing_nvcc_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNELWRIGHT_NVCC", str(tmp_path / "nvcc"))
    find.find_toolkit.cache_clear()
    try:
        finding = doctor.examine()[0]
    finally:
        find.find_toolkit.cache_clear()
    assert not finding.ok
    assert "KERNELWRIGHT_NVCC" in finding.how


def test_a_machine_without_a_driver_is_told_what_that_means(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "emulator" in doctor._gpu().detail

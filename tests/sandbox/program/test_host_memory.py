"""Memory that host and kernels share, and memory that is large."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_program import build, run

PROGRAMS = Path(__file__).parent / "programs"

pytestmark = pytest.mark.usefixtures("jail")

#: How a kernel sees what it waits for, and what that is called.
WAITS = {
    "managed": "managed memory of allocation 1",
    "mapped": "pinned host memory of allocation 1",
    "registered": "pinned host memory of allocation 1",
    "atomic": "managed memory of allocation 1",
    "variable": "variable",
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("checks", [("memcheck", "synccheck"), ()])
def test_a_kernel_that_waits_for_the_host_is_unsupported_and_ends(
    tmp_path: Path, checks: tuple[str, ...], threads: int
) -> None:
    executable = build(PROGRAMS / "waits_for_host.cu", tmp_path)
    for how, name in WAITS.items():
        ran = run(executable, how, checks=checks, threads=threads)
        if how == "registered" and not checks:
            name = "the host's memory"
        [(kernel, why)] = ran.unsupported.items()
        assert kernel == ("_Z15wait_atomicallyPi" if how == "atomic" else "_Z4waitPVi")
        assert why == (
            f"a kernel that waits for the host: it reads {name} until the host changes it, "
            "and here a launch ends before the host goes on"
        )
        assert not any(fault["severity"] == "error" for fault in ran.faults)
        assert ran.stdout == "cudaErrorNotSupported\n", ran


@pytest.mark.parametrize("checks", [("memcheck", "racecheck", "initcheck", "synccheck"), ("racecheck",), ()])
@pytest.mark.parametrize("profile", [False, True])
def test_kernels_use_registered_memory_at_the_hosts_address(
    tmp_path: Path, checks: tuple[str, ...], profile: bool
) -> None:
    ran = run(build(PROGRAMS / "registered.cu", tmp_path), checks=checks, profile=profile)
    assert ran.ok, ran


def test_registered_memory_has_an_end(tmp_path: Path) -> None:
    source = PROGRAMS / "registered.cu"
    ran = run(build(source, tmp_path), "too far")
    line = next(n for n, text in enumerate(source.read_text().split("\n"), 1) if "// one too far" in text)
    assert [(fault["kind"], fault["line"]) for fault in ran.faults if fault["severity"] == "error"] == [
        ("out of bounds", line)
    ]


@pytest.mark.parametrize("profile", [False, True])
def test_large_memory_takes_what_is_touched(tmp_path: Path, profile: bool) -> None:
    ran = run(build(PROGRAMS / "sparse.cu", tmp_path), profile=profile)
    assert (ran.returncode, ran.stderr, ran.faults, ran.unsupported) == (0, "", [], {})
    [note] = ran.notes
    assert note.startswith("races in the memory of allocation 1 (8,589,")
    assert int(ran.stdout) < 300, ran  # MiB, of 8 GiB; 1,024 places are touched

"""What the emulator has no room for is said; nothing is given up in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_program import build, run

from sandbox.limits import MIB
from sandbox.program import CHECKS

PROGRAMS = Path(__file__).parent / "programs"
ASKS = """
#include <cstdio>
int main() {
  int *x;
  for (int i = 0; i < 3; ++i) puts(cudaGetErrorName(cudaMalloc(&x, size_t{1} << 30)));
  puts(cudaGetErrorName(cudaMalloc(&x, 4)));
  cudaFree(x);
}
"""

pytestmark = pytest.mark.usefixtures("jail")


def test_races_in_memory_that_is_too_large_to_watch_are_noted_once(tmp_path: Path) -> None:
    executable = build(PROGRAMS / "large_race.cu", tmp_path)
    small, large = run(executable, "100"), run(executable, "600")
    assert (small.returncode, {fault["kind"] for fault in small.faults}, small.notes) == (0, {"race"}, [])
    assert (large.returncode, large.stdout, large.faults) == (0, "cudaSuccess\n", [])
    [note] = large.notes
    assert note.startswith("races in the memory of allocation 1 (629,145,600 bytes) are not looked for: ")
    assert run(executable, "600", checks=("memcheck",)).ok  # nobody asked


def test_more_allocations_than_a_process_has_mappings_for(tmp_path: Path) -> None:
    executable = build(PROGRAMS / "many_allocations.cu", tmp_path)
    result = run(executable, checks=("memcheck", "initcheck"))
    assert (result.stdout, result.ok) == ("fine\n", True), result
    watched = run(executable)
    assert (watched.returncode, watched.stdout, watched.faults) == (0, "fine\n", [])
    assert watched.notes
    assert all("are not looked for: at most" in note for note in watched.notes)


def test_an_allocation_that_fails_says_why_once(tmp_path: Path) -> None:
    source = tmp_path / "asks.cu"
    source.write_text(ASKS)
    result = run(build(source, tmp_path), memory_bytes=512 * MIB)
    assert result.stdout == "cudaErrorMemoryAllocation\n" * 3 + "cudaSuccess\n"
    [note] = result.notes
    assert note.startswith("no room here for 1,073,741,824 bytes (the memory of allocation 1): ")
    assert "--memory" in note


def test_recursion_as_deep_as_the_stack_that_the_program_asked_for(tmp_path: Path) -> None:
    executable = build(PROGRAMS / "deep_calls.cu", tmp_path)
    for checks in (CHECKS, ()):
        result = run(executable, "800", str(100_000), checks=checks)
        assert (result.stdout, result.ok) == ("fine\n", True), result
    result = run(executable, "800", "0")
    assert result.returncode != 0
    [fault] = result.faults
    assert fault["kind"] == "stack overflow"
    assert "than a thread has here (16,448 bytes). cudaDeviceSetLimit(cudaLimitStackSize" in fault["message"]
    result = run(executable, "8", str(512 * 1024), memory_bytes=64 * MIB)
    assert result.returncode != 0
    [why] = result.unsupported.values()
    assert why.startswith("no room here for stacks of 524,288 bytes for 64 threads a block")

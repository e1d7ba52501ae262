"""Some of the checks: each tells its own findings, and memory is safe whichever are chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_program import build, run
from test_checks_corpus import FAULTS, PROGRAMS

from sandbox.program import CHECKS

#: Kind of finding -> its check; what is not here belongs to memcheck.
OF_OTHERS = {
    "race": "racecheck",
    "uninitialised": "initcheck",
    "barrier": "synccheck",
    "deadlock": "synccheck",
}
#: After these a launch has failed, on a device too.
FATAL = ("out of bounds", "misaligned", "null", "use after free", "assert", "stack overflow")

pytestmark = pytest.mark.usefixtures("jail")


def check_of(kind: str) -> str:
    return OF_OTHERS.get(kind, "memcheck")


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_each_check_alone_tells_its_own_findings_and_no_others(tmp_path: Path, name: str) -> None:
    kind, mark = FAULTS[name]
    executable = build(PROGRAMS / f"{name}_faulty.cu", tmp_path)
    for check in CHECKS:
        ran = run(executable, checks=(check,))
        told = {finding["kind"] for finding in ran.faults}
        assert {check_of(one) for one in told} <= {check}, (check, ran)
        if check == check_of(kind):
            assert told == {kind}, ran
        elif mark is not None and kind in FATAL:
            [note] = ran.notes
            assert f"failed, as it would on a device: {kind}" in note, ran
            assert note.endswith(f"--check={check_of(kind)} tells more"), ran
        assert ran.signal is None, ran


def test_an_access_that_no_check_looks_at_reaches_nothing(tmp_path: Path) -> None:
    source = tmp_path / "wild.cu"
    source.write_text(
        """
        #include <cstdio>
        __global__ void poke(int *at) { *at = 13; }
        int main() {
            static int mine = 7;
            poke<<<1, 1>>>(&mine);  // of the host, and not registered
            cudaError_t error = cudaDeviceSynchronize();
            std::printf("%d %s\\n", mine, cudaGetErrorName(error));
        }
        """
    )
    executable = build(source, tmp_path)
    for check in CHECKS:
        ran = run(executable, checks=(check,))
        assert ran.stdout == "7 cudaErrorIllegalAddress\n", ran
        assert bool(ran.faults) == (check == "memcheck")
        assert bool(ran.notes) == (check != "memcheck")


@pytest.mark.parametrize("checks", [CHECKS, ("racecheck", "initcheck"), ()])
def test_a_seed_brings_out_what_hangs_on_the_order_of_blocks(tmp_path: Path, checks: tuple[str, ...]) -> None:
    executable = build(Path(__file__).parent / "programs" / "order.cu", tmp_path)
    in_order = run(executable, checks=checks, threads=1)
    assert (in_order.returncode, in_order.stdout) == (0, "0 of 32 are not in their place\n")
    shuffled = [run(executable, checks=checks, threads=1, seed=seed) for seed in (1, 2, 2)]
    assert [ran.returncode for ran in shuffled] == [1, 1, 1]
    assert shuffled[1].stdout == shuffled[2].stdout  # a seed's order is the same each time
    assert not any(fault["severity"] == "error" for ran in shuffled for fault in ran.faults)


def test_leaks_of_kernels_are_told_by_the_line_that_took_the_memory(tmp_path: Path) -> None:
    source = Path(__file__).parent / "programs" / "heap_leak.cu"
    executable = build(source, tmp_path)
    [leak] = run(executable, leaks=True).faults
    line = next(n for n, text in enumerate(source.read_text().split("\n"), 1) if "// one each" in text)
    assert (leak["kind"], leak["severity"], leak["line"]) == ("leak", "error", line)
    assert leak["kernel"] == "_Z4takePPi"
    assert leak["message"] == "1,280 bytes taken by 32 mallocs in a kernel were never freed"
    [note] = run(executable).faults
    assert (note["severity"], note["count"]) == ("note", 32)
    assert run(executable, "all of it", leaks=True).ok

"""Counts of a sample of blocks: they say so, are near the exact ones, and the whole program still runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_program import Ran, build, run

from sandbox.program import CHECKS
from sandbox.types import KernelMetrics

SOURCE = Path(__file__).parent / "programs" / "uneven.cu"

pytestmark = pytest.mark.usefixtures("jail")


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(SOURCE, tmp_path_factory.mktemp("uneven"))


def kernel(ran: Ran, name: str) -> KernelMetrics:
    return next(one for one in ran.kernels if one.name.startswith(name))


def line_of(mark: str) -> int:
    return next(n for n, text in enumerate(SOURCE.read_text().split("\n"), 1) if mark in text)


def test_all_blocks_are_counted_unless_a_sample_is_asked_for(executable: Path) -> None:
    ran = run(executable, profile=True)
    assert [(one.blocks, one.counted_blocks) for one in ran.kernels] == [(1000, 1000), (2000, 2000)]
    same, more = kernel(ran, "same"), kernel(ran, "more")
    assert same.barriers_executed == 2 * 2 * 1000
    assert same.useless_barriers == 2 * 1000
    by_line = {line.line: (line.barriers_executed, line.useless_barriers) for line in same.lines}
    assert by_line[line_of("// needed")] == (2000, 0)
    assert by_line[line_of("// for nothing")] == (2000, 2000)
    [atomic] = [line for line in more.lines if line.atomics]
    assert atomic.atomics == 1000
    assert atomic.atomic_lanes_per_address == more.atomic_lanes_per_address == 3.0
    assert more.block_instruction_spread == pytest.approx(3**-0.5, rel=0.1)  # evenly from few to many
    assert more.waves == pytest.approx(1000 / (132 * 32))
    assert more.tail_fraction == pytest.approx(1 - more.waves)


@pytest.mark.parametrize("checks", [CHECKS, ()])
def test_a_sample_estimates_what_all_blocks_do(executable: Path, checks: tuple[str, ...]) -> None:
    exact = run(executable, profile=True)
    ran = run(executable, profile=True, sample_blocks=50, checks=checks)
    assert (ran.returncode, ran.unsupported) == (0, {})
    # Where blocks do the same, the estimate is the count.
    same = kernel(ran, "same")
    assert (same.blocks, same.counted_blocks) == (2000, 100)
    assert same.model_copy(update={"counted_blocks": 2000}) == kernel(exact, "same")
    # Elsewhere it is near, for the sample is spread over the grid.
    more, all_of_it = kernel(ran, "more"), kernel(exact, "more")
    assert more.counted_blocks == 50
    assert more.instructions == pytest.approx(all_of_it.instructions, rel=0.03)
    assert more.instructions != all_of_it.instructions
    assert more.atomics == all_of_it.atomics
    assert more.block_instruction_spread == pytest.approx(all_of_it.block_instruction_spread, rel=0.1)


def test_a_seed_draws_another_sample_and_a_large_sample_is_everything(executable: Path) -> None:
    counts = {
        kernel(run(executable, profile=True, sample_blocks=20, seed=seed), "more").instructions
        for seed in (0, 0, 3)
    }
    assert len(counts) == 2
    everything = run(executable, profile=True, sample_blocks=5000)
    assert {one.counted_blocks - one.blocks for one in everything.kernels} == {0}


def test_blocks_outside_the_sample_are_checked(tmp_path: Path) -> None:
    source = tmp_path / "last.cu"
    source.write_text(
        """
        __global__ void fill(int *to, int count) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i <= count) to[i] = i;
        }
        int main() {
            int *to;
            cudaMalloc(&to, 1 << 16);
            fill<<<600, 32>>>(to, 1 << 14);
            return cudaDeviceSynchronize() == cudaSuccess;
        }
        """
    )
    ran = run(build(source, tmp_path), profile=True, sample_blocks=2)
    assert [fault["kind"] for fault in ran.faults if fault["severity"] == "error"] == ["out of bounds"]

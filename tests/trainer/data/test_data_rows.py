"""Rows, difficulty, splits, mistakes and alarms: what needs no judge."""

from __future__ import annotations

import time
from random import Random

import pytest

from sandbox.tasks.base import ArrayInput, Inputs
from sandbox.types import Evaluation, Fault, KernelMetrics, Metrics, Verdict
from trainer.data.breakage import broken
from trainer.data.registry import all_families
from trainer.data.rows import Provenance, Row, Solution, SolutionKind, difficulty, parallel, solved
from trainer.data.split import split_of
from trainer.data.work import TookTooLong, alarm

KERNEL = dict.fromkeys(
    (
        *("global_load_requests", "global_load_sectors", "global_store_requests", "global_store_sectors"),
        *("shared_load_bank_conflicts", "shared_store_bank_conflicts", "active_threads_per_warp"),
        *("theoretical_occupancy", "dram_bytes", "barriers_per_thread", "useless_barriers", "atomics"),
        *("warp_instruction_spread", "block_instruction_spread", "waves", "tail_fraction", "local_bytes"),
    ),
    0,
)


def solution(
    verdict: Verdict = "passed",
    kind: SolutionKind = "builtin",
    fault: Fault | None = None,
    kernels: tuple[tuple[int, int], ...] = ((256, 100),),
) -> Solution:
    """`kernels`: threads of a block and instructions of each launch, of one block."""
    measured = [
        KernelMetrics.model_validate(
            {
                **KERNEL,
                "name": "k",
                "grid": (1, 1, 1),
                "block": (threads, 1, 1),
                "instructions": count,
                "global_load_efficiency": None,
                "global_store_efficiency": None,
                "lines": [],
                "occupancy_limiter": "warps",
                "flop": {},
                "arithmetic_intensity": None,
                "atomic_lanes_per_address": None,
            }
        )
        for threads, count in kernels
    ]
    metrics = Metrics(structural_score=50, families={}, measured_by="emulator", kernels=measured)
    evaluation = Evaluation(
        verdict=verdict, fault=fault, message="", backend="emulator", target="sm_90", metrics=metrics
    )
    return Solution(source="", provenance=Provenance(kind=kind), evaluation=evaluation)


def test_difficulty_is_the_share_of_honest_attempts_that_failed() -> None:
    wrong = solution("wrong_result", fault="candidate")
    assert difficulty([], refused=False) is None
    assert difficulty([], refused=True) == 1.0
    assert difficulty([solution(), solution(), wrong, wrong], refused=False) == 0.5
    worse = [
        solution("wrong_result", "broken", "candidate"),
        solution(kind="spoiled"),
        solution(kind="without"),
    ]
    assert difficulty([solution(), *worse], refused=False) == 0.0
    ours = solution("internal_error", fault="kernelwright")
    assert difficulty([ours], refused=False) is None  # says nothing of the task
    assert solved([wrong, solution()])
    assert not solved([wrong, solution(kind="spoiled")])


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [
        (((256, 100),), True),
        (((1, 100),), False),
        (((256, 60), (1, 40)), True),
        (((256, 40), (1, 60)), False),
    ],
)
def test_what_single_threads_do_is_not_parallel(kernels: tuple[tuple[int, int], ...], expected: bool) -> None:
    assert parallel(solution(kernels=kernels)) is expected
    assert not parallel(solution("wrong_result", fault="candidate", kernels=kernels))


def test_a_row_comes_back_as_it_was_written() -> None:
    row = Row(
        id="c-1",
        index=0,
        family="f",
        group="g",
        language="c",
        entry="f",
        source="void f(int n, float *x) {}\n",
        inputs=[Inputs(sizes={"n": 3}, arrays={"x": ArrayInput(low=0.0)}), Inputs()],
        decision="KEEP",
        why="it is short",
        solutions=[solution()],
    )
    text = row.model_dump_json()
    assert '"inputs":[{"sizes":{"n":3},"arrays":{"x":{"low":0.0}}},{}]' in text  # only what was said
    assert Row.model_validate_json(text) == row


def test_families_keep_their_split_and_all_splits_have_some() -> None:
    splits = {family.name: split_of(family.name) for family in all_families()}
    assert splits["fold"] == split_of("fold")
    found = list(splits.values())
    assert all(found.count(name) >= 3 for name in ("train", "validation", "test"))
    assert found.count("train") > 0.6 * len(found)


RIGHT = """
__global__ void f(int n, const float *x, float *y) {
    __shared__ float s[256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    s[threadIdx.x] = x[i];
    __syncthreads();
    for (int k = 0; k < n; ++k) y[i] = y[i] + x[k];
    atomicAdd(&y[0], s[0]);
}
static int blocks_for(long long items, int per_block) {
    return (int)((items + per_block - 1) / per_block);
}
"""


def test_each_mistake_changes_one_thing_and_the_same_for_the_same_seed() -> None:
    made = {slug: text for slug, _, text in broken(RIGHT, Random(1))}
    assert made == {slug: text for slug, _, text in broken(RIGHT, Random(1))}
    assert "return;" not in made["no_guard"]
    assert "__syncthreads" not in made["no_barrier"]
    assert "y[0] += s[0];" in made["no_atomic"]
    assert "items / per_block" in made["short_grid"]
    assert "y[i] - x[k]" in made["wrong_sign"]
    assert "k < n - 1;" in made["off_by_one"]
    assert "threadIdx.y" in made["wrong_axis"]
    assert "blockIdx.X" in made["misspelt"]
    for text in made.values():
        changed = [(a, b) for a, b in zip(RIGHT.splitlines(), text.splitlines(), strict=False) if a != b]
        assert changed
        assert abs(len(RIGHT.splitlines()) - len(text.splitlines())) <= 1
    assert list(broken("nothing to break", Random(1))) == []


def test_an_alarm_interrupts_what_never_ends_even_where_exceptions_are_caught() -> None:
    began = time.monotonic()

    def never_ends() -> None:
        while time.monotonic() - began < 20:
            try:
                sum(range(1000))
            except Exception:
                continue

    with alarm(0.2) as cancel, pytest.raises(TookTooLong):
        never_ends()
    assert cancel.is_set
    assert time.monotonic() - began < 10
    with alarm(0.2) as quick:
        pass
    time.sleep(0.3)
    assert not quick.is_set

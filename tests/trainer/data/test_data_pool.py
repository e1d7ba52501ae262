"""Workers: one that dies takes only its own item with it, and nobody is left behind."""

from __future__ import annotations

import os
import signal

import pytest

from tests.conftest import all_end
from trainer.data.pool import Died, WorkersDie, run_all


def begin() -> None:
    pass


def work(item: int) -> tuple[int, int]:
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if item == 5:
        os._exit(7)
    if item == 99:
        raise ValueError("no such item")
    return item * item, os.getpid()


def test_results_come_for_every_item_and_deaths_are_named() -> None:
    found = dict(run_all(work, range(8), jobs=2, begin=begin))
    assert sorted(found) == list(range(8))
    assert found[3] == Died(-signal.SIGKILL)
    assert found[5] == Died(7)
    assert all(found[n][0] == n * n for n in range(8) if n not in (3, 5))  # type: ignore[index]
    assert len({found[n][1] for n in (0, 1, 2, 4, 6, 7)}) <= 4  # type: ignore[index]


def test_what_work_raises_is_raised_here_and_the_workers_end() -> None:
    with pytest.raises(ValueError, match="no such item"):
        list(run_all(work, [1, 99, 2], jobs=2, begin=begin))


def dying() -> None:
    os._exit(9)


def test_workers_that_cannot_even_begin_are_nobodys_items_fault() -> None:
    with pytest.raises(WorkersDie, match="exit code 9"):
        list(run_all(work, range(1000), jobs=2, begin=dying))


def test_leaving_early_ends_the_workers() -> None:
    results = run_all(work, iter(range(6, 1000)), jobs=2, begin=begin)
    _, answer = next(results)
    assert not isinstance(answer, Died)
    results.close()  # type: ignore[attr-defined]
    assert all_end([answer[1]])

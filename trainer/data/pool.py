"""Worker processes with one item each: one that dies takes only its own item with it, and that is known."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Items after which a worker is replaced, so that what leaks does not pile up over thousands.
_ITEMS_EACH = 200
#: So many deaths in a row, and nothing done in between, are no item's fault.
_MOST_DEATHS = 8


class WorkersDie(Exception):
    """Workers end before they have done anything: something is wrong with this installation."""


@dataclass(frozen=True)
class Died:
    """A worker ended without an answer."""

    exit_code: int | None


@dataclass
class _Worker(Generic[Item]):
    process: SpawnProcess
    connection: Connection
    item: Item | None = None
    done: int = 0


def run_all(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    jobs: int,
    begin: Callable[[], None],
) -> Iterator[tuple[Item, Result | Died]]:
    """Results as they come, in any order. `work` and `begin` are functions of modules, or partials of them.

    What `work` raises is raised here; WorkersDie where none lives long enough to do anything. Leaving early
    ends all workers.
    """
    waiting = iter(items)
    workers: list[_Worker[Item]] = []
    deaths = 0  # in a row
    try:
        while True:
            _refill(workers, waiting, work, begin, jobs)
            busy = {w.connection: w for w in workers if w.item is not None}
            if not busy:
                return
            for connection in wait(list(busy)):
                worker = busy[connection]  # type: ignore[index]
                item = worker.item
                assert item is not None
                worker.item = None
                try:
                    good, answer = worker.connection.recv()
                except (EOFError, OSError):
                    worker.process.join()
                    workers.remove(worker)
                    deaths += 1
                    if deaths >= _MOST_DEATHS:
                        code = worker.process.exitcode
                        raise WorkersDie(f"{deaths} workers in a row died, exit code {code}") from None
                    yield item, Died(worker.process.exitcode)
                    continue
                if not good:
                    raise answer
                worker.done += 1
                deaths = 0
                yield item, answer
    finally:
        for worker in workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in workers:
            worker.process.join()


def _refill(
    workers: list[_Worker[Item]],
    waiting: Iterator[Item],
    work: Callable[[Item], Result],
    begin: Callable[[], None],
    jobs: int,
) -> None:
    """Gives everyone something to do, as long as there is something."""
    while True:
        free = next((w for w in workers if w.item is None), None)
        if free is None and len(workers) >= jobs:
            return
        item = next(waiting, None)
        if item is None:
            return
        if free is not None and free.done >= _ITEMS_EACH:
            free.connection.close()
            free.process.join(10)
            free.process.terminate()
            workers.remove(free)
            free = None
        if free is None:
            free = _start(work, begin)
            workers.append(free)
        free.item = item
        free.connection.send(item)


def _start(work: Callable[[Item], Result], begin: Callable[[], None]) -> _Worker[Item]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work, begin), daemon=False)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _serve(connection: Connection, work: Callable[[Item], Result], begin: Callable[[], None]) -> None:
    begin()
    while True:
        try:
            item = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer: tuple[bool, object] = True, work(item)
        except Exception as error:
            answer = False, error
        connection.send(answer)

"""Loading small C tasks in tests."""

from __future__ import annotations

from textwrap import dedent

from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.tasks.base import Inputs
from sandbox.tasks.c.task import CTask
from sandbox.tasks.load import load_task
from sandbox.types import Problem

SEED = bytes(range(16))


def load(source: str | bytes, *, entry: str | None = None, inputs: Inputs | None = None) -> CTask:
    text = dedent(source) if isinstance(source, str) else source
    task = load_task(text, filename="task.c", entry=entry, inputs=inputs, cancel=Cancellation())
    assert isinstance(task, CTask)
    return task


def problem(source: str | bytes, *, entry: str | None = None, inputs: Inputs | None = None) -> Problem:
    try:
        load(source, entry=entry, inputs=inputs)
    except TaskProblem as found:
        return found.problem
    raise AssertionError("the task was accepted")

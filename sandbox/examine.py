"""Looking at a task without a candidate: does its reference run, and could a wrong kernel be told from a
right one?"""

from __future__ import annotations

import secrets
import time

from sandbox.cancellation import Cancellation
from sandbox.tasks.base import Task
from sandbox.types import Data
from sandbox.verify.compare import DrawTruth
from sandbox.verify.proofs import prove, reason


class Examination(Data):
    """What running the reference on secret draws showed."""

    draws: int
    sizes: list[dict[str, int]]  # of each draw
    degenerate: str | None  # why the judge would refuse the task; None where it would not
    seconds: float  # wall time


def examine(task: Task, *, cancel: Cancellation) -> Examination:
    """Raises TaskProblem where the reference crashes, never ends or leaves an output unwritten."""
    began = time.monotonic()
    draws = task.draws(secrets.token_bytes(16))
    expected = task.expected(draws, cancel)
    truths = [DrawTruth(task.spec, draw, truth) for draw, truth in zip(draws, expected, strict=True)]
    checks = prove(truths, tolerance_given=task.spec.inputs.tolerance is not None)
    return Examination(
        draws=len(draws),
        sizes=[dict(draw.sizes) for draw in draws],
        degenerate=reason(checks),
        seconds=round(time.monotonic() - began, 4),
    )

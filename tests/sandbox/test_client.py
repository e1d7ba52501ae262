"""The judge's door: what stops when the caller goes away, or is through."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from sandbox import client
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled
from sandbox.tasks.base import Draw, Expected, Inputs, TaskSpec

SPEC = TaskSpec(
    language="c", name="f", source="", prototype="", parameters=[], sizes={}, inputs=Inputs(), notes=[]
)


class Endless:
    """A task whose reference runs until it is told to stop."""

    spec = SPEC

    def __init__(self) -> None:
        self.started, self.stopped = threading.Event(), threading.Event()

    def draws(self, seed: bytes) -> Sequence[Draw]:
        return []

    def expected(self, draws: Sequence[Draw], cancel: Cancellation) -> Sequence[Expected]:
        self.started.set()
        while not cancel.is_set:
            self.stopped.wait(0.01)
        self.stopped.set()
        raise Cancelled


def test_closing_the_judge_ends_what_was_computed_ahead() -> None:
    task, cancel = Endless(), Cancellation()
    judge = client.Judge(task, target="sm_90", cancel=cancel)
    assert task.started.wait(5)
    judge.close()
    assert task.stopped.wait(5)
    assert not cancel.is_set  # the caller's own: other work may hang on it


def test_the_callers_cancellation_reaches_what_is_computed_ahead() -> None:
    task, cancel = Endless(), Cancellation()
    judge = client.Judge(task, target="sm_90", cancel=cancel)
    assert task.started.wait(5)
    cancel.set()
    assert task.stopped.wait(5)
    judge.close()


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("how", [KeyboardInterrupt, RuntimeError, GeneratorExit])
def test_a_caller_that_breaks_off_stops_the_judgement(how: type[BaseException]) -> None:
    task, cancel = Endless(), Cancellation()
    judge = client.Judge(task, target="sm_90", cancel=cancel)
    judging = judge.evaluate('extern "C" void launch() {}\n')
    next(judging)
    with pytest.raises(how):
        judging.throw(how)
    assert cancel.is_set
    assert task.stopped.wait(5)
    judge.close()

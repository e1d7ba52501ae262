"""What is done with one draft: looked at without a candidate, then solved and judged. Runs in a worker.

Everything here is bounded: the judge's jails have limits of their own, and the translator, which runs in the
worker itself, is interrupted by an alarm.
"""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Literal

from pydantic import Field

from agent.environment import JudgeEnvironment
from agent.events import RunEnded
from agent.limits import Limits
from agent.loop import run
from agent.policies.builtin import BuiltinPolicy
from agent.protocols import Draft as Candidate
from agent.protocols import Translator
from agent.trajectory import Trajectory
from agent.translator import translator_for
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, JailUnavailable, TaskProblem, ToolchainMissing
from sandbox.examine import Examination, examine
from sandbox.tasks.base import Inputs, Task
from sandbox.tasks.load import load_task
from sandbox.types import Data, Evaluation
from trainer.data.breakage import broken
from trainer.data.rows import Draft, Provenance, Solution
from trainer.data.structure import structure

#: Wall time for one draft: examining it, and solving it.
EXAMINE_SECONDS = 120.0
SOLVE_SECONDS = 900.0

Outcome = Literal["taken", "reference_failed", "never_ends", "degenerate", "refused", "worker_failed"]


class Examined(Data):
    """A journal's line: whether the judge takes a draft."""

    id: str
    outcome: Outcome
    message: str = ""  # why it is not taken
    structure: str = ""
    examination: Examination | None = None
    inputs: list[Inputs] = Field(default_factory=list)  # the configurations that can be judged
    configurations_dropped: list[str] = Field(default_factory=list)  # why
    seconds: float = 0.0


class Solved(Data):
    """A journal's line: what was made of a task."""

    id: str
    solutions: list[Solution] = Field(default_factory=list)
    translator: str = ""  # why the built-in translator refuses
    failed: list[str] = Field(default_factory=list)  # candidates that could not be written or judged, and why
    seconds: float = 0.0


class Effort(Data):
    """How much is tried for each task."""

    turns: int = Field(default=4, ge=1, le=64)  # of the built-in policy
    variants: bool = True  # improvements left out and versions spoiled
    mistakes: int = Field(default=2, ge=0)  # wrong candidates made from the best one
    target: str = "sm_90"


class TookTooLong(BaseException):
    """The alarm rang. No `except Exception` on the way may take it for a failure of its own."""


def examine_draft(draft: Draft) -> Examined:
    """Never raises for what a draft does; JailUnavailable and ToolchainMissing are the machine's."""
    began = time.monotonic()

    def ended(outcome: Outcome, message: str) -> Examined:
        return Examined(id=draft.id, outcome=outcome, message=message, seconds=time.monotonic() - began)

    with alarm(EXAMINE_SECONDS) as cancel:
        try:
            skeleton = structure(draft.source, draft.entry, cancel) if draft.language == "c" else ""
            first = _examined(draft, draft.inputs[0] if draft.inputs else Inputs(), cancel)
            if first.degenerate is not None:
                return ended("degenerate", first.degenerate)
            good, dropped = list(draft.inputs[:1]), []
            for inputs in draft.inputs[1:]:
                try:
                    found = _examined(draft, inputs, cancel)
                except TaskProblem as error:
                    dropped.append(f"{error.problem.kind}: {error.problem.message}")
                    continue
                if found.degenerate is not None:
                    dropped.append(found.degenerate)
                else:
                    good.append(inputs)
        except TaskProblem as error:
            return ended(_outcome(error), f"{error.problem.kind}: {error.problem.message}")
        except (Cancelled, TookTooLong):
            return ended("never_ends", f"not done after {EXAMINE_SECONDS:.0f} s")
        except (JailUnavailable, ToolchainMissing):
            raise
        except Exception as error:  # ours, not the draft's; counted, so that nothing is lost in silence
            return ended("worker_failed", f"{type(error).__name__}: {error}")
    return Examined(
        id=draft.id,
        outcome="taken",
        structure=skeleton,
        examination=first,
        inputs=good,
        configurations_dropped=dropped,
        seconds=time.monotonic() - began,
    )


def solve_draft(draft: Draft, effort: Effort) -> Solved:
    """Never raises for what a task or a candidate does."""
    began, solutions, failed = time.monotonic(), list[Solution](), list[str]()
    refusal = ""
    with alarm(SOLVE_SECONDS) as cancel:
        try:
            task = _loaded(draft, draft.inputs[0] if draft.inputs else Inputs(), cancel)
            environment = JudgeEnvironment(task, backend="auto", target=effort.target, cancel=cancel)
            try:
                refusal = _solve(draft, task, environment, effort, cancel, solutions, failed)
            finally:
                environment.close()
        except TaskProblem as error:
            failed.append(f"{error.problem.kind}: {error.problem.message}")
        except (Cancelled, TookTooLong):
            failed.append(f"not done after {SOLVE_SECONDS:.0f} s")
        except (JailUnavailable, ToolchainMissing):
            raise
        except Exception as error:
            failed.append(f"{type(error).__name__}: {error}")
    return Solved(
        id=draft.id,
        solutions=solutions,
        translator=refusal,
        failed=failed,
        seconds=time.monotonic() - began,
    )


def _solve(
    draft: Draft,
    task: Task,
    environment: JudgeEnvironment,
    effort: Effort,
    cancel: Cancellation,
    solutions: list[Solution],
    failed: list[str],
) -> str:
    """Fills `solutions`; returns why the translator refuses, or ""."""
    translator = translator_for(task.spec)
    policy = BuiltinPolicy(lambda: translator)
    trajectory = Trajectory()
    for event in run(policy, environment, Limits(turns=effort.turns, seconds=SOLVE_SECONDS), cancel):
        trajectory.apply(event)
    for turn in trajectory.turns:
        if turn.evaluation is not None:
            where = Provenance(kind="builtin", says=turn.title, turn=turn.number, base_turn=turn.base_turn)
            solutions.append(Solution(source=turn.source, provenance=where, evaluation=turn.evaluation))
    ended = trajectory.ended
    assert ended is not None
    if ended.reason == "cancelled":
        raise Cancelled
    refusal = _refusal(ended)
    if ended.reason == "internal_error":
        failed.append(ended.message)
    best = trajectory.best
    if best is None:
        return refusal
    seen = {turn.source for turn in trajectory.turns}
    candidate = policy.draft_of(best.number)
    if effort.variants and candidate is not None:
        for source, where in _variants(translator, candidate, best.number, failed):
            _try(source, where, environment, seen, solutions, failed)
    rng = Random(hashlib.sha256(draft.id.encode()).digest())
    mistakes = list(broken(best.source, rng))
    rng.shuffle(mistakes)
    for slug, says, source in mistakes[: effort.mistakes]:
        where = Provenance(kind="broken", change=slug, says=says, base_turn=best.number)
        _try(source, where, environment, seen, solutions, failed)
    return refusal


def _variants(
    translator: Translator, candidate: Candidate, turn: int, failed: list[str]
) -> Iterator[tuple[str, Provenance]]:
    variants = translator.variants(candidate)
    while True:
        try:
            variant = next(variants)
        except StopIteration:
            return
        except Exception as error:  # a combination that cannot be written ends the list, and is told
            failed.append(f"variants: {type(error).__name__}: {error}")
            return
        where = Provenance(kind=variant.kind, change=variant.change, says=variant.says, base_turn=turn)
        yield variant.draft.source, where


def _try(
    source: str,
    where: Provenance,
    environment: JudgeEnvironment,
    seen: set[str],
    solutions: list[Solution],
    failed: list[str],
) -> None:
    """Judges a candidate that is new."""
    if source in seen:
        return
    seen.add(source)
    judging = environment.step(0, source)
    try:
        while True:
            next(judging)
    except StopIteration as stop:
        evaluation: Evaluation = stop.value
        solutions.append(Solution(source=source, provenance=where, evaluation=evaluation))
    except TaskProblem as error:
        failed.append(f"{where.kind} {where.change}: {error.problem.message}")


def _refusal(ended: RunEnded) -> str:
    return f"{ended.problem.kind}: {ended.problem.message}" if ended.problem is not None else ""


def _examined(draft: Draft, inputs: Inputs, cancel: Cancellation) -> Examination:
    return examine(_loaded(draft, inputs, cancel), cancel=cancel)


def _loaded(draft: Draft, inputs: Inputs, cancel: Cancellation) -> Task:
    name = "task.c" if draft.language == "c" else "task.py"
    return load_task(draft.source, filename=name, entry=draft.entry, inputs=inputs, cancel=cancel)


def _outcome(error: TaskProblem) -> Outcome:
    kind = error.problem.kind
    if kind in ("reference_never_ends", "reference_timeout"):
        return "never_ends"
    return "reference_failed" if kind.startswith(("reference_", "partial_output")) else "refused"


@contextmanager
def alarm(seconds: float) -> Iterator[Cancellation]:
    """A cancellation that is set, and TookTooLong raised in this thread, after `seconds`.

    Only a process's main thread can be interrupted; elsewhere the jails alone are bounded.
    """
    cancel = Cancellation()

    def ring(*_: object) -> None:
        cancel.set()
        raise TookTooLong

    if threading.current_thread() is not threading.main_thread():
        yield cancel
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield cancel
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def begin_worker(parent: int) -> None:
    """What a worker process does first: it leaves Ctrl-C to its parent, and ends when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()

"""From a source to a stream of events: the one entry for the command line, the web and other programs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from agent.environment import JudgeEnvironment
from agent.events import Event, RunEnded
from agent.limits import Limits
from agent.loop import ended, run
from agent.policies.builtin import BuiltinPolicy
from agent.protocols import Policy
from agent.trajectory import Trajectory
from agent.translator import translator_for
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, JailUnavailable, TaskProblem, ToolchainMissing
from sandbox.targets import DEFAULT_TARGET
from sandbox.tasks.base import Inputs, Task
from sandbox.tasks.load import load_task
from sandbox.types import Data, Problem


class TranslateRequest(Data):
    """What is to be translated, and how. Also what a run stores, so that it can be started again."""

    source: str
    filename: str  # its ending says the language: .c or .py
    entry: str | None = None  # the function to translate, where there are several
    inputs: Inputs | None = None
    policy: Literal["builtin"] = "builtin"
    backend: Literal["auto", "emulator", "gpu"] = "auto"
    target: str = DEFAULT_TARGET
    turns: int = Field(default=8, ge=1, le=200)
    start_from: str | None = None  # a CUDA candidate that becomes turn 1
    seconds: float = Field(default=600.0, gt=0)


def translate(request: TranslateRequest, *, cancel: Cancellation) -> Iterator[Event]:
    """The events of one run. Bad input, a cancellation and our own faults end it with `run_ended`, never by raising."""
    began = time.monotonic()
    try:
        task = load_task(
            request.source,
            filename=request.filename,
            entry=request.entry,
            inputs=request.inputs,
            cancel=cancel,
        )
        environment = JudgeEnvironment(task, backend=request.backend, target=request.target, cancel=cancel)
    except TaskProblem as error:
        yield _refused("bad_input", error.problem, began)
        return
    except (JailUnavailable, ToolchainMissing) as error:
        yield _refused(
            "internal_error", Problem(kind="machine", message=str(error), hint="kernelwright doctor"), began
        )
        return
    except Cancelled:
        yield ended(
            Trajectory(), "cancelled", "cancelled before the first turn", None, time.monotonic() - began
        )
        return
    except Exception as error:
        problem = Problem(
            kind="internal_error", message=f"Kernelwright's own fault: {type(error).__name__}: {error}"
        )
        yield _refused("internal_error", problem, began)
        return
    try:
        limits = Limits(turns=request.turns, seconds=request.seconds)
        yield from run(_policy(request, task), environment, limits, cancel)
    finally:
        environment.close()


def _policy(request: TranslateRequest, task: Task) -> Policy:
    return BuiltinPolicy(lambda: translator_for(task.spec), start_from=request.start_from)


def _refused(reason: Literal["bad_input", "internal_error"], problem: Problem, began: float) -> RunEnded:
    return ended(Trajectory(), reason, problem.message, problem, time.monotonic() - began)

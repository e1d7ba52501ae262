"""From a source to a stream of events: the one entry for the command line, the web and other programs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from agent.environment import JudgeEnvironment, MakeJudge, judge_here
from agent.events import EndReason, Event, RunEnded, RunStarted
from agent.limits import Limits
from agent.llm.skills import Means
from agent.loop import ended, run
from agent.policies.builtin import BuiltinPolicy
from agent.protocols import Policy
from agent.search.options import SearchOptions
from agent.trajectory import Trajectory
from agent.translator import translator_for
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, JailUnavailable, TaskProblem, ToolchainMissing
from sandbox.targets import DEFAULT_TARGET
from sandbox.tasks.base import Inputs, Task
from sandbox.tasks.load import load_task
from sandbox.types import Data, Problem

if TYPE_CHECKING:
    from agent.llm.endpoint import Endpoint
    from agent.llm.record import Exchange


class TranslateRequest(Data):
    """What is to be translated, and how. Also what a run stores, so that it can be started again."""

    source: str
    filename: str  # its ending says the language: .c or .py
    entry: str | None = None  # the function to translate, where there are several
    inputs: Inputs | None = None
    policy: Literal["builtin", "llm"] = "builtin"
    protocol: Literal["rewrite", "tools"] = "rewrite"  # how a language model is driven
    backend: Literal["auto", "emulator", "gpu"] = "auto"
    target: str = DEFAULT_TARGET
    turns: int = Field(default=8, ge=1, le=200)
    start_from: str | None = None  # a CUDA candidate that becomes turn 1
    instruction: str = ""  # what a person asks of a language model, beside a good score
    seconds: float = Field(default=600.0, gt=0)
    tokens: int | None = Field(default=None, ge=1)  # of a language model
    cost: float | None = Field(default=None, gt=0)
    search: SearchOptions = SearchOptions()  # of a language model; the built-in policy has one way to go
    means: Means = Means()  # what a language model may use


def translate(
    request: TranslateRequest,
    *,
    cancel: Cancellation,
    endpoint: Endpoint | None = None,
    record: Callable[[Exchange], None] = lambda exchange: None,
    earlier: Sequence[Event] = (),
    make_judge: MakeJudge = judge_here,
) -> Iterator[Event]:
    """The events of one run. Whatever goes wrong ends it with `run_ended`; nothing is raised.

    `make_judge`: where candidates are judged, if not by this process. `endpoint`: the language model of the
    policy "llm", whose exchanges `record` gets. `earlier`: the events of such a run that was broken off and
    goes on here.
    """
    began = time.monotonic()
    try:
        task, environment = _prepare(request, cancel, make_judge)
    except Cancelled:
        yield _ended_early("cancelled", "cancelled before the first turn", None, began)
    except TaskProblem as error:
        yield _ended_early("bad_input", error.problem.message, error.problem, began)
    except (JailUnavailable, ToolchainMissing) as error:
        problem = Problem(kind="machine", message=str(error), hint="kernelwright doctor says what is missing")
        yield _ended_early("internal_error", problem.message, problem, began)
    except Exception as error:  # a bug must not look like a verdict, and the stream must end with its reason
        message = f"Kernelwright's own fault: {type(error).__name__}: {error}"
        yield _ended_early("internal_error", message, Problem(kind="internal_error", message=message), began)
    else:
        limits = Limits(
            turns=request.turns, seconds=request.seconds, tokens=request.tokens, cost=request.cost
        )
        with ExitStack() as open_things:
            open_things.callback(environment.close)
            try:
                _check_earlier(request, task, earlier)
                events = _events(
                    request,
                    task,
                    environment,
                    limits,
                    cancel,
                    endpoint,
                    record,
                    earlier,
                    open_things,
                    make_judge,
                )
            except TaskProblem as error:
                yield _ended_early("bad_input", error.problem.message, error.problem, began)
                return
            for event in events:
                yield _placed(event, request.filename)


def _events(
    request: TranslateRequest,
    task: Task,
    environment: JudgeEnvironment,
    limits: Limits,
    cancel: Cancellation,
    endpoint: Endpoint | None,
    record: Callable[[Exchange], None],
    earlier: Sequence[Event],
    open_things: ExitStack,
    make_judge: MakeJudge,
) -> Iterator[Event]:
    """The run itself: a single trajectory, or a search. Raises TaskProblem for what cannot begin."""
    if request.search.strategy == "single":
        policy = _policy(request, task, environment, limits, cancel, endpoint, record, open_things)
        return run(policy, environment, limits, cancel, earlier=earlier)
    if request.policy != "llm":
        message = f"the built-in policy has one way to go, so there is no {request.search.strategy} of it"
        hint = "use the strategy single, or a language model"
        raise TaskProblem(Problem(kind="bad_strategy", message=message, hint=hint))
    if endpoint is None:
        raise _no_model()
    from agent.search.setup import open_search

    # A failure of one branch ends the others; it must not look like a wish of the caller's.
    inner = Cancellation(lambda: cancel.is_set, interval=0.0)

    def more() -> JudgeEnvironment:
        return JudgeEnvironment(
            task,
            backend=environment.backend,
            target=request.target,
            cancel=inner,
            make_judge=make_judge,
        )

    search = open_search(
        request.search,
        endpoint,
        request.protocol,
        environment,
        more,
        limits,
        inner,
        start_from=request.start_from,
        instruction=request.instruction,
        record=record,
        means=request.means,
    )
    open_things.callback(search.lanes.close)
    return search.run(earlier)


def _prepare(
    request: TranslateRequest, cancel: Cancellation, make_judge: MakeJudge
) -> tuple[Task, JudgeEnvironment]:
    task = load_task(
        request.source, filename=request.filename, entry=request.entry, inputs=request.inputs, cancel=cancel
    )
    return task, JudgeEnvironment(
        task, backend=request.backend, target=request.target, cancel=cancel, make_judge=make_judge
    )


def _placed(event: Event, filename: str) -> Event:
    """A translator knows lines but not the file's name."""
    if isinstance(event, RunEnded) and event.problem is not None and not event.problem.file:
        return event.model_copy(update={"problem": event.problem.model_copy(update={"file": filename})})
    return event


def _check_earlier(request: TranslateRequest, task: Task, earlier: Sequence[Event]) -> None:
    if not earlier:
        return
    if request.policy != "llm":
        message = (
            "a run of the built-in policy cannot go on from its record: it is quick enough to start again"
        )
        raise TaskProblem(Problem(kind="cannot_resume", message=message, hint="leave out the record"))
    started = next((event for event in earlier if isinstance(event, RunStarted)), None)
    if started is None or (started.task.source, started.task.name) != (task.spec.source, task.spec.name):
        message = "the run that should go on was about another task"
        raise TaskProblem(
            Problem(kind="cannot_resume", message=message, hint="name the file it was started with")
        )


def _policy(
    request: TranslateRequest,
    task: Task,
    environment: JudgeEnvironment,
    limits: Limits,
    cancel: Cancellation,
    endpoint: Endpoint | None,
    record: Callable[[Exchange], None],
    open_things: ExitStack,
) -> Policy:
    if request.policy == "builtin":
        return BuiltinPolicy(lambda: translator_for(task.spec), start_from=request.start_from)
    if endpoint is None:
        raise _no_model()
    from agent.llm.setup import open_policy  # needs httpx2, which those without a model need not install

    policy, conversation = open_policy(
        endpoint,
        request.protocol,
        environment,
        limits,
        cancel,
        start_from=request.start_from,
        instruction=request.instruction,
        record=record,
        means=request.means,
    )
    open_things.callback(conversation.close)
    return policy


def _no_model() -> TaskProblem:
    hint = "name an endpoint and its model, or use the built-in policy"
    return TaskProblem(Problem(kind="no_model", message="no language model is set up", hint=hint))


def _ended_early(reason: EndReason, message: str, problem: Problem | None, began: float) -> RunEnded:
    return ended(Trajectory(), reason, message, problem, time.monotonic() - began)

"""The tools and resources that other agents see.

Sources are untrusted, and held to the same jail and the same bounds as everywhere. Work runs in threads, two
at a time; a request that is cancelled stops its processes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import anyio
from anyio import from_thread, to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resources import TextResource
from pydantic import Field

from agent.events import Stage, TurnStarted
from agent.llm.skills import skills
from agent.trajectory import Trajectory
from agent.translate import TranslateRequest, translate
from sandbox.cancellation import Cancellation
from sandbox.client import Judge, default_target
from sandbox.errors import Cancelled, JailUnavailable, TaskProblem, ToolchainMissing
from sandbox.progress import Progress, StageAt
from sandbox.tasks.base import Inputs
from sandbox.tasks.load import load_task
from sandbox.types import Evaluation, Problem
from trainer import reward
from webapp.mcp.words import WORDS, explained

T = TypeVar("T")
Report = Callable[[str], None]

TEXT_MAX = 1_000_000
AT_ONCE = 2
DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("metrics", "checks", "inputs", "trust", "glossary")
INSTRUCTIONS = """\
Kernelwright turns C functions and PyTorch modules into CUDA and judges CUDA candidates without a GPU:
compiled by nvcc, run in an emulator, compared with the reference on secret inputs, measured line by
line. Write a candidate, call evaluate, read the verdict and the metrics, improve, call evaluate again;
explain says what a word means; the skills among the resources say how to do better. Scores are no times."""

Source = Annotated[
    str, Field(max_length=TEXT_MAX, description="The task: a C function, or a PyTorch module with Model")
]
Candidate = Annotated[str, Field(max_length=TEXT_MAX, description="The CUDA source; `launch` starts it")]
Filename = Annotated[
    str, Field(pattern=r"^[^/\\]{1,100}\.(c|py)$", description="Its suffix says the language: .c or .py")
]
Entry = Annotated[
    str | None, Field(max_length=200, description="The function or class, where there are several")
]
Target = Annotated[str | None, Field(max_length=16, description="An architecture, sm_90")]
BackendName = Literal["auto", "emulator", "gpu"]


def build() -> MCPServer:
    """The server with its tools and resources, not yet running."""
    server = MCPServer(
        "kernelwright",
        title="Kernelwright",
        instructions=INSTRUCTIONS,
        version=version("kernelwright"),
        log_level="WARNING",
    )
    at_once = anyio.CapacityLimiter(AT_ONCE)

    @server.tool(title="Judge a candidate")
    async def evaluate(
        ctx: Context,
        source: Source,
        candidate: Candidate,
        filename: Filename = "task.c",
        entry: Entry = None,
        inputs: Inputs | None = None,
        backend: BackendName = "emulator",
        target: Target = None,
    ) -> dict[str, Any]:
        """Compile, run, verify and measure a CUDA candidate for a task: the verdict, why, and the metrics."""
        job = partial(_evaluate, source, candidate, filename, entry, inputs, backend, target)
        evaluation = await _aside(ctx, at_once, job)
        return _short(reward.attach(evaluation).model_dump(mode="json"))

    @server.tool(title="Measure a candidate by line")
    async def profile(
        ctx: Context,
        source: Source,
        candidate: Candidate,
        filename: Filename = "task.c",
        entry: Entry = None,
        inputs: Inputs | None = None,
        target: Target = None,
    ) -> dict[str, Any]:
        """What each kernel and each source line of a candidate costs, measured in the emulator."""
        job = partial(_evaluate, source, candidate, filename, entry, inputs, "emulator", target)
        evaluation = await _aside(ctx, at_once, job)
        metrics = evaluation.metrics.model_dump(mode="json") if evaluation.metrics else None
        return {"verdict": evaluation.verdict, "message": evaluation.message, "metrics": metrics}

    @server.tool(name="translate", title="Translate a task to CUDA")
    async def translate_tool(
        ctx: Context,
        source: Source,
        filename: Filename = "task.c",
        entry: Entry = None,
        inputs: Inputs | None = None,
        turns: Annotated[int, Field(ge=1, le=50)] = 4,
        seconds: Annotated[float, Field(gt=0, le=3600)] = 600.0,
        backend: BackendName = "emulator",
        target: Target = None,
    ) -> dict[str, Any]:
        """Let the built-in translator turn a task into verified CUDA over several turns: the best source."""
        request = TranslateRequest(
            source=source,
            filename=filename,
            entry=entry,
            inputs=inputs,
            backend=backend,
            target=target or default_target(backend),
            turns=turns,
            seconds=seconds,
        )
        return await _aside(ctx, at_once, partial(_translate, request))

    @server.tool(title="Explain a word")
    def explain(word: Annotated[str, Field(max_length=100)]) -> str:
        """What a verdict, a metric family or a number of a kernel means, and what to do about it."""
        found = explained(word)
        if found is None:
            raise ToolError(f"{word!r} is not known. Known are: {', '.join(sorted(WORDS))}")
        return found

    _add_resources(server)
    return server


def _add_resources(server: MCPServer) -> None:
    target = default_target("emulator")
    for skill in skills().values():
        _add_page(server, f"skill://{skill.name}", skill.name, skill.description, skill.page(target))
    for name in PAGES:
        path = DOCS / f"{name}.md"
        if path.is_file():  # an installation from a wheel has no docs
            text = path.read_text(encoding="utf-8")
            _add_page(server, f"doc://{name}", name, text.splitlines()[0].lstrip("# "), text)


def _add_page(server: MCPServer, uri: str, name: str, description: str, text: str) -> None:
    server.add_resource(
        TextResource(uri=uri, name=name, description=description, mime_type="text/markdown", text=text)
    )


async def _aside(ctx: Context, at_once: anyio.CapacityLimiter, job: Callable[[Cancellation, Report], T]) -> T:
    """Does a job in a thread, passing on how far it is. Raises ToolError for what cannot be done."""
    cancel = Cancellation()
    steps = 0

    def report(words: str) -> None:
        nonlocal steps
        steps += 1
        # Who asked may be gone, or want no progress; the work is not the worse for it.
        with contextlib.suppress(Exception):
            from_thread.run(partial(ctx.report_progress, steps, None, words))

    try:
        return await to_thread.run_sync(partial(job, cancel, report), abandon_on_cancel=True, limiter=at_once)
    except TaskProblem as error:
        raise ToolError(_sentence(error.problem)) from error
    except (JailUnavailable, ToolchainMissing) as error:
        raise ToolError(f"this machine cannot judge: {error}") from error
    except Cancelled as error:
        raise ToolError("stopped") from error
    finally:
        cancel.set()


def _evaluate(
    source: str,
    candidate: str,
    filename: str,
    entry: str | None,
    inputs: Inputs | None,
    backend: str,
    target: str | None,
    cancel: Cancellation,
    report: Report,
) -> Evaluation:
    report(f"understand {filename}")
    task = load_task(source, filename=filename, entry=entry, inputs=inputs, cancel=cancel)
    judge = Judge(task, backend=backend, target=target or default_target(backend), cancel=cancel)
    try:
        return _finished(judge.evaluate(candidate), report)
    finally:
        judge.close()


def _finished(progress: Generator[Progress, None, Evaluation], report: Report) -> Evaluation:
    said = ""
    while True:
        try:
            step = next(progress)
        except StopIteration as stop:
            evaluation: Evaluation = stop.value
            return evaluation
        if isinstance(step, StageAt) and (words := f"{step.stage} {step.detail}".strip()) != said:
            said = words
            report(words)


def _translate(request: TranslateRequest, cancel: Cancellation, report: Report) -> dict[str, Any]:
    trajectory = Trajectory()
    for event in translate(request, cancel=cancel):
        trajectory.apply(event)
        if isinstance(event, TurnStarted):
            report(f"turn {event.turn}: {event.title}")
        elif isinstance(event, Stage):
            report(f"{event.stage} {event.detail}".strip())
    ended, best = trajectory.ended, trajectory.best
    assert ended is not None
    if best is None and ended.problem is not None:
        raise TaskProblem(ended.problem)
    turns = [
        {
            "turn": turn.number,
            "title": turn.title,
            "verdict": turn.evaluation.verdict if turn.evaluation else None,
            "score": turn.evaluation.score if turn.evaluation else None,
            "reflection": turn.reflection,
        }
        for turn in trajectory.turns
    ]
    return {
        "verdict": ended.verdict,
        "reason": ended.reason,
        "message": ended.message,
        "best_turn": best.number if best else None,
        "source": best.source if best else None,
        "turns": turns,
    }


def _short(evaluation: dict[str, Any]) -> dict[str, Any]:
    """Without what only `profile` is asked for."""
    for kernel in (evaluation.get("metrics") or {}).get("kernels", ()):
        del kernel["lines"]
    return evaluation


def _sentence(problem: Problem) -> str:
    place = ":".join(str(part) for part in (problem.file, problem.line, problem.column) if part)
    said = f"{place}: {problem.message}" if place else problem.message
    choices = f" ({', '.join(problem.choices)})" if problem.choices else ""
    return f"{said}{choices}. {problem.hint}".strip() if problem.hint else f"{said}{choices}"

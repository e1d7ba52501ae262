"""`bench agent`: how many tasks an agent passes by turn, and what that takes.

For any endpoint, beside the built-in policy. Results are a line of a file each, so that it can go on.
"""

from __future__ import annotations

import argparse
import json
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agent.events import EndReason
from agent.search.options import SearchOptions
from agent.trajectory import Trajectory, Turn
from agent.translate import TranslateRequest, translate
from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.types import Data, Problem
from trainer.reward import reference_speedup
from webapp.cli.bench_agent_tasks import COUNT, BenchTask, default_tasks, tasks_of
from webapp.cli.language_model import add_model_arguments, endpoint_of, search_of, usage
from webapp.cli.output import say

if TYPE_CHECKING:
    from agent.llm.endpoint import Endpoint

PROTOCOLS = ("builtin", "rewrite", "tools")
#: Endings that say nothing of the agent: the run is made again when the benchmark goes on.
_AGAIN: frozenset[EndReason] = frozenset(("cancelled", "interrupted", "model_unavailable", "internal_error"))


def add_agent_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("agent", "of bench agent; --jobs, --results, --seconds and --only too")
    group.add_argument(
        "--agents",
        default="",
        metavar="NAMES",
        help=f"of {', '.join(PROTOCOLS)}, comma-separated (default: all, where an endpoint is named)",
    )
    group.add_argument(
        "--tasks", type=Path, metavar="FOLDER", help=f"of .c and .py (default: {COUNT} C tasks)"
    )
    group.add_argument("--count", type=int, default=COUNT, metavar="N", help="how many of the default tasks")
    group.add_argument("--seed", type=int, default=5, help="of the generated ones among them (default 5)")
    group.add_argument("--turns", type=int, default=4, metavar="N", help="of each run (default 4)")
    group.add_argument(
        "--backend",
        choices=["auto", "emulator", "gpu"],
        default="auto",
        help="where candidates run; of judge too",
    )
    group.add_argument(
        "--limit-seconds", type=float, metavar="S", help="stop then; the same command goes on with --results"
    )
    add_model_arguments(parser)


def bench_agent(options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """(figures, whether every run has a result). Raises TaskProblem for what cannot begin."""
    from webapp.cli.bench_agent_table import summary

    if not 1 <= options.turns <= 200 or options.jobs < 1:
        raise TaskProblem(Problem(kind="bad_option", message="give 1 to 200 --turns, and 1 or more --jobs"))
    agents = _agents(options)
    endpoint = endpoint_of(options) if set(agents) - {"builtin"} else None
    tasks = tasks_of(options.tasks) if options.tasks else default_tasks(options.count, options.seed)
    if options.only:
        tasks = [task for task in tasks if task.name in options.only.split(",")]
        if not tasks:
            raise TaskProblem(Problem(kind="no_task", message=f"there is no task {options.only}"))
    bench = Bench(tasks, agents, endpoint, options, search_of(options))
    bench.run()
    found = bench.found()
    return summary(found, options.turns), len(found) == len(bench.wanted())


def _agents(options: argparse.Namespace) -> list[str]:
    named = [name for name in options.agents.split(",") if name]
    if unknown := sorted(set(named) - set(PROTOCOLS)):
        hint = f"there are {', '.join(PROTOCOLS)}"
        raise TaskProblem(Problem(kind="no_agent", message=f"there is no agent {unknown[0]!r}", hint=hint))
    return named or (list(PROTOCOLS) if options.base_url else ["builtin"])


class TurnResult(Data):
    verdict: str | None  # None: the agent ended the run in this turn
    score: float | None = None  # structural
    us: float | None = None  # on a card
    speedup: float | None = None  # over the reference, measured


class Result(Data):
    """One run: a line of the results file."""

    task: str
    protocol: str
    model: str = ""
    turn_limit: int
    decision: str
    reason: EndReason
    message: str
    turns: list[TurnResult]
    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False  # the server did not count tokens
    cost: float | None = None
    model_seconds: float = 0.0  # of the answers
    seconds: float
    backend: str = ""

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.task, self.protocol, self.model, self.turn_limit

    @property
    def unusable(self) -> bool:
        """The task cannot be judged as it stands; no agent is to blame."""
        return self.reason == "bad_input" or any(
            turn.verdict in ("degenerate_task", "internal_error") for turn in self.turns
        )

    def passed_by(self, turn: int) -> bool:
        """Whether one of the first turns passed, or left sequential what should be."""
        if any(each.verdict == "passed" for each in self.turns[:turn]):
            return True
        return self.reason == "kept" and self.decision == "KEEP" and len(self.turns) <= turn

    def best(self) -> TurnResult | None:
        """The passed turn with the least time, else the highest score."""
        passed = [turn for turn in self.turns if turn.verdict == "passed"]
        timed = [turn for turn in passed if turn.us is not None]
        if timed:
            return min(timed, key=lambda turn: turn.us or 0.0)
        return max(passed, key=lambda turn: turn.score or 0.0, default=None)


class Bench:
    """Runs what is missing in the results, so many at a time, until done, stopped or out of time."""

    def __init__(
        self,
        tasks: Sequence[BenchTask],
        protocols: Sequence[str],
        endpoint: Endpoint | None,
        options: argparse.Namespace,
        search: SearchOptions,
    ) -> None:
        self.tasks, self.protocols, self.endpoint = tasks, protocols, endpoint
        self.options, self.search = options, search
        self.stop = threading.Event()
        self.until = time.monotonic() + options.limit_seconds if options.limit_seconds else None
        self.results: dict[tuple[str, str, str, int], Result] = {}
        if options.results is not None:
            self.results = {result.key: result for result in read_results(options.results)}

    def wanted(self) -> list[tuple[BenchTask, str]]:
        return [(task, protocol) for task in self.tasks for protocol in self.protocols]

    def found(self) -> list[Result]:
        """The results of what was asked for, in its order."""
        keys = [self._key(task, protocol) for task, protocol in self.wanted()]
        return [self.results[key] for key in keys if key in self.results]

    def run(self) -> None:
        missing = [(t, p) for t, p in self.wanted() if self._key(t, p) not in self.results]
        if len(missing) < len(self.wanted()):
            say(
                f"{len(self.wanted()) - len(missing)} of {len(self.wanted())} runs are in the results already"
            )
        before = signal.signal(signal.SIGINT, lambda *_: self.stop.set())
        try:
            with ThreadPoolExecutor(self.options.jobs, thread_name_prefix="bench") as pool:
                self._work(pool, iter(missing))
        finally:
            signal.signal(signal.SIGINT, before)

    def _work(self, pool: ThreadPoolExecutor, missing: Iterator[tuple[BenchTask, str]]) -> None:
        running: set[Future[Result]] = set()
        try:
            while not self._over():
                while len(running) < self.options.jobs and (item := next(missing, None)) is not None:
                    running.add(pool.submit(self._one, *item))
                if not running:
                    return
                done, running = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                self._take(done)
            say(
                "stopped"
                if self.stop.is_set()
                else "the time is up: what runs is stopped, and made again later"
            )
            self._take(wait(running).done)
        finally:
            self.stop.set()  # a failure of ours must not wait for hours of runs

    def _take(self, done: set[Future[Result]]) -> None:
        for future in done:
            result = future.result()
            if result.reason in _AGAIN:
                if result.reason != "cancelled":
                    say(f"no result: {result.task}, {result.protocol}: {result.message}")
                continue
            self.results[result.key] = result
            if self.options.results is not None:
                with self.options.results.open("a", encoding="utf-8") as out:
                    out.write(result.model_dump_json() + "\n")
            say(f"{len(self.found())} of {len(self.wanted())}: {_line(result)}")

    def _over(self) -> bool:
        return self.stop.is_set() or (self.until is not None and time.monotonic() >= self.until)

    def _key(self, task: BenchTask, protocol: str) -> tuple[str, str, str, int]:
        return task.name, protocol, self._model(protocol), self.options.turns

    def _model(self, protocol: str) -> str:
        """With its strategy, where it is a search: another agent."""
        if protocol == "builtin" or self.endpoint is None:
            return ""
        if self.search.strategy == "single":
            return self.endpoint.model
        return f"{self.endpoint.model} ({self.search.strategy}, {self.search.samples})"

    def _one(self, task: BenchTask, protocol: str) -> Result:
        builtin = protocol == "builtin"
        request = TranslateRequest.model_validate(
            {
                "source": task.source,
                "filename": task.filename,
                "entry": task.entry,
                "inputs": task.inputs,
                "policy": "builtin" if builtin else "llm",
                "protocol": "rewrite" if builtin else protocol,
                "backend": self.options.backend,
                "turns": self.options.turns,
                "seconds": self.options.seconds,
                "tokens": self.options.tokens,
                "cost": self.options.cost,
                "search": SearchOptions() if builtin else self.search,
            }
        )
        trajectory = Trajectory()
        cancel = Cancellation(self._over)
        for event in translate(request, cancel=cancel, endpoint=None if builtin else self.endpoint):
            trajectory.apply(event)
        return self._result(task, protocol, trajectory)

    def _result(self, task: BenchTask, protocol: str, trajectory: Trajectory) -> Result:
        ended, took = trajectory.ended, usage(trajectory)
        assert ended is not None
        return Result(
            task=task.name,
            protocol=protocol,
            model=self._model(protocol),
            turn_limit=self.options.turns,
            decision=task.decision,
            reason=ended.reason,
            message=ended.message,
            turns=[_turn(turn) for turn in trajectory.turns],
            answers=took["answers"],
            prompt_tokens=took["prompt_tokens"],
            completion_tokens=took["completion_tokens"],
            estimated=took["estimated"],
            cost=took["cost"],
            model_seconds=took["seconds"],
            seconds=ended.seconds,
            backend=trajectory.started.backend if trajectory.started else "",
        )


def _turn(turn: Turn) -> TurnResult:
    evaluation = turn.evaluation
    if evaluation is None:
        return TurnResult(verdict=None)
    timing = evaluation.timing if evaluation.timing and not evaluation.timing.implausible else None
    return TurnResult(
        verdict=evaluation.verdict,
        score=evaluation.score,
        us=timing.candidate_us.median if timing else None,
        speedup=reference_speedup(timing),
    )


def _line(result: Result) -> str:
    at = next((n for n in range(1, len(result.turns) + 1) if result.passed_by(n)), None)
    said = f"passed in turn {at}" if at else f"not passed ({result.reason.replace('_', ' ')})"
    if result.unusable:
        said = f"the task cannot be judged: {result.message}"
    tokens = f", {result.prompt_tokens:,} + {result.completion_tokens:,} tokens" if result.answers else ""
    return f"{result.task}, {result.protocol}: {said}{tokens}, {result.seconds:.1f} s"


def read_results(path: Path) -> list[Result]:
    """What earlier runs wrote. A last line that was cut off is dropped, others raise TaskProblem."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    results = []
    for number, line in enumerate(lines, 1):
        try:
            results.append(Result.model_validate(json.loads(line)))
        except (ValueError, ValidationError) as error:
            if number == len(lines) and not line.endswith("\n"):
                path.write_text("".join(lines[:-1]), encoding="utf-8")
                break
            message = "is no result of this benchmark; name another file, or remove the line"
            raise TaskProblem(
                Problem(kind="bad_results", message=message, file=str(path), line=number)
            ) from error
    return results

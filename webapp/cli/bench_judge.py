"""How many candidates a minute the judge takes: the kernels of `tests/fixtures/kernels` and what the built-in
translator writes for the examples, several at a time, so that one compiles while another has the card."""

from __future__ import annotations

import secrets
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.translator import translator_for
from sandbox import client
from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.gpu.client import usable
from sandbox.progress import StageAt
from sandbox.tasks.base import Task
from sandbox.tasks.load import load_task
from sandbox.types import Evaluation, Problem
from webapp.gallery import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "tests/fixtures/kernels"
#: Candidates a minute with 16 cores and one card, without timing and with it.
GOALS = {"untimed": 100.0, "timed": 60.0}
PERCENTILES = (50, 90, 99)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Candidate:
    name: str
    task: Path
    source: str
    expected: str  # verdict


@dataclass(frozen=True)
class Span:
    """One stage of one candidate, in seconds since the start."""

    stage: str
    began: float
    ended: float


@dataclass(frozen=True)
class Judged:
    candidate: Candidate
    evaluation: Evaluation
    seconds: float
    spans: Sequence[Span]


def candidates(only: Sequence[str]) -> list[Candidate]:
    """Raises TaskProblem where there is none."""
    paths = {
        **{f"{path.parent.name}/{path.stem}": path for path in sorted(KERNELS.glob("[rw]*/*.cu"))},
        # C alone: it needs no torch.
        **{f"translated/{path.stem}": path for path in sorted((EXAMPLES / "c").glob("*.c"))},
    }
    chosen = [name for name in paths if not only or any(word in name for word in only)]
    if not chosen:
        message = f"no candidate of that name; there are: {', '.join(paths)}"
        raise TaskProblem(Problem(kind="no_candidate", message=message))
    made = ((name, paths[name]) for name in chosen)
    return [_given(name, path) if path.suffix == ".cu" else _written(name, path) for name, path in made]


def _given(name: str, path: Path) -> Candidate:
    """One of the tests' own: its first lines say the task and the verdict."""
    source = path.read_text()
    said = dict(
        line.removeprefix("// ").split(": ", 1)
        for line in source.splitlines()
        if line.startswith(("// task: ", "// verdict: "))
    )
    return Candidate(name, ROOT / said["task"], source, said["verdict"])


def _written(name: str, path: Path) -> Candidate:
    """The translator's direct version."""
    return Candidate(name, path, translator_for(_task(path).spec).first().source, "passed")


def _task(path: Path) -> Task:
    return load_task(path.read_bytes(), filename=path.name, entry=None, inputs=None, cancel=Cancellation())


@dataclass
class Bench:
    """Judges by task, each used by one candidate at a time: a task's reference and baselines stay with it."""

    backend: str
    target: str
    timing: bool
    began: float = 0.0
    _idle: dict[Path, list[client.Judge]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def judge(self, candidate: Candidate) -> Judged:
        judge = self._lent(candidate.task)
        # Not the one of before: what was compiled once is kept on disk.
        source = f"{candidate.source}\n// {secrets.token_hex(8)}\n"
        began, spans, stage = time.monotonic(), [], ("compile", time.monotonic())
        progress = judge.evaluate(source)
        while True:
            try:
                said = next(progress)
            except StopIteration as stop:
                evaluation: Evaluation = stop.value
                break
            if isinstance(said, StageAt) and said.stage != stage[0]:
                spans.append(self._span(*stage))
                stage = (said.stage, time.monotonic())
        spans.append(self._span(*stage))
        with self._lock:
            self._idle.setdefault(candidate.task, []).append(judge)
        return Judged(candidate, evaluation, time.monotonic() - began, spans)

    def _span(self, stage: str, began: float) -> Span:
        return Span(stage, began - self.began, time.monotonic() - self.began)

    def _lent(self, path: Path) -> client.Judge:
        with self._lock:
            if waiting := self._idle.get(path):
                return waiting.pop()
        return client.Judge(
            _task(path), backend=self.backend, target=self.target, cancel=Cancellation(), timing=self.timing
        )

    def warm(self, paths: Iterable[Path], jobs: int) -> None:
        """A judge for each task and worker, before the clock runs: a long run has them."""
        for path in dict.fromkeys(paths):
            made = [self._lent(path) for _ in range(jobs)]
            self._idle[path] = made

    def close(self) -> None:
        for judge in (it for judges in self._idle.values() for it in judges):
            judge.close()


def measure(
    say: Say, *, backend: str, target: str, jobs: int, rounds: int, timing: bool, only: Sequence[str]
) -> dict[str, Any]:
    """Judges every candidate `rounds` times, `jobs` at a time. Raises TaskProblem."""
    chosen = candidates(only)
    bench = Bench(backend, target, timing)
    say(f"{len(chosen)} candidates of {len({it.task for it in chosen})} tasks, {jobs} at a time")
    try:
        bench.warm((it.task for it in chosen), jobs)
        bench.began = time.monotonic()
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            judged = []
            for each in pool.map(bench.judge, chosen * rounds):
                judged.append(each)
                if len(judged) % 10 == 0:
                    say(f"{len(judged)} of {len(chosen) * rounds}")
        wall = time.monotonic() - bench.began
    finally:
        bench.close()
    return _result(judged, wall, jobs)


def _result(judged: Sequence[Judged], wall: float, jobs: int) -> dict[str, Any]:
    seconds = [it.seconds for it in judged]
    spans = [span for it in judged for span in it.spans]
    stages = {
        name: [it.evaluation.stages[name] for it in judged if name in it.evaluation.stages]
        for name in dict.fromkeys(name for it in judged for name in it.evaluation.stages)
    }
    surprises = [
        {
            "name": it.candidate.name,
            "expected": it.candidate.expected,
            "verdict": it.evaluation.verdict,
            "message": it.evaluation.message,
        }
        for it in judged
        if it.evaluation.verdict != it.candidate.expected
    ]
    backend = judged[0].evaluation.backend
    timed = any(it.evaluation.timing is not None for it in judged)
    return {
        "backend": backend,
        "device": str(usable()[0]) if backend == "gpu" else "",
        "timed": timed,
        "jobs": jobs,
        "judged": len(judged),
        "seconds": wall,
        "per_minute": 60 * len(judged) / wall,
        "latency": {f"p{p}": _percentile(seconds, p) for p in PERCENTILES},
        "in_flight": sum(seconds) / wall,
        "overlapping": overlapping(spans) / wall,
        "card_share": sum(it.evaluation.card_seconds for it in judged) / wall,
        "stages": {
            name: {"median": statistics.median(taken), "total": sum(taken)} for name, taken in stages.items()
        },
        "surprises": surprises,
    }


def _percentile(values: Sequence[float], percent: int) -> float:
    """Of what was seen, the least that so many do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def overlapping(spans: Iterable[Span]) -> float:
    """Seconds in which two or more different stages were at work."""
    changes = sorted(
        [(span.began, 1, span.stage) for span in spans] + [(span.ended, -1, span.stage) for span in spans]
    )
    active: dict[str, int] = {}
    together, before = 0.0, 0.0
    for at, change, stage in changes:
        if sum(count > 0 for count in active.values()) >= 2:
            together += at - before
        active[stage] = active.get(stage, 0) + change
        before = at
    return together


def table(result: dict[str, Any]) -> str:
    where = result["device"] or "in the emulator"
    latency = ", ".join(f"{name} {value:.2f} s" for name, value in result["latency"].items())
    lines = [
        f"{result['judged']} candidates, {result['jobs']} at a time, {where}, "
        f"{'timed' if result['timed'] else 'not timed'}: {result['per_minute']:.1f} a minute",
        f"latency: {latency}",
        f"at work on average: {result['in_flight']:.2f}; different stages at the same time: "
        f"{result['overlapping']:.0%} of the time",
    ]
    if result["backend"] == "gpu":
        goal = GOALS["timed" if result["timed"] else "untimed"]
        lines.append(
            f"the card was in use {result['card_share']:.0%} of the time; the goal is {goal:.0f} a minute"
        )
    lines += ["", "| stage | median s | all s |", "| --- | --- | --- |"]
    lines += [
        f"| {name} | {row['median']:.3f} | {row['total']:.1f} |" for name, row in result["stages"].items()
    ]
    lines += [
        f"NOT AS EXPECTED: {row['name']}: {row['verdict']}, expected {row['expected']}: {row['message']}"
        for row in result["surprises"]
    ]
    return "\n".join(lines)

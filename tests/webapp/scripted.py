"""A translator that does what the source's first line says, so that the web can be tested without an engine.

`// script: turns` two turns; `// script: burst` 500 stored events at once; `// script: wait` nothing until
cancelled; `// script: deaf` does not even hear that; `// script: raise` and `// script: stop` break the
rules.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import cast, get_args

from agent.events import (
    ActionTaken,
    Edited,
    Event,
    Log,
    RangeEdit,
    Reflected,
    RunEnded,
    RunStarted,
    TextDelta,
    TurnEnded,
    TurnStarted,
)
from sandbox.cancellation import Cancellation
from sandbox.progress import StageAt
from sandbox.tasks.base import Inputs, TaskSpec
from sandbox.types import Evaluation, Metrics, Verdict
from webapp.evaluations.models import EvaluationRecord
from webapp.runs.models import AgentRun

BURST = 500


def translate(run: AgentRun, cancel: Cancellation) -> Iterator[Event]:
    script = run.source.partition("// script: ")[2].split()
    yield started(run)
    match script[0] if script else "turns":
        case "burst":
            yield TurnStarted(turn=1, title="Direct version", base_turn=None)
            for number in range(BURST):
                yield Reflected(turn=1, text=str(number))
        case "wait":
            while not cancel.is_set:
                time.sleep(0.02)
            yield RunEnded(reason="cancelled", message="cancelled")
            return
        case "deaf":
            time.sleep(60)
        case "raise":
            raise RuntimeError("the engine broke")
        case "stop":
            return
        case _:
            yield from turn(1, "Direct version", None, "wrong_result", None)
            yield from turn(2, "Guard the last block", 1, "passed", 71.5)
    yield RunEnded(reason="finished", message="done", best_turn=2, verdict="passed", seconds=0.5)


def judge(record: EvaluationRecord, cancel: Cancellation) -> Iterator[StageAt | Evaluation]:
    """A judge that believes what the candidate's first line says: `// verdict: passed`."""
    yield StageAt("compile", "nvcc")
    said = record.candidate.partition("// verdict: ")[2].split()
    verdict = said[0] if said and said[0] in get_args(Verdict) else "passed"
    yield evaluation(cast(Verdict, verdict), 71.5 if verdict == "passed" else None)


def turn(number: int, title: str, base: int | None, verdict: Verdict, score: float | None) -> Iterator[Event]:
    source = f"// turn {number}\n"
    yield TurnStarted(turn=number, title=title, base_turn=base)
    yield TextDelta(turn=number, text="thinking")
    edit = RangeEdit(start_line=1, end_line=1, text=source)
    yield Edited(turn=number, file="kernel.cu", base_version=number - 1, version=number, edits=[edit])
    yield ActionTaken(turn=number, action="submit", source=source)
    for piece in ("compiling", " ", "kernel.cu\n", "caf\u00e9 \x00\n"):
        yield Log(turn=number, stream="nvcc", text=piece)
    yield Reflected(turn=number, text=f"turn {number} was {verdict}")
    yield TurnEnded(
        turn=number,
        evaluation=evaluation(verdict, score),
        best_turn=number if score is not None else None,
        seconds=0.25,
    )


def started(run: AgentRun) -> RunStarted:
    task = TaskSpec(
        language="c",
        name="saxpy",
        source=run.source,
        prototype='extern "C" void launch(int n)',
        parameters=[],
        sizes={"n": 1000},
        inputs=Inputs(),
    )
    return RunStarted(
        task=task, policy=run.policy, backend="emulator", target=run.target, turn_limit=run.turn_limit
    )


def evaluation(verdict: Verdict, score: float | None) -> Evaluation:
    metrics = None
    if score is not None:
        metrics = Metrics(
            structural_score=score, families={"coalescing": 1.0}, measured_by="emulator", kernels=[]
        )
    return Evaluation(
        verdict=verdict,
        fault=None if verdict == "passed" else "candidate",
        message=f"the candidate {verdict.replace('_', ' ')}",
        backend="emulator",
        target="sm_90",
        metrics=metrics,
    )

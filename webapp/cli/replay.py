"""Step through a recorded run: what was tried, what came back, and with a model what it was shown and wrote.

Example: kernelwright translate examples/c/saxpy.c --record run.jsonl
         kernelwright replay run.jsonl --step
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agent.events import RunStarted
from agent.llm.record import Exchange, Recording
from agent.trajectory import Turn
from sandbox import client
from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.tasks.load import load_task
from sandbox.types import Problem
from webapp.cli.language_model import read_recording
from webapp.cli.narrator import whence
from webapp.cli.output import GOOD, NOT_GOOD, dump, printable, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="JSON lines: a recorded run, or its events alone"
    )
    parser.add_argument(
        "--turn", type=int, metavar="N", help="this turn alone, with prompts, answers and source"
    )
    parser.add_argument("--step", action="store_true", help="wait for Enter after each turn")
    parser.add_argument("--events", action="store_true", help="its events as JSON lines")
    parser.add_argument(
        "--judge", action="store_true", help="judge the candidates again; exit 1 where a verdict differs"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def main(options: argparse.Namespace) -> int:
    recording = read_recording(options.file)
    turns = _chosen(recording, options.turn)
    if options.events:
        for event in recording.events:
            print(event.model_dump_json())
        return GOOD
    again = dict(_judged_again(recording, turns)) if options.judge else {}
    if options.json:
        dump(_document(recording, turns, again))
    else:
        _show(recording, turns, again, options)
    same = all(
        turn.evaluation and turn.evaluation.verdict == again[turn.number] for turn in _sources(turns, again)
    )
    return GOOD if same else NOT_GOOD


def _chosen(recording: Recording, number: int | None) -> list[Turn]:
    turns = recording.trajectory.turns
    if number is None:
        return turns
    if not 1 <= number <= len(turns):
        raise TaskProblem(
            Problem(kind="no_turn", message=f"there is no turn {number}", hint=f"the run has {len(turns)}")
        )
    return [turns[number - 1]]


def _sources(turns: Sequence[Turn], again: dict[int, str]) -> list[Turn]:
    return [turn for turn in turns if turn.number in again]


def _judged_again(recording: Recording, turns: Sequence[Turn]) -> Iterator[tuple[int, str]]:
    """(turn, verdict) of every candidate, on fresh secret inputs."""
    started = recording.trajectory.started
    if started is None:
        raise TaskProblem(Problem(kind="bad_record", message="the run ended before it had a task"))
    spec, cancel = started.task, Cancellation()
    signal.signal(signal.SIGINT, lambda *_: cancel.set())
    task = load_task(
        spec.source,
        filename=f"task.{'c' if spec.language == 'c' else 'py'}",
        entry=spec.name if spec.language == "c" else None,
        inputs=spec.inputs,
        cancel=cancel,
    )
    for turn in turns:
        if turn.source:
            say(f"judging turn {turn.number} again")
            evaluation = client.evaluate(
                task, turn.source, backend="auto", target=started.target, cancel=cancel
            )
            yield turn.number, evaluation.verdict


def _document(recording: Recording, turns: Sequence[Turn], again: dict[int, str]) -> dict[str, Any]:
    trajectory = recording.trajectory
    best = trajectory.best
    return {
        "policy": trajectory.started.policy if trajectory.started else None,
        "model": recording.head.model if recording.head else None,
        "reason": trajectory.ended.reason if trajectory.ended else None,
        "best_turn": best.number if best else None,
        "turns": [
            {
                "turn": turn.number,
                "title": turn.title,
                "branch": turn.branch,
                "base_turn": turn.base_turn,
                "also_from": turn.also_from,
                "same_as": turn.same_as,
                "ending": turn.ending or None,
                "plan": turn.plan,
                "source": turn.source,
                "verdict": turn.evaluation.verdict if turn.evaluation else None,
                "verdict_again": again.get(turn.number),
                "score": turn.evaluation.score if turn.evaluation else None,
                "reflection": turn.reflection,
                "answers": [answer.model_dump(mode="json") for answer in turn.answers],
                "tools": [tool.model_dump(mode="json") for tool in turn.tools],
                "exchanges": [
                    e.model_dump(mode="json") for e in recording.exchanges if e.turn == turn.number
                ],
            }
            for turn in turns
        ],
    }


def _show(
    recording: Recording, turns: Sequence[Turn], again: dict[int, str], options: argparse.Namespace
) -> None:
    trajectory = recording.trajectory
    if trajectory.started is not None:
        started = trajectory.started
        model = f" ({recording.head.model['model']})" if recording.head and recording.head.model else ""
        print(f"{started.task.name}: {started.policy}{model}, {started.backend}, {started.target}")
    for turn in turns:
        print(printable("\n".join(_lines(turn, trajectory.started, again.get(turn.number)))))
        if options.turn is not None:
            for exchange in recording.exchanges:
                if exchange.turn == turn.number:
                    print(printable("\n".join(_exchange(exchange))))
            print(turn.source)
        if options.step and turn is not turns[-1]:
            sys.stderr.write("Enter for the next turn ")
            sys.stderr.flush()
            if not sys.stdin.readline():
                return
    if trajectory.ended is not None and options.turn is None:
        print(f"{trajectory.ended.reason.replace('_', ' ')}: {trajectory.ended.message}")


def _lines(turn: Turn, started: RunStarted | None, again: str | None) -> Iterator[str]:
    yield f"turn {turn.number}: {turn.title}{whence(turn, started)}"
    if turn.plan != turn.title:
        yield f"  plan: {turn.plan}"
    for used in turn.tools:
        yield f"  {used.tool}{'' if used.ok else ' refused'}: {used.observation.splitlines()[0][:120]}"
    if turn.evaluation is not None:
        yield f"  {turn.evaluation.verdict.replace('_', ' ')}: {turn.evaluation.message}"
    elif turn.ending:
        yield f"  {'KEEP' if turn.ending == 'keep' else 'nothing more'}: {turn.reason}"
    else:
        yield "  not judged"
    if turn.same_as is not None:
        yield f"  the same as turn {turn.same_as}: not judged again"
    if again is not None:
        yield f"  judged again: {again.replace('_', ' ')}"
    yield from (f"  {line}" for line in turn.reflection.splitlines())


def _exchange(exchange: Exchange) -> Iterator[str]:
    for message in exchange.messages:
        yield f"--- {message.role}"
        yield message.content
        yield from (f"{call.name} {call.arguments}" for call in message.tool_calls)
    yield f"--- {exchange.model} answers ({exchange.answer.finish_reason})"
    yield exchange.answer.text
    yield from (f"{call.name} {call.arguments}" for call in exchange.answer.tool_calls)
    yield "---"

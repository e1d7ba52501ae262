"""Turn C or PyTorch into verified CUDA over several turns.

Example: kernelwright translate examples/c/saxpy.c -o saxpy.cu
         kernelwright translate examples/c/saxpy.c --policy llm --base-url https://host/v1 --model NAME
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.events import RunEnded
from agent.trajectory import Trajectory, Turn
from agent.translate import TranslateRequest, translate
from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.tasks.load import decode
from sandbox.types import Problem
from trainer import reward
from webapp.cli.common import add_task_arguments, read_bytes, read_inputs, read_text, target_of
from webapp.cli.language_model import (
    SECONDS,
    TURNS,
    add_model_arguments,
    endpoint_of,
    read_recording,
    recording,
    search_of,
    usage,
)
from webapp.cli.narrator import Narrator
from webapp.cli.output import BAD_INPUT, GOOD, NOT_GOOD, OWN_FAULT, STOPPED, complain, dump, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_task_arguments(parser)
    parser.add_argument("--policy", choices=["builtin", "llm"], default="builtin")
    parser.add_argument(
        "--turns", type=int, metavar="N", help=f"at most this many turns (default 8; with a model {TURNS})"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help=f"at most this long (default 600; with a model {SECONDS:.0f})",
    )
    parser.add_argument("--from", dest="start_from", type=Path, metavar="CANDIDATE.cu", help="make it turn 1")
    parser.add_argument(
        "--events", action="store_true", help="the event stream as JSON lines, instead of a result"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT.cu", help="write the best turn's source here"
    )
    parser.add_argument(
        "--record", type=Path, metavar="FILE.jsonl", help="write the run down, to be replayed or trained on"
    )
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="FILE.jsonl",
        help="go on with a recorded run of a model that was broken off",
    )
    add_model_arguments(parser)


def main(options: argparse.Namespace) -> int:
    cancel = Cancellation()
    signal.signal(signal.SIGINT, lambda *_: cancel.set())
    request = _request(options)
    endpoint = endpoint_of(options) if options.policy == "llm" else None
    for path in (options.output, options.record):
        if path is not None:
            _check_writable(path)
    trajectory = Trajectory()
    narrate = Narrator()
    earlier = read_recording(options.resume) if options.resume else None
    before = earlier.events if earlier else ()
    with recording(options.record, request, endpoint, earlier) as (note, record):
        for event in translate(request, cancel=cancel, endpoint=endpoint, record=record, earlier=before):
            trajectory.apply(event)
            note(event)
            if options.events:
                print(event.model_dump_json(), flush=True)
            elif not options.json:
                narrate(event)
    assert trajectory.ended is not None
    best = trajectory.best
    if best is not None and options.output is not None:
        options.output.write_text(best.source)
        say(f"wrote turn {best.number} to {options.output}")
    return _finish(options, request, trajectory, trajectory.ended)


def _request(options: argparse.Namespace) -> TranslateRequest:
    model = options.policy == "llm"
    turns = options.turns if options.turns is not None else TURNS if model else 8
    seconds = options.seconds if options.seconds is not None else SECONDS if model else 600.0
    if not 1 <= turns <= 200:
        raise TaskProblem(Problem(kind="bad_turns", message=f"--turns is {turns}", hint="give 1 to 200"))
    for name, value in (("seconds", seconds), ("tokens", options.tokens), ("cost", options.cost)):
        if value is not None and not value > 0:
            raise TaskProblem(
                Problem(kind="bad_limit", message=f"--{name} is {value}", hint="give a number above 0")
            )
    return TranslateRequest(
        source=decode(read_bytes(options.file), options.file.name),
        filename=options.file.name,
        entry=options.entry,
        inputs=read_inputs(options),
        backend=options.backend,
        target=target_of(options),
        policy=options.policy,
        protocol=options.protocol,
        turns=turns,
        seconds=seconds,
        tokens=options.tokens,
        cost=options.cost,
        search=search_of(options),
        start_from=read_text(options.start_from) if options.start_from else None,
    )


def _finish(
    options: argparse.Namespace, request: TranslateRequest, trajectory: Trajectory, ended: RunEnded
) -> int:
    best = trajectory.best
    if (
        not trajectory.turns
        and ended.problem is not None
        and ended.reason == "bad_input"
        and not options.events
    ):
        return complain(ended.problem, options.json)
    if options.json and not options.events:
        dump(_document(request, trajectory, ended))
    elif not options.events and best is not None and options.output is None:
        print(best.source)
    if ended.problem is not None:
        complain(ended.problem, False)
    if ended.reason == "cancelled":
        return STOPPED
    if best is not None:
        return GOOD
    if ended.reason == "internal_error":
        return OWN_FAULT
    return BAD_INPUT if ended.reason in ("bad_input", "unsupported") else NOT_GOOD


def _document(request: TranslateRequest, trajectory: Trajectory, ended: RunEnded) -> dict[str, Any]:
    best, started = trajectory.best, trajectory.started
    return {
        "verdict": ended.verdict or ("unsupported" if ended.reason == "unsupported" else None),
        "policy": request.policy,
        "backend": started.backend if started else request.backend,
        "target": request.target,
        "best_turn": best.number if best else None,
        "source": best.source if best else None,
        "reason": ended.reason,
        "message": ended.message,
        "problem": ended.problem.model_dump(mode="json") if ended.problem else None,
        "seconds": ended.seconds,
        "usage": usage(trajectory) if request.policy == "llm" else None,
        "turns": list(_turns(trajectory.turns)),
    }


def _turns(turns: list[Turn]) -> Iterator[dict[str, Any]]:
    for turn in turns:
        evaluation = reward.attach(turn.evaluation) if turn.evaluation else None
        yield {
            "turn": turn.number,
            "title": turn.title,
            "base_turn": turn.base_turn,
            "branch": turn.branch,
            "also_from": turn.also_from,
            "same_as": turn.same_as,
            "source": turn.source,
            "evaluation": evaluation.model_dump(mode="json") if evaluation else None,
            "reflection": turn.reflection,
        }


def _check_writable(path: Path) -> None:
    """Said before minutes of work, not after them. Raises TaskProblem."""
    why = ""
    # os.path, not Path: these answer False where looking is forbidden.
    if os.path.isdir(path):
        why = "it is a directory"
    elif not os.access(path.parent, os.F_OK):
        why = f"there is no directory {path.parent} that you may see"
    elif not os.access(path if os.path.exists(path) else path.parent, os.W_OK):
        why = "permission denied"
    if why:
        raise TaskProblem(
            Problem(
                kind="bad_output",
                message=f"cannot write {path}: {why}",
                hint="name a file in a directory of yours with -o, or leave -o out to print the result",
            )
        )

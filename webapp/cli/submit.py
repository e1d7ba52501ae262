"""Have a server translate FILE, or judge a given candidate for it.

Example: kernelwright submit examples/c/saxpy.c --watch -o saxpy.cu
         kernelwright submit examples/c/saxpy.c --candidate saxpy.cu --watch --json
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, cast

from sandbox.tasks.load import decode
from webapp.cli.common import add_task_arguments, read_bytes, read_inputs, read_text
from webapp.cli.output import GOOD, STOPPED, dump, say
from webapp.cli.remote import finish_evaluation, follow, write_candidate
from webapp.cli.servers import connected
from webapp.client import Client
from webapp.client.http import new_key
from webapp.client.operations import EvaluationCreate, RunCreate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_task_arguments(parser)
    parser.add_argument("--server", metavar="URL", help="default: that of the last `kernelwright login`")
    parser.add_argument("--workspace", metavar="NAME", help="where it belongs; default: your own")
    parser.add_argument("--policy", choices=["builtin", "llm"], default="builtin")
    parser.add_argument("--model", metavar="NAME", help="which of the server's language models")
    parser.add_argument("--turns", type=int, metavar="N")
    parser.add_argument("--from", dest="start_from", type=Path, metavar="CANDIDATE.cu", help="make it turn 1")
    parser.add_argument(
        "--candidate", type=Path, metavar="CANDIDATE.cu", help="only judge this one, without an agent"
    )
    parser.add_argument("--watch", action="store_true", help="wait for the end and show how it goes")
    parser.add_argument(
        "--cancel-on-interrupt", action="store_true", help="Ctrl-C stops it on the server too"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="OUT.cu", help="with --watch: the best one")


def main(options: argparse.Namespace) -> int:
    with connected(options) as client:
        return _judge(options, client) if options.candidate else _translate(options, client)


def _task(options: argparse.Namespace) -> dict[str, Any]:
    inputs = read_inputs(options)
    asked = {
        "source": decode(read_bytes(options.file), options.file.name),
        "filename": options.file.name,
        "entry": options.entry,
        "inputs": inputs.model_dump(mode="json") if inputs else None,
        "backend": options.backend,
        "target": options.target,
        "workspace": options.workspace,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _translate(options: argparse.Namespace, client: Client) -> int:
    body = _task(options) | {"policy": options.policy}
    if options.turns is not None:
        body["turns"] = options.turns
    if options.model is not None:
        body["model"] = options.model
    if options.start_from is not None:
        body["start_from"] = read_text(options.start_from)
    run = client.runs_create(cast(RunCreate, body), idempotency_key=new_key())
    place = run["queue_position"]
    say(f"run {run['id']}" + (f", number {place} in the queue" if place else ""))
    if not options.watch:
        if options.json:
            dump(run)
        else:
            print(run["id"])
        return GOOD
    code = follow(client, run["id"], events=False, cancel_on_interrupt=options.cancel_on_interrupt)
    if code == STOPPED:
        return code
    ended = client.runs_get(run["id"])
    if options.json:
        dump(ended)
    if options.output is not None and ended["best_turn"] is not None:
        write_candidate(client.runs_candidate(run["id"]), options.output, force=True)
    return code


def _judge(options: argparse.Namespace, client: Client) -> int:
    body = _task(options) | {"candidate": read_text(options.candidate)}
    made = client.evaluations_create(cast(EvaluationCreate, body), idempotency_key=new_key())
    say(f"evaluation {made['id']}")
    if not options.watch:
        if options.json:
            dump(made)
        else:
            print(made["id"])
        return GOOD
    said = ""
    try:
        while made["ended_at"] is None:
            if made["stage"] not in ("", said):
                said = made["stage"]
                say(f"  {said}")
            time.sleep(0.5)
            made = client.evaluations_get(made["id"])
    except KeyboardInterrupt:
        if options.cancel_on_interrupt:
            client.evaluations_cancel(made["id"])
            say("stopped")
        else:
            say(f"detached; the judgement goes on. Come back with: kernelwright show {made['id']}")
        return STOPPED
    return finish_evaluation(made, options.json)

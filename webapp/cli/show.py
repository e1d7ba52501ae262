"""A run or an evaluation on a server: how it stands and what came out. Without an ID: the newest runs.

Example: kernelwright show
         kernelwright show ID --json
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from webapp.cli.output import GOOD, dump, printable
from webapp.cli.remote import finish_evaluation
from webapp.cli.servers import add_server_arguments, connected
from webapp.client import ApiProblem, Client
from webapp.client.operations import EvaluationDetail, RunDetail, RunSummary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?")
    parser.add_argument("--workspace", metavar="NAME", help="whose runs are listed; default: your own")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many are listed (default 20)")
    add_server_arguments(parser)


def main(options: argparse.Namespace) -> int:
    with connected(options) as client:
        if options.id is None:
            page = client.runs_list(limit=options.limit, workspace=options.workspace)
            if options.json:
                dump(page)
            else:
                _print(_row(run) for run in page["results"])
            return GOOD
        run = _run_of(client, options.id)
        evaluation = None if run else client.evaluations_get(options.id)
    if evaluation is not None:
        return _show_evaluation(evaluation, options.json)
    assert run is not None
    if options.json:
        dump(run)
    else:
        _print(_run(run))
    return GOOD


def _run_of(client: Client, name: str) -> RunDetail | None:
    try:
        return client.runs_get(name)
    except ApiProblem as problem:
        if problem.status != 404:
            raise
    return None


def _show_evaluation(evaluation: EvaluationDetail, as_json: bool) -> int:
    if evaluation["ended_at"] is not None:
        return finish_evaluation(evaluation, as_json)
    if as_json:
        dump(evaluation)
    else:
        _print([f"{evaluation['state']}: {evaluation['stage'] or evaluation['title']}"])
    return GOOD


def _row(run: RunSummary) -> str:
    score = "" if run["score"] is None else f"{run['score']:.1f}"
    return f"{run['id']}  {run['created_at'][:16]}  {run['state']:<11} {score:>5}  {run['title']}"


def _run(run: RunDetail) -> Iterator[str]:
    yield f"{run['title']} ({run['filename']}), {run['policy']}, {run['backend']}, {run['target']}"
    place = f", number {run['queue_position']} in the queue" if run["queue_position"] else ""
    yield f"{run['state']}{place}: {run['message']}" if run["message"] else f"{run['state']}{place}"
    for turn in run["turns"]:
        score = "" if turn["score"] is None else f" {turn['score']:.1f}"
        best = " (best)" if turn["turn"] == run["best_turn"] else ""
        yield f"  turn {turn['turn']}: {turn['title']}: {turn['verdict'] or 'being judged'}{score}{best}"


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(printable(line))

"""The CUDA source of a run's best turn, or of another, from a server.

Example: kernelwright download ID -o kernel.cu
         kernelwright download ID --turn 2 > turn2.cu
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from webapp.cli.output import GOOD, dump
from webapp.cli.remote import write_candidate
from webapp.cli.servers import add_server_arguments, connected
from webapp.client import ApiProblem


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="of a run, or of an evaluation: its candidate")
    parser.add_argument("--turn", type=int, metavar="N", help="default: the best")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: standard output")
    parser.add_argument("--force", action="store_true", help="write over FILE")
    add_server_arguments(parser)


def main(options: argparse.Namespace) -> int:
    with connected(options) as client:
        try:
            source = client.runs_candidate(options.id, turn=options.turn)
        except ApiProblem as problem:
            kind = problem.document["type"] if problem.document else ""
            if problem.status != 404 or kind == "/problems/no-candidate":
                raise
            source = client.evaluations_get(options.id)["candidate"]
    if options.output is not None:
        write_candidate(source, options.output, force=options.force)
    elif not options.json:
        sys.stdout.write(source)
    if options.json:
        dump({"id": options.id, "turn": options.turn, "source": source})
    return GOOD

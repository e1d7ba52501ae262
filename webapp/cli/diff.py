"""What changed between two turns of a run on a server, as a unified diff.

Example: kernelwright diff ID            the best turn against the one it was made from
         kernelwright diff ID 1 3
"""

from __future__ import annotations

import argparse
import difflib

from sandbox.errors import TaskProblem
from sandbox.types import Problem
from webapp.cli.output import GOOD, dump, printable, say
from webapp.cli.servers import add_server_arguments, connected
from webapp.client.operations import RunDetail


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")
    parser.add_argument("old", metavar="TURN", type=int, nargs="?")
    parser.add_argument("new", metavar="TURN", type=int, nargs="?")
    add_server_arguments(parser)


def main(options: argparse.Namespace) -> int:
    with connected(options) as client:
        run = client.runs_get(options.id)
        old, new = _turns(run, options.old, options.new)
        before = client.runs_candidate(options.id, turn=old) if old else ""
        after = client.runs_candidate(options.id, turn=new)
    names = (f"turn {old}" if old else "nothing", f"turn {new}")
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm=""))
    if options.json:
        dump({"run": run["id"], "old": old, "new": new, "diff": "\n".join(lines)})
    elif lines:
        print("\n".join(printable(line) for line in lines))
    else:
        say(f"turns {old} and {new} are the same")
    return GOOD


def _turns(run: RunDetail, old: int | None, new: int | None) -> tuple[int | None, int]:
    """Which two. One named alone is compared with the turn it was made from."""
    bases = {turn["turn"]: turn["base_turn"] for turn in run["turns"]}
    if old is not None and new is not None:
        return old, new
    wanted = old if old is not None else run["best_turn"]
    if wanted is None:
        hint = f"it has turns {', '.join(map(str, bases))}: name two" if bases else "it has no turn yet"
        raise TaskProblem(Problem(kind="no_turn", message="no turn of this run has passed", hint=hint))
    return bases.get(wanted), wanted

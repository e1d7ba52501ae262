"""Follow a run on a server, from its beginning, until it has ended.

Example: kernelwright watch 0b7c9c1e-6f0a-4f0e-9c59-2d9f0f5d7f3b
         kernelwright watch ID --json                           the events as JSON lines

A broken connection is taken up again where it was. Ctrl-C detaches: the run goes on, and can be watched
again. Exit 0: a turn passed; 1: none did; 2: bad input; 3: the server's fault; 130: detached or stopped.
"""

from __future__ import annotations

import argparse

from webapp.cli.remote import follow
from webapp.cli.servers import add_server_arguments, connected


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--cancel-on-interrupt", action="store_true", help="Ctrl-C stops the run too")
    add_server_arguments(parser)


def main(options: argparse.Namespace) -> int:
    with connected(options) as client:
        return follow(
            client, options.id, events=options.json, cancel_on_interrupt=options.cancel_on_interrupt
        )

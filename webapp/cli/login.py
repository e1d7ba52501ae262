"""Store a token for a server, after asking the server whether it is good.

Example: kernelwright login https://kernels.example            asks for the token
         kernelwright login https://kernels.example < token.txt
         kernelwright login --forget https://kernels.example

Make a token on the server's account page. In CI set KERNELWRIGHT_SERVER and KERNELWRIGHT_TOKEN instead.
"""

from __future__ import annotations

import argparse
import getpass
import sys

from sandbox.errors import TaskProblem
from sandbox.types import Problem
from webapp.cli.output import GOOD, dump, say
from webapp.cli.servers import Login, address_of, forget, remember, telling
from webapp.client import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", metavar="URL")
    parser.add_argument("--forget", action="store_true", help="remove the stored token of this server")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def main(options: argparse.Namespace) -> int:
    server = address_of(options.server)
    if options.forget:
        say(f"forgotten: {server}" if forget(server) else f"there was no token for {server}")
        return GOOD
    token = _token(server)
    with Client(server, token=token) as client, telling(server):
        session = client.session_get()
    path = remember(Login(server, token))
    if options.json:
        dump({"server": server, "user": session["user"]["username"], "file": str(path)})
    else:
        say(f"signed in to {server} as {session['user']['username']}; the token is in {path}")
    return GOOD


def _token(server: str) -> str:
    if sys.stdin.isatty():
        token = getpass.getpass(f"Token for {server} (not shown): ")
    else:
        token = sys.stdin.readline(4096)
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise TaskProblem(
            Problem(
                kind="no_token",
                message="there is no token on standard input" if not token else "this is no token",
                hint="make one on the server's account page and paste it",
            )
        )
    return token

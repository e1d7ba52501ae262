"""The judge and the translator for other agents, as an MCP server: translate, evaluate, profile, explain.

Example: kernelwright mcp                       speaks on standard input and output
         kernelwright mcp --http --port 8765    on http://127.0.0.1:8765/mcp, for this machine alone
"""

from __future__ import annotations

import argparse

from mcp.server.transport_security import TransportSecuritySettings

from sandbox.errors import TaskProblem
from sandbox.types import Problem
from webapp.cli.output import GOOD, say
from webapp.mcp.server import build

LOOPBACK = "127.0.0.1"
#: Two sources of a megabyte, escaped as JSON.
BODY_BYTES_MAX = 8 * 1024 * 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--http", action="store_true", help="streamable HTTP on the loopback interface")
    parser.add_argument("--port", type=int, default=8765, help="with --http (default 8765)")


def main(options: argparse.Namespace) -> int:
    server = build()
    if not options.http:
        server.run("stdio")
        return GOOD
    if not 1 <= options.port <= 65535:
        message = f"there is no port {options.port}"
        raise TaskProblem(Problem(kind="bad_port", message=message, hint="give 1 to 65535"))
    say(f"listening on http://{LOOPBACK}:{options.port}/mcp, for this machine alone")
    # Pages in a browser on this machine must not get at it by a name that resolves to the loopback address.
    names = [f"{host}:{options.port}" for host in (LOOPBACK, "localhost")]
    server.run(
        "streamable-http",
        host=LOOPBACK,
        port=options.port,
        max_request_body_size=BODY_BYTES_MAX,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=names,
            allowed_origins=[f"http://{name}" for name in names],
        ),
    )
    return GOOD

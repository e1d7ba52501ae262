"""Which server the client commands talk to, and the token for it.

From KERNELWRIGHT_SERVER and KERNELWRIGHT_TOKEN, else from what `kernelwright login` has stored: a file a
server, readable by its owner only, in the config folder.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sandbox.errors import TaskProblem
from sandbox.types import Problem
from webapp.cli.output import ServerFault, printable
from webapp.client import ApiProblem, Client, Unreachable


@dataclass(frozen=True)
class Login:
    server: str
    token: str


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--server",
        metavar="URL",
        help="default: KERNELWRIGHT_SERVER, else the server of the last `kernelwright login`",
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def folder() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".config") / "kernelwright"


def address_of(text: str) -> str:
    """A server's address without what is not one. Raises TaskProblem; also for plain HTTP over a network."""
    parts = urlsplit(text if "//" in text else f"https://{text}")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise _wrong("bad_server", f"{text!r} is no server's address", "give https://kernels.example")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise _wrong(
            "bad_server",
            f"{text} would send the token in the clear",
            "give the https:// address, or go through an SSH tunnel to localhost",
        )
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def remember(login: Login) -> Path:
    """Stores a token for its server, which becomes the default one."""
    path = _file_of(login.server)
    _write(path, json.dumps({"server": login.server, "token": login.token}))
    _write(folder() / "default", login.server)
    return path


def forget(server: str) -> bool:
    """Whether there was something to forget."""
    path = _file_of(server)
    there = path.exists()
    path.unlink(missing_ok=True)
    return there


def login_of(options: argparse.Namespace) -> Login:
    """Raises TaskProblem when there is none."""
    named = options.server or os.environ.get("KERNELWRIGHT_SERVER", "").strip() or _default()
    if not named:
        raise _wrong("no_server", "no server is known", "sign in: kernelwright login https://kernels.example")
    server = address_of(named)
    token = os.environ.get("KERNELWRIGHT_TOKEN", "").strip() or _stored(server)
    if not token:
        raise _wrong(
            "no_token",
            f"no token for {server}",
            f"sign in: kernelwright login {server}, or set KERNELWRIGHT_TOKEN",
        )
    return Login(server, token)


@contextmanager
def connected(options: argparse.Namespace) -> Iterator[Client]:
    """A client of the server that is meant. What the API refuses comes out as bad input, with what to do."""
    login = login_of(options)
    with Client(login.server, token=login.token) as client, telling(login.server):
        yield client


@contextmanager
def telling(server: str) -> Iterator[None]:
    """Turns what a client raises into what commands end with. Raises TaskProblem, ServerFault."""
    try:
        yield
    except Unreachable as error:
        raise _wrong(
            "unreachable", printable(str(error)), "is the address right, and the server up?"
        ) from error
    except ApiProblem as problem:
        said = printable(problem.detail)
        if problem.status >= 500:
            number = problem.document["request_id"] if problem.document else "none"
            raise ServerFault(f"{server}: {said} (request {number})") from problem
        hint = f"sign in: kernelwright login {server}" if problem.status == 401 else ""
        raise _wrong("refused", said.rstrip("."), hint) from problem


def _stored(server: str) -> str:
    path = _file_of(server)
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise _wrong("open_token", f"others may read {path}", f"close it: chmod 600 {path}")
        return str(json.loads(path.read_text())["token"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _wrong(
            "bad_token", f"cannot read {path}: {error}", f"sign in: kernelwright login {server}"
        ) from error


def _default() -> str:
    try:
        return (folder() / "default").read_text().strip()
    except OSError:
        return ""


def _file_of(server: str) -> Path:
    return folder() / "servers" / (re.sub(r"[^a-z0-9.-]+", "_", server.partition("//")[2]) + ".json")


def _write(path: Path, text: str) -> None:
    """Whole or not at all, and never readable by others, not even for a moment."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, making = tempfile.mkstemp(dir=path.parent)  # mode 0600
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        os.replace(making, path)
    except OSError as error:
        raise _wrong("no_config", f"cannot write {path}: {error.strerror}", "set XDG_CONFIG_HOME") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _wrong(kind: str, message: str, hint: str) -> TaskProblem:
    return TaskProblem(Problem(kind=kind, message=message, hint=hint))

"""The web application, all in one process: pages, REST, websockets and, unless a broker is set, the worker.

Example: kernelwright serve --port 8000
         kernelwright serve --with-vllm Qwen/Qwen2.5-Coder-7B-Instruct

With KERNELWRIGHT_BROKER_URL set, runs are worked on elsewhere: celery -A webapp worker
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
from typing import TYPE_CHECKING

from webapp.cli.output import BAD_INPUT, say

if TYPE_CHECKING:
    from webapp.language_models.vllm import Vllm


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: only this machine)"
    )
    parser.add_argument("--port", type=int, default=8000, help="default: 8000")
    parser.add_argument(
        "--with-vllm",
        metavar="MODEL",
        help="start vLLM with this model, and stop it with the server",
    )
    parser.add_argument(
        "--vllm-args", default="", metavar='"..."', help="for vllm serve: --max-model-len 16384, adapters"
    )


def main(options: argparse.Namespace) -> int:
    began = time.monotonic()
    if not 0 <= options.port <= 65535:
        say(f"kernelwright: there is no port {options.port}. Give 1 to 65535, or 0 for any that is free")
        return BAD_INPUT
    try:
        listener = _listen(options.host, options.port)
    except (OSError, OverflowError) as error:
        say(f"kernelwright: {_why_not(options.host, options.port, error)}")
        return BAD_INPUT
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    _allow_host(options.host)
    # Django reads the environment when it is imported, hence only now.
    from webapp.server import Unprepared, prepare, run

    with listener:
        try:
            vllm = _vllm(options)
            prepare(say)
        except Unprepared as error:
            say(f"kernelwright: {error}")
            return BAD_INPUT
        return run(listener, address=_address(listener), say=say, began=began, vllm=vllm)


def _vllm(options: argparse.Namespace) -> Vllm | None:
    """Raises Unprepared."""
    from sandbox.home import home
    from webapp.language_models.vllm import Vllm, VllmMissing
    from webapp.server import Unprepared

    if not options.with_vllm:
        if options.vllm_args:
            raise Unprepared("--vllm-args are of --with-vllm MODEL, which is missing")
        return None
    try:
        return Vllm(options.with_vllm, options.vllm_args, log=home() / "vllm.log", say=say)
    except VllmMissing as missing:
        raise Unprepared(str(missing)) from missing
    except ValueError as error:
        raise Unprepared(f"--vllm-args cannot be read: {error}") from error


def _listen(host: str, port: int) -> socket.socket:
    """A socket that nobody else has. Raises OSError."""
    family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def _why_not(host: str, port: int, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in (98, 48):
        return f"port {port} of {host} is taken, perhaps by another Kernelwright; try --port {port + 1}"
    if isinstance(error, PermissionError):
        return f"this user may not listen on port {port}; choose one above 1023: --port 8000"
    return f"cannot listen on {host}, port {port}: {error}"


def _allow_host(host: str) -> None:
    """A server on the network may be addressed by this machine's names, unless it is said which."""
    if "KERNELWRIGHT_HOSTS" in os.environ:
        return
    names = ["localhost", "127.0.0.1", "[::1]"]
    if host not in names:
        names += [host, socket.gethostname(), socket.getfqdn()]
    os.environ["KERNELWRIGHT_HOSTS"] = ",".join(dict.fromkeys(names))


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m webapp.cli.serve", description=__doc__)
    add_arguments(parser)
    sys.exit(main(parser.parse_args()))

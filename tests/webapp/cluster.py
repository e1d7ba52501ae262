"""A cluster on one machine that shares no disk: a server, a worker without a card, and workers of cards that
are none (`tests/sandbox/gpu/host_card.py`), each with a data folder of its own; PostgreSQL, and a Redis of
its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import redis

from tests.conftest import missing
from tests.sandbox.gpu.host_card import HostCard
from tests.webapp.stack import Browser, Process, Stack

POSTGRES = os.environ.get("KERNELWRIGHT_TEST_POSTGRES", "postgresql://root@127.0.0.1:5432")
TOKEN = "a worker's token of the tests, long enough"


@contextmanager
def own_redis(folder: Path) -> Iterator[str]:
    """Its address."""
    if shutil.which("redis-server") is None:
        missing("redis", "there is no redis-server to start")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = [
        "redis-server",
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
        str(folder),
    ]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(port=port) as client:
            for _ in range(100):
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    time.sleep(0.05)
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def own_database(name: str) -> Iterator[str]:
    """Its address."""
    try:
        server = psycopg.connect(f"{POSTGRES}/postgres", autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        missing("postgres", f"PostgreSQL cannot be reached at {POSTGRES}: {error}")
    with server:
        server.execute(f"CREATE DATABASE {name}")
    try:
        yield f"{POSTGRES}/{name}"
    finally:
        with psycopg.connect(f"{POSTGRES}/postgres", autocommit=True) as server:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


class Cluster:
    def __init__(self, folder: Path, settings: dict[str, str], driver: Path, cache: Path) -> None:
        self.folder, self._driver, self._cache = folder, driver, cache
        self.settings = {**settings, "KERNELWRIGHT_WORKER_TOKEN": TOKEN}
        self._stack = Stack(self.home("server"), self.settings, module="webapp.cli.serve")
        self._stack.needs_worker = False  # it has one of its own, started after the server
        self.processes: list[Process] = []
        self.gpu_workers: list[Process] = []
        self.browser: Browser

    def home(self, name: str) -> Path:
        """A data folder; what was built for other tests need not be built again."""
        home = self.folder / name
        home.mkdir()
        (home / "cache").symlink_to(self._cache)
        return home

    def start(self) -> None:
        self.browser = self._stack.start()
        self.settings["KERNELWRIGHT_SERVER_URL"] = self._stack.address
        arguments = [sys.executable, "-m", "celery", "-A", "webapp", "worker", "-l", "info"]
        worker = self._process("worker", arguments)
        worker.wait_for(" ready.")

    def card(self, name: str) -> HostCard:
        folder = self.folder / f"card-{re.sub(r'[^a-z_]+', '-', name)}"
        folder.mkdir()
        return HostCard(folder)

    def gpu_worker(self, card: HostCard, *, ready: bool = True, **settings: str) -> Process:
        around = {"PATH": f"{card.folder}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(self._driver)}
        arguments = [sys.executable, "-m", "webapp.cli.main", "gpu-worker"]
        name = f"gpu{len(self.processes)}"
        process = self._process(name, arguments, **around, **settings)
        self.gpu_workers.append(process)
        if ready:
            process.wait_for(" ready.")
        return process

    def end_gpu_workers(self) -> None:
        for process in self.gpu_workers:
            process.end(signal.SIGTERM, seconds=30)
        self.gpu_workers.clear()

    def artifacts(self) -> list[str]:
        """Names of those that the server keeps."""
        folder = self.folder / "server/artifacts"
        return [path.name for path in folder.iterdir()] if folder.exists() else []

    def _process(self, name: str, arguments: list[str], **settings: str) -> Process:
        home = self.home(name)
        environment = {
            **self._stack.environment,
            **self.settings,
            "KERNELWRIGHT_HOME": str(home),
            **settings,
        }
        process = Process(arguments, environment, home / "log")
        self.processes.append(process)
        return process

    def end(self) -> None:
        for process in reversed(self.processes):
            process.end(seconds=30)
        self._stack.server.end()

"""A running Kernelwright in processes of its own, and a browser's session with it."""

from __future__ import annotations

import contextlib
import http.cookiejar
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30.0
SERVICES = ("KERNELWRIGHT_DATABASE_URL", "KERNELWRIGHT_BROKER_URL", "KERNELWRIGHT_CHANNEL_URL")
SCRIPTED = "tests.webapp.scripted_app"


class Process:
    """A child process whose output is kept in a file."""

    def __init__(self, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self.child = subprocess.Popen(
                arguments, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
            )

    def wait_for(self, words: str, seconds: float = START_SECONDS) -> str:
        """The first line of output with these words."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for line in self.log.read_text(errors="replace").splitlines():
                if words in line:
                    return line
            assert self.child.poll() is None, self.log.read_text()
            time.sleep(0.05)
        raise AssertionError(f"no {words!r} within {seconds} s:\n{self.log.read_text()}")

    def end(self, number: int = signal.SIGINT, seconds: float = 15) -> int:
        """Sends the signal; the exit code."""
        if self.child.poll() is None:
            self.child.send_signal(number)
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise


class Stack:
    """A server, with a worker beside it where a broker is configured."""

    def __init__(
        self, home: Path, settings: dict[str, str], module: str = "tests.webapp.scripted_app"
    ) -> None:
        self.home = home
        self.module = module
        around = {name: value for name, value in os.environ.items() if name not in SERVICES}
        self.environment = {**around, **settings, "KERNELWRIGHT_HOME": str(home), "PYTHONUNBUFFERED": "1"}
        self.needs_worker = "KERNELWRIGHT_BROKER_URL" in settings
        self.server: Process
        self.worker: Process | None = None
        self.address = ""
        self.browser: Browser

    def start(self) -> Browser:
        """Starts what there is to start; a browser that has followed the link."""
        if self.needs_worker:
            self.start_worker()
        arguments = [sys.executable, "-m", self.module, "--port", "0"]
        self.server = Process(arguments, self.environment, self.home / "server.log")
        link = self.server.wait_for("/enter/").rpartition(" ")[2]
        self.address = link.partition("/enter/")[0]
        return Browser(self.address, link)

    def start_worker(self) -> None:
        arguments = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "tests.webapp.scripted_app",
            "worker",
            "-l",
            "info",
        ]
        self.worker = Process(arguments, self.environment, self.home / "worker.log")
        self.worker.wait_for(" ready.")

    def end(self) -> None:
        for process in (self.server, self.worker):
            if process is not None:
                process.end()


class Browser:
    """A session: cookies, the CSRF token, REST and websockets."""

    def __init__(self, address: str, link: str) -> None:
        self.address = address
        self.cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        # Where the front end was not built, the page that the link leads to says so with 503.
        with contextlib.suppress(urllib.error.HTTPError):
            self._opener.open(link, timeout=10).close()
        self.token = self.get("session")["csrf_token"]

    def get(self, path: str) -> Any:
        return self._call(urllib.request.Request(f"{self.address}/api/v1/{path}"))

    def post(self, path: str, body: Any = None) -> Any:
        headers = {"Content-Type": "application/json", "X-CSRFToken": self.token}
        data = json.dumps(body or {}).encode()
        return self._call(urllib.request.Request(f"{self.address}/api/v1/{path}", data, headers))

    def api_token(self) -> str:
        """A new token that is good for everything a token can be good for."""
        scopes = ["read", "runs:write", "evaluations:write", "reviews:write", "workspace:admin"]
        return str(self.post("tokens", {"name": "test", "scopes": scopes, "days": 1})["token"])

    def script(self, script: str) -> str:
        """A new run of the scripted translator; its id."""
        return self.translate(source=f"// script: {script}\nvoid f(int n);\n")

    def translate(self, **request: Any) -> str:
        """A new run; its id."""
        return str(self.post("runs", request)["id"])

    def wait_until(
        self, run_id: str, condition: Callable[[dict[str, Any]], bool], seconds: float = 10
    ) -> Any:
        deadline = time.monotonic() + seconds
        while not condition(run := self.get(f"runs/{run_id}")):
            assert time.monotonic() < deadline, run
            time.sleep(0.05)
        return run

    @contextmanager
    def listen(self, run_id: str, after_seq: int) -> Iterator[ClientConnection]:
        cookie = "; ".join(f"{it.name}={it.value}" for it in self.cookies)
        url = f"{self.address.replace('http', 'ws', 1)}/ws/runs/{run_id}"
        with connect(url, origin=self.address, additional_headers={"Cookie": cookie}) as it:
            it.send(json.dumps({"type": "hello", "after_seq": after_seq}))
            yield it

    def events(self, run_id: str, after_seq: int = 0) -> list[dict[str, Any]]:
        """All event frames up to the run's end."""
        frames: list[dict[str, Any]] = []
        with self.listen(run_id, after_seq) as it:
            while not frames or frames[-1]["event"]["type"] != "run_ended":
                frame = json.loads(it.recv(timeout=15))
                if frame["type"] == "event":
                    frames.append(frame)
        return frames

    def _call(self, request: urllib.request.Request) -> Any:
        with self._opener.open(request, timeout=10) as response:
            return json.load(response)

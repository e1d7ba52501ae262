"""`serve --with-vllm MODEL`: a vLLM of this server's own, started, watched, stopped with it.

It listens on loopback, behind a key that is made for it; only this server's runs can ask it.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from django.db import connection

from webapp.language_models.models import LanguageModel
from webapp.language_models.selectors import ModelUnusable, language_models
from webapp.language_models.services import language_model_save, served_refresh

NAME = "vllm"
VARIABLE = "KERNELWRIGHT_VLLM"
NOT_RUNNING = "vLLM does not run; it is started by kernelwright serve --with-vllm MODEL"
STARTS = 2  # once, and once more where it dies
_POLL_SECONDS = 0.25
_SAY_SECONDS = 10.0
_STOP_SECONDS = 15.0


class VllmMissing(Exception):
    """The message says what to install or to name."""


def find_program() -> str:
    """Raises VllmMissing."""
    named = os.environ.get(VARIABLE, "").strip()
    found = shutil.which(named or "vllm")
    if found is None and named:
        raise VllmMissing(f"{VARIABLE} names {named}, which is no program here")
    if found is None:
        raise VllmMissing(
            "vLLM is not installed here. Get it, best into an environment of its own (pip install vllm; it "
            f"needs a GPU or its CPU build), and name its program: {VARIABLE}=/path/to/bin/vllm"
        )
    return found


class Vllm:
    """One `vllm serve` in a process group of its own, and the row that runs find it by."""

    def __init__(self, model: str, arguments: str, *, log: Path, say: Callable[[str], None]) -> None:
        """Raises VllmMissing, and ValueError for arguments with an open quote."""
        self.model, self.say, self.log = model, say, log
        self._command = [find_program(), "serve", model, *shlex.split(arguments)]
        self._key = secrets.token_urlsafe(24)
        self._stopping = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._supervise, name="vllm", daemon=True)

    def start(self) -> None:
        """Comes back at once: the server answers while the model loads."""
        self._register(0, trouble=f"vLLM is starting {self.model}")
        self._thread.start()

    def stop(self) -> None:
        """Its whole process group, and waits for it. May be called twice."""
        self._stopping.set()
        with self._lock:
            self._end()
        self._thread.join(_STOP_SECONDS)
        self._say_trouble(NOT_RUNNING)

    def _supervise(self) -> None:
        for start in range(1, STARTS + 1):
            began = time.monotonic()
            port = self._spawn()
            if port is None:
                return
            if self._wait_until_healthy(port, began):
                self._serves(port, time.monotonic() - began)
                code = self._wait_for_end()
            else:
                code = self._wait_for_end() if not self._stopping.is_set() else 0
            if self._stopping.is_set():
                break
            with self._lock:
                self._end()  # what it started may have outlived it
            again = "it is started once more" if start < STARTS else "it is not started again"
            why = f"vLLM ended with exit code {code}: {self._last_line()}"
            self._say_trouble(f"{why} (all of it: {self.log})")
            self.say(f"{why}; {again}")
        connection.close()

    def _spawn(self) -> int | None:
        """Starts it on a free port; None when it is to stop."""
        with self._lock, self.log.open("wb") as output:
            if self._stopping.is_set():
                return None
            port = _free_port()
            where = ["--host", "127.0.0.1", "--port", str(port)]
            self._child = subprocess.Popen(
                [*self._command, *where],
                env={**os.environ, "VLLM_API_KEY": self._key},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.say(f"vLLM is starting {self.model}; its log: {self.log}")
        return port

    def _wait_until_healthy(self, port: int, began: float) -> bool:
        """False when it ended first."""
        said = began
        while not self._stopping.wait(_POLL_SECONDS):
            assert self._child is not None
            if self._child.poll() is not None:
                return False
            if _answers(f"http://127.0.0.1:{port}/health"):
                return True
            if time.monotonic() - said >= _SAY_SECONDS:
                said = time.monotonic()
                waited = f"vLLM is starting {self.model}, {said - began:.0f} s"
                self._say_trouble(waited)
                self.say(f"{waited}: {self._last_line()}")
        return False

    def _serves(self, port: int, seconds: float) -> None:
        row = self._register(port, trouble="")
        served = []
        with suppress(ModelUnusable):
            served = served_refresh(model=row)
        if served and self.model not in served:  # --served-model-name among the arguments
            language_models().filter(pk=row.pk).update(model=served[0])
        self.say(f"vLLM serves {', '.join(served) or self.model} after {seconds:.0f} s")
        connection.close()

    def _wait_for_end(self) -> int:
        assert self._child is not None
        return self._child.wait()

    def _register(self, port: int, *, trouble: str) -> LanguageModel:
        row = language_models().filter(name=NAME).first() or LanguageModel(
            name=NAME, is_default=not language_models().exists()
        )
        row.origin = LanguageModel.Origin.VLLM
        where = {"base_url": f"http://127.0.0.1:{port}/v1", "model": self.model, "allow_loopback": True}
        values = {**where, "trouble": trouble, "enabled": True}
        language_model_save(model=row, values=values, key=self._key)
        return row

    def _say_trouble(self, trouble: str) -> None:
        language_models().filter(name=NAME).update(trouble=trouble[:500])
        connection.close()

    def _end(self) -> None:
        """Under the lock."""
        child = self._child
        if child is None:
            return
        for number, seconds in ((signal.SIGTERM, _STOP_SECONDS), (signal.SIGKILL, 5.0)):
            with suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with suppress(subprocess.TimeoutExpired):
                child.wait(seconds)
                if not _group_lives(child.pid):
                    return

    def _last_line(self) -> str:
        with suppress(OSError):
            lines = self.log.read_bytes()[-4096:].decode(errors="replace").split("\n")
            return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "it said nothing")
        return "it said nothing"


def vllm_forgotten() -> None:
    """At a server's start: a vLLM of an earlier one does not run any more."""
    language_models().filter(origin=LanguageModel.Origin.VLLM).update(trouble=NOT_RUNNING)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2) as response:
            return int(response.status) == 200
    except (OSError, urllib.error.URLError):
        return False


def _group_lives(group: int) -> bool:
    """Whether the group still has a process; gives those that were told to end a moment."""
    deadline = time.monotonic() + 3.0
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    return True

"""`serve --with-vllm`: started, waited for, started once more, stopped. A small program of the tests stands
in for vLLM: what is tested is the supervision, not vLLM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import all_end
from tests.webapp.stack import ROOT, SERVICES, Browser, Process


def environment(folder: Path, **more: str) -> dict[str, str]:
    """One whose PATH has the stand-in as `vllm`."""
    commands = folder / "bin"
    commands.mkdir()
    program = commands / "vllm"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.webapp.vllm_stand_in "$@"\n')
    program.chmod(0o755)
    around = {name: value for name, value in os.environ.items() if name not in SERVICES}
    path = f"{commands}:{around['PATH']}"
    own = {"PATH": path, "KERNELWRIGHT_HOME": str(folder), "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)}
    return {**around, **own, **more}


@contextmanager
def serving(folder: Path, *options: str, **more: str) -> Iterator[tuple[Process, Browser]]:
    command = [sys.executable, "-m", "webapp.cli.serve", "--port", "0", "--with-vllm", "coder-7b", *options]
    server = Process(command, environment(folder, **more), folder / "server.log")
    try:
        link = server.wait_for("/enter/").rpartition(" ")[2]
        yield server, Browser(link.partition("/enter/")[0], link)
    finally:
        server.end()


def group(folder: Path) -> list[int]:
    """The stand-in's engine and the process that started it."""
    words = (folder / "vllm.log").read_text().split()
    engine = int(words[words.index("engine") + 1])
    status = Path(f"/proc/{engine}/status").read_text()
    return [engine, int(status.partition("PPid:")[2].split()[0])]


def test_it_is_started_offered_started_again_and_stopped(tmp_path: Path) -> None:
    adapters = "--enable-lora --lora-modules 'mine=/adapters/mine v2'"
    with serving(tmp_path, "--vllm-args", adapters, STAND_IN_SECONDS="1.5") as (server, browser):
        starting = browser.get("models")[0]
        assert "starting coder-7b" in starting["reason"]
        server.wait_for("vLLM serves coder-7b, mine after")
        model = browser.get("models")[0]
        assert (model["name"], model["available"], model["served"]) == ("vllm", True, ["coder-7b", "mine"])
        choices = [it["model"] for it in browser.get("session")["options"]["policies"]]
        assert choices == ["", "vllm", "vllm:mine"]
        assert browser.post(f"models/{model['id']}/try")["ok"]
        first = group(tmp_path)
        os.kill(first[1], signal.SIGKILL)
        server.wait_for("it is started once more")
        assert all_end(first)  # its engine, too
        deadline = time.monotonic() + 60
        while not browser.get("models")[0]["available"]:
            assert time.monotonic() < deadline, server.log.read_text()
            time.sleep(0.1)
        second = group(tmp_path)
        os.kill(second[1], signal.SIGKILL)
        server.wait_for("it is not started again")
        assert "exit code -9" in browser.get("models")[0]["reason"]
    assert all_end(second)


def test_it_is_stopped_with_its_server(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, _):
        server.wait_for("vLLM serves")
        processes = group(tmp_path)
        began = time.monotonic()
        server.end()
        assert time.monotonic() - began < 14  # it is asked to end, and not killed after a wait
    assert all_end(processes, seconds=1)


def test_what_it_died_of_is_said(tmp_path: Path) -> None:
    with serving(tmp_path, STAND_IN_FAILS="1") as (server, browser):
        server.wait_for("it is not started again")
        assert "out of memory" in browser.get("models")[0]["reason"]


@pytest.mark.parametrize(
    ("arguments", "variable", "words"),
    [
        (("--with-vllm", "m"), "", "pip install vllm"),
        (("--with-vllm", "m"), "/no/such/vllm", "names /no/such/vllm"),
        (("--vllm-args", "-x"), "", "--with-vllm MODEL"),
    ],
)
def test_what_is_missing_is_said_before_anything_starts(
    tmp_path: Path, arguments: tuple[str, ...], variable: str, words: str
) -> None:
    own = {"KERNELWRIGHT_HOME": str(tmp_path), "KERNELWRIGHT_VLLM": variable, "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "webapp.cli.serve", "--port", "0", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert words in done.stderr

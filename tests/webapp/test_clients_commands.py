"""login, submit, watch, show, diff and download against a running server, on a terminal and in CI."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.webapp.stack import ROOT, Browser, Stack
from webapp.client import ApiProblem, Client, Unreachable
from webapp.client.http import new_key
from webapp.live import client as generator

SOURCE = "// script: {}\nvoid f(int n);\n"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("clients"), {})
    stack.browser = stack.start()
    yield stack
    stack.end()


@pytest.fixture(scope="module")
def browser(stack: Stack) -> Browser:
    return stack.browser


@pytest.fixture(scope="module")
def token(browser: Browser) -> str:
    return browser.api_token()


@pytest.fixture
def around(browser: Browser, token: str, tmp_path: Path) -> dict[str, str]:
    """The environment of somebody in CI."""
    named = {"KERNELWRIGHT_SERVER": browser.address, "KERNELWRIGHT_TOKEN": token}
    return os.environ | named | {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def start(around: dict[str, str], *arguments: object, **options: Any) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "webapp.cli.main", *map(str, arguments)]
    return subprocess.Popen(
        argv, cwd=ROOT, env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def kernelwright(
    around: dict[str, str], *arguments: object, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "webapp.cli.main", *map(str, arguments)]
    return subprocess.run(
        argv, cwd=ROOT, env=around, input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


def program(folder: Path, script: str = "turns") -> Path:
    path = folder / "saxpy.c"
    path.write_text(SOURCE.format(script))
    return path


def test_login_stores_a_good_token_for_its_owner_alone(
    around: dict[str, str], browser: Browser, token: str, tmp_path: Path
) -> None:
    del around["KERNELWRIGHT_SERVER"], around["KERNELWRIGHT_TOKEN"]
    assert "kernelwright login" in kernelwright(around, "show").stderr
    wrong = kernelwright(around, "login", browser.address, stdin="kw_nobodys\n")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert not list((tmp_path / "config").rglob("*.json"))
    done = kernelwright(around, "login", browser.address, "--json", stdin=f"{token}\n")
    assert done.returncode == 0, done.stderr
    assert token not in done.stdout + done.stderr
    [path] = (tmp_path / "config").rglob("*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert kernelwright(around, "show", "--json").returncode == 0
    path.chmod(0o644)
    assert "chmod 600" in kernelwright(around, "show").stderr
    assert kernelwright(around, "login", "--forget", browser.address).returncode == 0
    assert kernelwright(around, "show").returncode == 2


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("http://kernels.example", "in the clear"),
        ("ftp://kernels.example", "no server's address"),
        ("https://user:secret@kernels.example", "no server's address"),
        ("http://127.0.0.1:1", "cannot be reached"),
    ],
)
def test_a_server_that_cannot_be_is_said(around: dict[str, str], server: str, words: str) -> None:
    finished = kernelwright(around, "show", "--server", server)
    assert finished.returncode == 2
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr


def test_submit_watch_show_diff_download(around: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "best.cu"
    done = kernelwright(around, "submit", program(tmp_path), "--watch", "--json", "-o", out)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert (run["state"], run["best_turn"], out.read_text()) == ("finished", 2, "// turn 2\n")
    assert re.search(r"^turn 2.*: Guard the last block$", done.stderr, re.MULTILINE)
    watched = kernelwright(around, "watch", run["id"], "--json")
    events = [json.loads(line) for line in watched.stdout.splitlines()]
    assert (watched.returncode, events[0]["type"], events[-1]["type"]) == (0, "run_started", "run_ended")
    shown = kernelwright(around, "show", run["id"])
    assert "turn 2: Guard the last block: passed 71.5 (best)" in shown.stdout
    assert run["id"] in kernelwright(around, "show").stdout
    assert json.loads(kernelwright(around, "show", run["id"], "--json").stdout)["id"] == run["id"]
    for turns in ((), (1, 2)):
        diff = kernelwright(around, "diff", run["id"], *turns).stdout
        assert diff == "--- turn 1\n+++ turn 2\n@@ -1 +1 @@\n-// turn 1\n+// turn 2\n"
    assert kernelwright(around, "download", run["id"], "--turn", 1).stdout == "// turn 1\n"
    again = kernelwright(around, "download", run["id"], "-o", out)
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    missing = kernelwright(around, "download", run["id"], "--turn", 9)
    assert (missing.returncode, "Turn 9" in missing.stderr) == (2, True)


@pytest.mark.parametrize(("verdict", "code"), [("passed", 0), ("wrong_result", 1)])
def test_a_candidate_is_judged_by_the_server(
    around: dict[str, str], tmp_path: Path, verdict: str, code: int
) -> None:
    candidate = tmp_path / "k.cu"
    candidate.write_text(f"// verdict: {verdict}\n")
    done = kernelwright(around, "submit", program(tmp_path), "--candidate", candidate, "--watch", "--json")
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout)["verdict"] == verdict
    name = done.stderr.split("evaluation ")[1].split()[0]
    assert kernelwright(around, "show", name).returncode == code
    assert kernelwright(around, "download", name).stdout == candidate.read_text()


def test_ctrl_c_detaches_and_says_how_to_come_back(
    around: dict[str, str], browser: Browser, tmp_path: Path
) -> None:
    run_id = kernelwright(around, "submit", program(tmp_path, "wait")).stdout.strip()
    browser.wait_until(run_id, lambda run: run["state"] == "running")
    for extra, state in ((), "running"), (("--cancel-on-interrupt",), "cancelled"):
        with start(around, "watch", run_id, "--json", *extra) as watching:
            assert watching.stdout is not None
            assert "run_started" in watching.stdout.readline()
            watching.send_signal(signal.SIGINT)
            try:
                said = watching.communicate(timeout=20)[1]
            finally:
                watching.kill()
        assert watching.returncode == 130, said
        assert (f"kernelwright watch {run_id}" in said) == (state == "running")
        assert browser.get(f"runs/{run_id}")["state"] == state


class Cutting:
    """A proxy on the way to the server that cuts the first connections in the middle of a stream."""

    def __init__(self, server: str, cuts: int, after: int) -> None:
        self.target = server.rpartition("/")[2].split(":")
        self.cuts, self.after = cuts, after
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection((self.target[0], int(self.target[1])))
            threading.Thread(target=self._pump, args=(near, far, None), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, self.after), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, limit: int | None) -> None:
        passed = 0
        try:
            while data := source.recv(4096):
                target.sendall(data)
                passed += len(data)
                if limit is not None and passed > limit and self.cuts:
                    self.cuts -= 1
                    break
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def test_watch_goes_on_after_a_broken_connection(around: dict[str, str], browser: Browser) -> None:
    run_id = browser.script("burst")
    whole = [frame["event"] for frame in browser.events(run_id)]
    proxy = Cutting(browser.address, cuts=3, after=20_000)
    finished = kernelwright(around, "watch", run_id, "--json", "--server", proxy.address)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr.count("the connection broke") == 3
    assert [json.loads(line) for line in finished.stdout.splitlines()] == whole


def test_no_terminal_tricks_where_there_is_no_terminal(around: dict[str, str], browser: Browser) -> None:
    run_id = browser.script("turns")
    finished = kernelwright(around, "watch", run_id)
    assert "\x1b" not in finished.stdout + finished.stderr
    near, far = pty.openpty()
    asking = start(around, "login", browser.address, stdin=far, start_new_session=True)
    os.close(far)
    os.close(near)  # the terminal goes away
    assert asking.wait(20) != 0


def test_the_client_says_what_is_wrong_and_sends_again_only_what_it_may(browser: Browser, token: str) -> None:
    with Client(browser.address, token=token) as client:
        key = new_key()
        made = [client.runs_create({"source": SOURCE.format("turns")}, idempotency_key=key) for _ in range(2)]
        assert made[0]["id"] == made[1]["id"]
        page = client.runs_list(limit=1)
        assert len(page["results"]) == 1
        with pytest.raises(ApiProblem) as caught:
            client.runs_create({"source": " "})
        assert caught.value.document is not None
        assert (caught.value.status, caught.value.document["errors"][0]["field"]) == (400, "source")
    with Client("http://127.0.0.1:1", token=token, attempts=1) as client, pytest.raises(Unreachable):
        client.session_get()


def test_the_client_is_what_the_document_says() -> None:
    assert generator.TARGET.read_text() == generator.python(generator.document()), (
        "run python -m webapp.live.client"
    )

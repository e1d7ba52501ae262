"""The whole thing in real processes, both ways: a laptop's one process on SQLite, and a cluster's server and
worker on PostgreSQL and Redis."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from tests.conftest import missing
from tests.webapp import scripted
from tests.webapp.stack import ROOT, Browser, Stack

POSTGRES = os.environ.get("KERNELWRIGHT_TEST_POSTGRES", "postgresql://root@127.0.0.1:5432")
REDIS = os.environ.get("KERNELWRIGHT_TEST_REDIS", "redis://127.0.0.1:6379")
DATABASE = f"kernelwright_test_{os.getpid()}"
CLUSTER = {
    "KERNELWRIGHT_DATABASE_URL": f"{POSTGRES}/{DATABASE}",
    "KERNELWRIGHT_BROKER_URL": f"{REDIS}/13",
    "KERNELWRIGHT_CHANNEL_URL": f"{REDIS}/14",
}

#: Tests that start servers of their own, or ask of which no database knows: these run once.
ONCE = {
    *("test_web_system.py", "test_web_engine.py", "test_web_page.py", "test_web_schema.py"),
    *("test_cards_system.py", "test_clients_commands.py", "test_vllm_supervised.py", "test_models_runs.py"),
    *("test_api_schemathesis.py", "test_api_examples.py", "test_workspaces_matrix.py"),
    *("test_workspaces_docs.py", "test_review_anchoring.py", "test_feed_text.py"),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, str]]:
    """Settings of a cluster, with an empty database and an empty broker."""
    try:
        server = psycopg.connect(f"{POSTGRES}/postgres", autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        missing("postgres", f"PostgreSQL cannot be reached at {POSTGRES}: {error}")
    for number in (13, 14):
        try:
            redis.Redis.from_url(f"{REDIS}/{number}", socket_connect_timeout=3).flushdb()
        except redis.RedisError as error:
            missing("redis", f"Redis cannot be reached at {REDIS}: {error}")
    with server:
        server.execute(f"CREATE DATABASE {DATABASE}")
    yield CLUSTER
    with psycopg.connect(f"{POSTGRES}/postgres", autocommit=True) as server:
        server.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


@pytest.fixture(scope="module", params=["laptop", "cluster"])
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    settings = request.getfixturevalue("cluster") if request.param == "cluster" else {}
    it = Stack(tmp_path_factory.mktemp(request.param), settings)
    it.browser = it.start()
    yield it
    it.end()


@pytest.fixture
def browser(stack: Stack) -> Browser:
    return stack.browser


def numbers(frames: list[dict[str, Any]]) -> list[int]:
    return [frame["seq"] for frame in frames]


def test_a_run_streams_to_its_end_and_can_be_read_again(browser: Browser) -> None:
    run_id = browser.script("turns")
    live = browser.events(run_id)
    assert numbers(live) == list(range(1, len(live) + 1))
    assert browser.events(run_id, after_seq=5) == live[5:]
    stored = browser.get(f"runs/{run_id}/events")["results"]
    assert [event["event"] for event in stored] == [frame["event"] for frame in live]
    run = browser.wait_until(run_id, lambda it: it["state"] == "finished")
    assert (run["best_turn"], run["last_seq"]) == (2, len(live))


def test_a_burst_arrives_complete_and_in_order(browser: Browser) -> None:
    frames = browser.events(browser.script("burst"))
    assert numbers(frames) == list(range(1, scripted.BURST + 4))
    texts = [frame["event"]["text"] for frame in frames if frame["event"]["type"] == "reflected"]
    assert texts == [str(number) for number in range(scripted.BURST)]


def test_cancel_stops_a_run_in_another_thread_or_process(browser: Browser) -> None:
    run_id = browser.script("wait")
    browser.wait_until(run_id, lambda it: it["state"] == "running" and it["last_seq"] > 0)
    asked = time.monotonic()
    assert browser.post(f"runs/{run_id}/cancel")["state"] in ("cancelling", "cancelled")
    assert browser.events(run_id)[-1]["event"]["reason"] == "cancelled"
    assert time.monotonic() - asked < 2


def test_a_run_whose_worker_dies_is_interrupted_and_nothing_is_lost(stack: Stack) -> None:
    run_id = stack.browser.script("wait")
    stack.browser.wait_until(run_id, lambda it: it["state"] == "running" and it["last_seq"] > 0)
    if stack.worker is not None:
        stack.worker.end(signal.SIGKILL)
        stack.start_worker()
    else:
        stack.server.end(signal.SIGKILL)
        stack.browser = stack.start()
        assert "1 unfinished run " in stack.server.log.read_text()
    last = stack.browser.events(run_id)[-1]
    assert last["event"]["reason"] == "interrupted"
    again = stack.browser.post(f"runs/{run_id}/rerun")
    assert again["rerun_of"] == run_id
    stack.browser.post(f"runs/{again['id']}/cancel")


def test_one_signal_stops_it_all_in_a_few_seconds_and_marks_the_run(stack: Stack) -> None:
    runs = {script: stack.browser.script(script) for script in ("wait", "deaf")}
    for run_id in runs.values():
        stack.browser.wait_until(run_id, lambda it: it["state"] == "running" and it["last_seq"] > 0)
    asked = time.monotonic()
    with stack.browser.listen(runs["wait"], 0):
        if stack.worker is not None:
            stack.worker.end(signal.SIGTERM, seconds=15)
        assert stack.server.end() == 0
    assert time.monotonic() - asked < 10
    began = time.monotonic()
    stack.browser = stack.start()
    if stack.worker is None:
        assert time.monotonic() - began < 10
    for run_id in runs.values():
        assert stack.browser.get(f"runs/{run_id}")["state"] == "interrupted"


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    stack = Stack(tmp_path, {})
    stack.start().script("deaf")
    stack.server.child.send_signal(signal.SIGINT)
    stack.server.wait_for("stopping")
    asked = time.monotonic()
    assert stack.server.end(signal.SIGINT) == 128 + signal.SIGINT
    assert time.monotonic() - asked < 1


def serve(arguments: list[str], home: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "webapp.cli.serve", *arguments],
        cwd=ROOT,
        env={**os.environ, "KERNELWRIGHT_HOME": str(home), **settings},
        capture_output=True,
        text=True,
        timeout=30,
    )


def test_a_taken_port_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = serve(["--port", str(port)], tmp_path)
    assert ended.returncode == 2
    assert f"port {port} of 127.0.0.1 is taken" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KERNELWRIGHT_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none"),
        ("KERNELWRIGHT_BROKER_URL", "redis://127.0.0.1:1/0"),
        ("KERNELWRIGHT_CHANNEL_URL", "redis://127.0.0.1:1/0"),
    ],
)
def test_a_service_that_is_not_there_is_said(tmp_path: Path, name: str, value: str) -> None:
    ended = serve(["--port", "0"], tmp_path, **{name: value})
    assert ended.returncode == 2, ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert "cannot be reached" in last
    assert name in last


def test_the_same_tests_pass_on_postgres_and_redis(cluster: dict[str, str]) -> None:
    """The tests of what the web stores and sends once more, on the cluster's database and channel layer."""
    if "postgres" not in os.environ.get("KERNELWRIGHT_REQUIRE", ""):
        pytest.skip("a minute more: set KERNELWRIGHT_REQUIRE=postgres,redis, as CI does")
    suites = sorted(str(path) for path in Path(__file__).parent.glob("test_*.py") if path.name not in ONCE)
    environment = {**os.environ, **cluster, "KERNELWRIGHT_DATABASE_URL": f"{POSTGRES}/{DATABASE}_suite"}
    del environment["KERNELWRIGHT_BROKER_URL"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *suites],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stdout[-4000:]
    assert " passed" in ended.stdout

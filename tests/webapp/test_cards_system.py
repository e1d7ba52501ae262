"""Candidates of one machine on another machine's card, in real processes: PostgreSQL, Redis, a server, a
worker without a card, workers of cards. The cards are drivers made of host memory, the tests' own; all else
is the real thing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.sandbox.gpu.host_card import HostCard, health, host_driver
from tests.webapp.cluster import Cluster, own_database, own_redis
from webapp.gallery.selectors import EXAMPLES

__all__ = ["host_driver"]  # a fixture
pytestmark = pytest.mark.usefixtures("jail")

KERNELS = Path(__file__).resolve().parents[1] / "fixtures/kernels"
SAXPY = (EXAMPLES / "c/saxpy.c").read_text()
RIGHT = (KERNELS / "right/saxpy_plain.cu").read_text()


@pytest.fixture(scope="module")
def cluster(home: Path, host_driver: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    (home / "cache").mkdir(exist_ok=True)
    with own_redis(folder) as broker, own_database(f"kernelwright_cards_{os.getpid()}") as database:
        settings = {
            "KERNELWRIGHT_DATABASE_URL": database,
            "KERNELWRIGHT_BROKER_URL": f"{broker}/0",
            "KERNELWRIGHT_CHANNEL_URL": f"{broker}/1",
        }
        it = Cluster(folder, settings, host_driver, home / "cache")
        it.start()
        yield it
        it.end()


@pytest.fixture
def card(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[HostCard]:
    """A card of the test's own; whoever serves it afterwards is ended."""
    card = cluster.card(request.node.name)
    yield card
    cluster.end_gpu_workers()
    card.forget()


def asked(cluster: Cluster, candidate: str = RIGHT, **fields: Any) -> str:
    return cluster.browser.translate(
        source=SAXPY, filename="saxpy.c", target="sm_90", turns=1, start_from=candidate, **fields
    )


def slow(milliseconds: int) -> str:
    """Right, and on the tests' driver as slow as that at every launch; in the emulator as fast as ever."""
    launch = f"saxpy<<<(n + 255) / 256, 256>>>(n, a, x, y); wait<<<1, 1>>>({1000 * milliseconds});"
    return 'extern "C" __global__ void wait(int us) {}\n' + RIGHT.replace(
        "saxpy<<<(n + 255) / 256, 256>>>(n, a, x, y);", f"{{ {launch} }}"
    )


def rows(cluster: Cluster, query: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(cluster.settings["KERNELWRIGHT_DATABASE_URL"], autocommit=True) as database:
        return database.execute(query, values).fetchall()


def charged(cluster: Cluster, run: str) -> list[float]:
    return [
        seconds for (seconds,) in rows(cluster, "SELECT seconds FROM cards_gpuuse WHERE run_id = %s", run)
    ]


def stages(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [frame["event"] for frame in frames if frame["event"]["type"] == "stage"]


def judged(frames: list[dict[str, Any]]) -> dict[str, Any]:
    [evaluation] = [
        frame["event"]["evaluation"] for frame in frames if frame["event"]["type"] == "turn_ended"
    ]
    return evaluation


def device(cluster: Cluster, card: HostCard) -> dict[str, Any]:
    [found] = [it for it in cluster.browser.get("devices")["results"] if it["uuid"] == card.uuid]
    return found


def until(condition: Callable[[], bool], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def on_the_card(cluster: Cluster, run: str) -> None:
    """Waits until its candidate is being replayed there."""
    done = "SELECT 1 FROM runs_runevent WHERE run_id = %s AND payload->>'detail' = 'draws on Host Card'"
    until(lambda: bool(rows(cluster, done, run)))


def test_a_run_uses_a_card_of_another_machine(cluster: Cluster, card: HostCard) -> None:
    cluster.gpu_worker(card)
    run = asked(cluster, backend="gpu")
    frames = cluster.browser.events(run)
    evaluation = judged(frames)
    assert (evaluation["verdict"], evaluation["backend"]) == ("passed", "gpu"), evaluation
    assert evaluation["timing"]["trials"] == 140
    waited, at_work, compiling, *_ = stages(frames)
    assert (waited["detail"], waited["queue_position"]) == ("waiting for a GPU: 1st", 1)
    assert at_work["device"] == device(cluster, card)["name"] + " on " + device(cluster, card)["host"]
    assert (compiling["stage"], compiling["device"]) == ("compile", at_work["device"])
    [seconds] = charged(cluster, run)
    assert 0 < seconds < evaluation["seconds"]
    assert cluster.artifacts() == []  # what was handed over is gone with its use
    # A candidate that was given to be judged uses it too.
    request = {"source": SAXPY, "filename": "saxpy.c", "candidate": RIGHT, "target": "sm_90"}
    given = cluster.browser.post("evaluations", request)["id"]
    until(lambda: cluster.browser.get(f"evaluations/{given}")["state"] == "finished")
    evaluation = cluster.browser.get(f"evaluations/{given}")["evaluation"]
    assert (evaluation["verdict"], evaluation["backend"]) == ("passed", "gpu")
    assert len(rows(cluster, "SELECT 1 FROM cards_gpuuse WHERE given_id = %s", given)) == 1


def test_who_waits_sees_its_place_and_cancelling_ends_it(cluster: Cluster, card: HostCard) -> None:
    cluster.gpu_worker(card)
    first = asked(cluster, slow(50))
    on_the_card(cluster, first)
    second = asked(cluster)
    run = cluster.browser.wait_until(second, lambda run: run["gpu"] is not None)
    assert run["gpu"] == {"state": "waiting", "position": 1, "device": ""}
    [listed] = [it for it in cluster.browser.get("runs")["results"] if it["id"] == first]
    assert listed["gpu"]["device"].startswith("Host Card on ")
    assert (device(cluster, card)["state"], device(cluster, card)["waiting"]) == ("busy", 1)
    for run_id in (second, first):  # one in the queue, one on the card
        cluster.browser.post(f"runs/{run_id}/cancel")
        assert cluster.browser.events(run_id)[-1]["event"]["reason"] == "cancelled"
        assert charged(cluster, run_id) == []
    # The card is free at once, not after the hundreds of slow launches of the first.
    assert judged(cluster.browser.events(asked(cluster)))["verdict"] == "passed"


def test_a_worker_that_dies_is_replaced_once_and_charged_once(cluster: Cluster, card: HostCard) -> None:
    run = asked_of(cluster, card, slow(5))
    cluster.gpu_worker(card)
    frames = cluster.browser.events(run)
    assert judged(frames)["verdict"] == "passed"
    assert any("died; the candidate is tried once more" in it["detail"] for it in stages(frames))
    assert len(charged(cluster, run)) == 1
    assert rows(cluster, "SELECT attempts FROM cards_gpuevaluation WHERE run_id = %s", run) == [(2,)]


def asked_of(cluster: Cluster, card: HostCard, candidate: str) -> str:
    """A run whose worker is killed while its candidate is being replayed."""
    worker = cluster.gpu_worker(card)
    run = asked(cluster, candidate)
    on_the_card(cluster, run)
    assert worker.end(signal.SIGKILL) == -signal.SIGKILL
    return run


def test_a_second_death_is_our_fault_and_costs_nothing(cluster: Cluster, card: HostCard) -> None:
    run = asked_of(cluster, card, slow(50))
    worker = cluster.gpu_worker(card)
    until(lambda: rows(cluster, "SELECT attempts FROM cards_gpuevaluation WHERE run_id = %s", run) == [(2,)])
    worker.end(signal.SIGKILL)
    evaluation = judged(cluster.browser.events(run))
    assert (evaluation["verdict"], evaluation["fault"]) == ("internal_error", "kernelwright")
    assert (
        "died in the middle of this candidate, and so did the one that tried it again"
        in evaluation["message"]
    )
    assert charged(cluster, run) == []


def test_a_worker_that_is_told_to_stop_gives_back_what_it_had(cluster: Cluster, card: HostCard) -> None:
    worker = cluster.gpu_worker(card)
    run = asked(cluster, slow(5))
    on_the_card(cluster, run)
    worker.end(signal.SIGTERM)
    assert device(cluster, card)["state"] == "away"
    cluster.gpu_worker(card)
    assert judged(cluster.browser.events(run))["verdict"] == "passed"
    assert rows(cluster, "SELECT attempts FROM cards_gpuevaluation WHERE run_id = %s", run) == [(1,)]


def test_a_sick_card_is_drained_until_its_driver_calls_it_well(cluster: Cluster, card: HostCard) -> None:
    worker = cluster.gpu_worker(card)
    card.say(health(card.uuid, uncorrectable=1))
    rot = 'extern "C" __global__ void rot() {}\n' + RIGHT.replace("if (n > 0)", "rot<<<1, 1>>>(); if (n > 0)")
    run = asked(cluster, rot)
    evaluation = judged(cluster.browser.events(run))
    assert (evaluation["verdict"], evaluation["fault"]) == ("internal_error", "kernelwright")
    assert "is out of service now: 1 errors of memory" in evaluation["message"]
    assert charged(cluster, run) == []
    until(lambda: device(cluster, card)["state"] == "quarantined")
    refused = cluster.browser.events(asked(cluster, backend="gpu"))[-1]["event"]
    assert refused["reason"] == "bad_input"
    assert "Host Card on" in refused["message"]
    assert "out of service" in refused["message"]
    assert judged(cluster.browser.events(asked(cluster)))["backend"] == "emulator"
    heal = "UPDATE cards_card SET heal_asked_at = now() WHERE uuid = %s RETURNING id"
    rows(cluster, heal, card.uuid)  # what the admin's action does
    until(
        lambda: rows(cluster, "SELECT heal_asked_at FROM cards_card WHERE uuid = %s", card.uuid) == [(None,)]
    )
    assert device(cluster, card)["state"] == "quarantined"  # the driver still calls it sick
    card.say(health(card.uuid))
    rows(cluster, heal, card.uuid)
    until(lambda: device(cluster, card)["state"] == "free")
    assert worker.child.poll() is None
    assert judged(cluster.browser.events(asked(cluster)))["backend"] == "gpu"


def test_of_two_workers_of_a_card_one_serves(cluster: Cluster, card: HostCard) -> None:
    both = [cluster.gpu_worker(card, ready=False) for _ in range(2)]
    until(lambda: any(it.child.poll() is not None for it in both), seconds=30)
    [ended] = [it for it in both if it.child.poll() is not None]
    assert ended.child.returncode == 2
    assert "is served by another worker" in ended.log.read_text()
    next(it for it in both if it is not ended).wait_for(" ready.")


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("KERNELWRIGHT_WORKER_TOKEN", "", "KERNELWRIGHT_WORKER_TOKEN is not"),
        (
            "KERNELWRIGHT_WORKER_TOKEN",
            "another token, just as long as the right one",
            "not this server's worker token",
        ),
        ("KERNELWRIGHT_SERVER_URL", "http://127.0.0.1:1", "the server http://127.0.0.1:1 cannot be reached"),
        ("KERNELWRIGHT_BROKER_URL", "", "set KERNELWRIGHT_BROKER_URL"),
    ],
    ids=["no token", "wrong token", "no server", "no broker"],
)
def test_what_keeps_a_worker_from_serving_is_said(
    cluster: Cluster, card: HostCard, setting: str, value: str, says: str
) -> None:
    worker = cluster.gpu_worker(card, ready=False, **{setting: value})
    assert worker.child.wait(30) == 2
    assert says in worker.log.read_text()
    assert rows(cluster, "SELECT 1 FROM cards_card WHERE uuid = %s", card.uuid) == []

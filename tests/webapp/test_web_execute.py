"""Working on a run: to its end, to its cancellation, through a broken engine, and when the process stops."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from agent.events import Event, Log, Reflected
from sandbox.cancellation import Cancellation
from tests.webapp import scripted
from tests.webapp.conftest import MakeRun
from webapp.common import jobs
from webapp.live.feed import CLOSE_SECONDS, feed
from webapp.live.worker import stopping, worker_is_alive, worker_name
from webapp.runs import services
from webapp.runs.models import AgentRun, RunEvent

in_threads = pytest.mark.django_db(transaction=True)


def execute_in_thread(run: AgentRun, engine: services.Translate = scripted.translate) -> threading.Thread:
    def work() -> None:
        services.agent_run_execute(run_id=run.pk, translate=engine)
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    wait_for(lambda: AgentRun.objects.filter(pk=run.pk, state="running", last_seq__gt=0).exists())
    return thread


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def test_chunks_of_a_log_are_stored_as_one(make_run: MakeRun) -> None:
    run = make_run(done=True)
    logs = [record.payload["text"] for record in RunEvent.objects.filter(run=run, type="log")]
    assert logs == ["compiling kernel.cu\ncaf\u00e9 \ufffd\n"] * 2


def test_a_burst_is_stored_complete_and_in_order(make_run: MakeRun) -> None:
    run = make_run("burst", done=True)
    texts = [record.payload["text"] for record in RunEvent.objects.filter(run=run, type="reflected")]
    assert texts == [str(number) for number in range(scripted.BURST)]
    assert run.last_seq == scripted.BURST + 3


@pytest.mark.parametrize("script", ["raise", "stop"])
def test_a_broken_engine_ends_the_run_as_our_fault(make_run: MakeRun, script: str) -> None:
    run = make_run(script, done=True)
    assert (run.state, run.reason) == ("failed", "internal_error")
    assert "own fault" in run.message
    assert RunEvent.objects.filter(run=run, type="run_ended").count() == 1


@in_threads
def test_cancel_reaches_the_engine_within_a_second(make_run: MakeRun) -> None:
    run = make_run("wait")
    thread = execute_in_thread(run)
    asked = time.monotonic()
    assert services.agent_run_cancel(user=run.owner, run=run).state == "cancelling"
    thread.join(10)
    assert time.monotonic() - asked < 1.0
    run.refresh_from_db()
    assert (run.state, run.reason) == ("cancelled", "cancelled")


@in_threads
def test_a_stopping_process_interrupts_its_runs(make_run: MakeRun) -> None:
    run = make_run("wait")
    thread = execute_in_thread(run)
    stopping.set()
    thread.join(10)
    run.refresh_from_db()
    assert (run.state, run.reason) == ("interrupted", "interrupted")
    assert "started again" in run.message


@in_threads
def test_the_engine_of_a_run_that_was_ended_from_outside_is_stopped_at_once(make_run: MakeRun) -> None:
    ended, waited = threading.Event(), []

    def engine(run: AgentRun, cancel: Cancellation) -> Iterator[Event]:
        yield Reflected(turn=1, text="before")
        ended.wait(10)
        yield Reflected(turn=1, text="after")
        began = time.monotonic()
        while not cancel.is_set:
            time.sleep(0.01)
        waited.append(time.monotonic() - began)

    run = make_run()
    thread = execute_in_thread(run, engine)
    services.agent_run_interrupt(run=run)
    ended.set()
    thread.join(10)
    assert len(waited) == 1
    assert waited[0] < CLOSE_SECONDS / 2
    assert not RunEvent.objects.filter(run=run, payload__text="after").exists()


@in_threads
def test_a_run_that_does_not_hear_is_interrupted_all_the_same(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "STOP_SECONDS", 0.3)
    run = make_run("deaf")
    thread = execute_in_thread(run)
    stopping.set()
    thread.join(5)
    assert not thread.is_alive()
    run.refresh_from_db()
    assert run.state == "interrupted"


def test_runs_of_a_dead_process_are_interrupted_and_others_left_alone(make_run: MakeRun) -> None:
    lost, cancelled, mine, queued = (make_run() for _ in range(4))
    for run in (lost, cancelled, mine):
        services.agent_run_claim(run_id=run.pk)
    AgentRun.objects.filter(pk=lost.pk).update(worker=worker_name().rpartition("/")[0] + "/1")
    elsewhere = {"worker": "elsewhere/1/1", "state": "cancelling"}
    AgentRun.objects.filter(pk=cancelled.pk).update(
        heartbeat_at=timezone.now() - timedelta(minutes=5), **elsewhere
    )
    assert services.agent_runs_reconcile() == 2
    states = dict(AgentRun.objects.values_list("pk", "state"))
    assert [states[run.pk] for run in (lost, cancelled, mine, queued)] == [
        "interrupted",
        "interrupted",
        "running",
        "queued",
    ]
    assert RunEvent.objects.get(run=lost).payload["reason"] == "interrupted"


def test_waiting_runs_are_sent_again(make_run: MakeRun, sent: list[object]) -> None:
    waiting = [make_run().pk for _ in range(2)]
    make_run(done=True)
    sent.clear()
    assert services.agent_runs_requeue() == 2
    assert sent == waiting


def test_a_stopping_process_takes_no_new_runs(make_run: MakeRun) -> None:
    stopping.set()
    assert make_run(done=True).state == "queued"


def test_who_is_alive() -> None:
    assert worker_is_alive(worker_name(), None)
    assert not worker_is_alive(worker_name() + "0", timezone.now())
    assert worker_is_alive("elsewhere/1/1", timezone.now())
    assert not worker_is_alive("elsewhere/1/1", None)


def test_a_feed_ticks_while_nothing_happens_and_keeps_the_order() -> None:
    def source() -> Iterator[Event]:
        yield Log(turn=1, stream="nvcc", text="a")
        yield Log(turn=1, stream="nvcc", text="b")
        yield Log(turn=1, stream="gcc", text="c")
        time.sleep(0.4)
        yield Log(turn=1, stream="gcc", text="d")
        yield Reflected(turn=1, text="e")

    batches = list(feed(source, tick=0.1))
    events = [event for batch in batches for event in batch]
    assert [event.text for event in events if isinstance(event, Log | Reflected)] == ["ab", "c", "d", "e"]
    assert batches.count([]) >= 2


def test_a_feed_raises_what_its_source_raises_after_what_came_before() -> None:
    def source() -> Iterator[Event]:
        yield Log(turn=1, stream="nvcc", text="a")
        raise RuntimeError("broken")

    batches = feed(source, tick=1)
    assert [event.type for event in next(batches)] == ["log"]
    with pytest.raises(RuntimeError, match="broken"):
        next(batches)

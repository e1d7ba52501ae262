"""The websockets: replay from a number, then live, to the run's owner alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from channels.db import database_sync_to_async
from django.contrib.sessions.models import Session
from django.test import Client

from tests.webapp import scripted
from tests.webapp.conftest import MakeRun
from tests.webapp.sockets import socket
from webapp.live.envelope import EventFrame
from webapp.runs import consumers, services

pytestmark = pytest.mark.django_db(transaction=True)


def in_background(work: Callable[[], Any]) -> asyncio.Task[Any]:
    """In a thread of its own, as in a worker."""
    return asyncio.create_task(database_sync_to_async(work, thread_sensitive=False)())


@pytest.mark.parametrize("after_seq", [0, 5])
async def test_replay_starts_after_the_number_given(
    browser: Client, make_run: MakeRun, after_seq: int
) -> None:
    run = await database_sync_to_async(make_run)(done=True)
    async with socket(f"/ws/runs/{run.pk}", browser) as it:
        assert await it.connect()
        await it.say({"type": "hello", "after_seq": after_seq})
        *events, live = await it.hear_until_live()
        assert [frame["seq"] for frame in events] == list(range(after_seq + 1, run.last_seq + 1))
        assert live == {"type": "live", "seq": run.last_seq}
        assert await it.is_silent()
        await it.say({"type": "hello", "after_seq": run.last_seq})
        assert await it.hear_until_live() == [live]


async def test_a_burst_during_the_connection_arrives_complete_and_in_order(
    browser: Client, make_run: MakeRun
) -> None:
    run = await database_sync_to_async(make_run)("burst")
    async with socket(f"/ws/runs/{run.pk}", browser) as it:
        await it.connect()
        await it.say({"type": "hello", "after_seq": 0})
        assert await it.hear_until_live() == [{"type": "live", "seq": 0}]
        work = in_background(lambda: services.agent_run_execute(run_id=run.pk, translate=scripted.translate))
        events: list[dict[str, Any]] = []
        while not events or events[-1]["event"]["type"] != "run_ended":
            events += (await it.hear_until_live())[:-1]
        await work
    assert [frame["seq"] for frame in events] == list(range(1, scripted.BURST + 4))
    texts = [frame["event"]["text"] for frame in events if frame["event"]["type"] == "reflected"]
    assert texts == [str(number) for number in range(scripted.BURST)]


async def test_hints_that_get_lost_are_made_up_for(
    browser: Client, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.live.publish._send", lambda *_: None)
    run = await database_sync_to_async(make_run)()
    async with socket(f"/ws/runs/{run.pk}", browser) as it:
        await it.connect()
        await it.say({"type": "hello", "after_seq": 0})
        await it.hear_until_live()
        await in_background(lambda: services.agent_run_cancel(user=run.owner, run=run))
        frames = await it.hear_until_live()
        assert [frame["type"] for frame in frames] == ["event", "live"]


async def test_text_is_passed_on_as_it_is_written(browser: Client, make_run: MakeRun) -> None:
    run = await database_sync_to_async(make_run)()
    async with socket(f"/ws/runs/{run.pk}", browser) as it:
        await it.connect()
        await it.say({"type": "hello", "after_seq": 0})
        await it.hear_until_live()
        delta = scripted.TextDelta(turn=1, text="thinking")
        await in_background(lambda: services.run_events_send(run=run, events=[delta]))
        assert await it.hear() == {"type": "delta", "event": delta.model_dump()}


async def test_a_number_from_the_future_is_reset(browser: Client, make_run: MakeRun) -> None:
    run = await database_sync_to_async(make_run)(done=True)
    async with socket(f"/ws/runs/{run.pk}", browser) as it:
        await it.connect()
        await it.say({"type": "hello", "after_seq": run.last_seq + 1})
        assert await it.hear() == {"type": "reset"}
        await it.say({"type": "hello", "after_seq": 0})
        assert len(await it.hear_until_live()) == run.last_seq + 1


async def test_pings_are_answered_and_what_is_not_understood_ends_it(
    browser: Client, make_run: MakeRun
) -> None:
    run = await database_sync_to_async(make_run)()
    for bad in ("{", '{"type": "event"}', '{"type": "hello", "after_seq": -1}', "x" * 10_000):
        async with socket(f"/ws/runs/{run.pk}", browser) as it:
            await it.connect()
            await it.say({"type": "ping"})
            assert await it.hear() == {"type": "pong"}
            await it.say(bad)
            assert await it.closed_with() == consumers.NOT_UNDERSTOOD


async def test_who_says_no_hello_is_let_go(
    browser: Client, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "HELLO_SECONDS", 0.1)
    monkeypatch.setattr(consumers, "POLL_SECONDS", 0.1)
    run = await database_sync_to_async(make_run)()
    async with socket(f"/ws/runs/{run.pk}", browser) as it:
        await it.connect()
        assert await it.closed_with() == consumers.NOT_UNDERSTOOD


async def test_another_users_run_and_none_at_all_are_the_same(
    others_browser: Client, make_run: MakeRun
) -> None:
    run = await database_sync_to_async(make_run)(done=True)
    for run_id in (run.pk, uuid4()):
        async with socket(f"/ws/runs/{run_id}", others_browser) as it:
            await it.connect()
            assert await it.closed_with() == consumers.NOT_FOUND


@pytest.mark.parametrize("address", ["/ws/runs", "/ws/runs/00000000-0000-4000-8000-000000000000"])
async def test_without_a_session_nobody_listens(db: None, address: str) -> None:
    async with socket(address, None) as it:
        await it.connect()
        assert await it.closed_with() == consumers.NOT_SIGNED_IN


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:9999", "null", "", "ftp://127.0.0.1:8000"]
)
async def test_a_foreign_page_is_refused(browser: Client, origin: str) -> None:
    async with socket("/ws/runs", browser, origin=origin) as it:
        assert not await it.connect()


async def test_a_host_that_is_not_ours_is_refused(browser: Client) -> None:
    async with socket("/ws/runs", browser, origin="http://evil.example", host="evil.example") as it:
        assert not await it.connect()


async def test_signing_out_ends_the_connection(
    browser: Client, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "ACCESS_SECONDS", 0.1)
    monkeypatch.setattr(consumers, "POLL_SECONDS", 0.1)
    run = await database_sync_to_async(make_run)()
    async with socket(f"/ws/runs/{run.pk}", browser) as it:
        await it.connect()
        await it.say({"type": "hello", "after_seq": 0})
        await database_sync_to_async(Session.objects.all().delete)()
        assert await it.closed_with() == consumers.NOT_SIGNED_IN


async def test_a_deleted_run_ends_the_connection(browser: Client, make_run: MakeRun) -> None:
    run = await database_sync_to_async(make_run)(done=True)
    async with socket(f"/ws/runs/{run.pk}", browser) as it:
        await it.connect()
        await it.say({"type": "hello", "after_seq": 0})
        await it.hear_until_live()
        await in_background(lambda: services.agent_run_delete(user=run.owner, run=run))
        assert await it.closed_with() == consumers.NOT_FOUND


async def test_the_list_hears_of_the_users_own_runs_only(
    browser: Client, others_browser: Client, make_run: MakeRun
) -> None:
    async with socket("/ws/runs", browser) as mine, socket("/ws/runs", others_browser) as others:
        await mine.connect()
        await others.connect()
        run = await in_background(make_run)
        first = await mine.hear()
        assert (first["type"], first["run"]["id"], first["run"]["state"]) == ("run", str(run.pk), "queued")
        await in_background(lambda: services.agent_run_execute(run_id=run.pk, translate=scripted.translate))
        while (frame := await mine.hear())["run"]["state"] != "finished":
            pass
        assert (frame["run"]["score"], frame["run"]["title"]) == (71.5, "saxpy")
        assert await others.is_silent()


async def test_event_frames_are_what_the_types_say(browser: Client, make_run: MakeRun) -> None:
    run = await database_sync_to_async(make_run)(done=True)
    async with socket(f"/ws/runs/{run.pk}", browser) as it:
        await it.connect()
        await it.say({"type": "hello", "after_seq": 0})
        for frame in (await it.hear_until_live())[:-1]:
            EventFrame.model_validate(frame)

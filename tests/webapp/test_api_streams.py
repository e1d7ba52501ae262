"""A run's events as server-sent events, from the real server: all, live, resumed; limits and wrong pages."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.test import Client

from tests.webapp.conftest import MakeRun
from tests.webapp.stack import Browser, Stack

RUNS = "/api/v1/runs"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("streams"), {})
    stack.browser = stack.start()
    yield stack
    stack.end()


def http(browser: Browser) -> httpx2.Client:
    cookies = {it.name: it.value or "" for it in browser.cookies}
    return httpx2.Client(base_url=f"{browser.address}/api/v1/", cookies=cookies, timeout=20)


def messages(response: httpx2.Response) -> Iterator[tuple[str | None, str, Any]]:
    """Id, kind and data of each message."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield fields.get("id"), fields["event"], json.loads(fields["data"])
            fields = {}
        else:
            fields = {}


def listen(browser: Browser, run_id: str, **headers: str) -> list[tuple[str | None, str, Any]]:
    with (
        http(browser) as client,
        client.stream(
            "GET", f"runs/{run_id}/events", headers={"Accept": "text/event-stream", **headers}
        ) as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        return list(messages(response))


def test_the_stream_has_the_frames_of_the_websocket_and_ends_with_the_run(stack: Stack) -> None:
    browser = stack.browser
    run_id = browser.script("turns")
    heard = [data for _, kind, data in listen(browser, run_id) if kind == "event"]
    assert heard == browser.events(run_id)
    assert heard[-1]["event"]["type"] == "run_ended"
    assert [it["seq"] for it in heard] == list(range(1, len(heard) + 1))


def test_who_was_cut_off_gets_the_rest(stack: Stack) -> None:
    run_id = stack.browser.script("burst")
    whole = [it for it in listen(stack.browser, run_id) if it[1] == "event"]
    rest = [it for it in listen(stack.browser, run_id, **{"Last-Event-ID": "400"}) if it[1] == "event"]
    assert rest == whole[400:]
    assert rest[0][0] == "401"
    ahead = listen(stack.browser, run_id, **{"Last-Event-ID": "99999"})
    assert ahead[0][1] == "reset"
    assert len([it for it in ahead if it[1] == "event"]) == len(whole)


def test_events_come_while_the_run_is_at_work_and_a_stop_is_heard(stack: Stack) -> None:
    browser = stack.browser
    run_id = browser.script("wait")
    kinds: list[str] = []
    is_live = threading.Event()

    def follow() -> None:
        with (
            http(browser) as client,
            client.stream(
                "GET", f"runs/{run_id}/events", headers={"Accept": "text/event-stream"}
            ) as response,
        ):
            for _, kind, data in messages(response):
                kinds.append(data["event"]["type"] if kind == "event" else kind)
                if kind == "live":
                    is_live.set()

    thread = threading.Thread(target=follow)
    thread.start()
    assert is_live.wait(10)
    browser.post(f"runs/{run_id}/cancel")
    thread.join(10)
    assert not thread.is_alive()
    assert kinds[-1] == "run_ended"


def test_problems_are_json_also_for_who_wants_a_stream(browser: Client, make_run: MakeRun) -> None:
    run = make_run()
    wants = {"Accept": "text/event-stream"}
    for address, headers, status in (
        (f"{RUNS}/00000000-0000-0000-0000-000000000000/events", wants, 404),
        (f"{RUNS}/{run.pk}/events", wants | {"Last-Event-ID": "x"}, 400),
        (f"{RUNS}/{run.pk}/events", {"Accept": "image/png"}, 406),
    ):
        response = browser.get(address, headers=headers)
        assert (response.status_code, response["Content-Type"]) == (status, "application/problem+json")
        assert response.json()["status"] == status


def test_every_response_says_what_is_left_and_the_version(
    browser: Client, settings: Any, tmp_path: Path
) -> None:
    settings.API_READS_PER_MINUTE = 2
    first = browser.get(RUNS)
    assert first["API-Version"] == "1"
    assert first["RateLimit-Policy"] == '"read";q=2;w=60'
    assert first["RateLimit"].startswith('"read";r=1;t=')
    browser.get(RUNS)
    third = browser.get(RUNS)
    assert (third.status_code, third.json()["type"]) == (429, "/problems/throttled")
    assert 1 <= int(third["Retry-After"]) <= 61
    assert third["RateLimit"].startswith('"read";r=0;t=')
    assert browser.post(RUNS, "{}", content_type="application/json")["RateLimit"].startswith('"write";r=239')


@pytest.mark.parametrize("query", ["limit=0", "limit=-1", "limit=x", "cursor=x", "cursor=AAAA"])
def test_a_wrong_page_is_said(browser: Client, query: str) -> None:
    for address in (RUNS, "/api/v1/evaluations"):
        response = browser.get(f"{address}?{query}")
        assert (response.status_code, response.json()["type"]) == (400, "/problems/invalid")
        assert query.partition("=")[0] in response.json()["detail"]

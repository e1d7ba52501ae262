"""REST: what it takes, what it answers, and that nobody sees another's runs."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.test import Client

from tests.webapp.conftest import MakeRun
from webapp.accounts.models import User
from webapp.live.resources import EventPage, RunDetail, RunPage
from webapp.runs import services, urls
from webapp.runs.models import AgentRun, RunEvent

RUNS = "/api/v1/runs"
SOURCE = "// script: turns\nvoid f(int n);\n"


def post(client: Client, body: Any, address: str = RUNS, **headers: str) -> Any:
    return client.post(address, json.dumps(body), content_type="application/json", headers=headers)


def test_a_run_is_accepted_stored_and_queued(browser: Client, sent: list[UUID], user: User) -> None:
    body = {"source": SOURCE, "filename": "f.c", "turns": 3, "inputs": {"sizes": {"n": 100}}}
    response = post(browser, body)
    assert response.status_code == 202
    run = RunDetail.model_validate_json(response.content)
    assert response["Location"] == f"{RUNS}/{run.id}"
    assert (run.state, run.queue_position, run.turn_limit, run.target) == (
        "queued",
        1,
        3,
        settings.RUN_TARGET,
    )
    assert run.inputs is not None
    assert run.inputs.sizes == {"n": 100}
    stored = AgentRun.objects.get(pk=run.id)
    assert (stored.owner, stored.source, stored.language) == (user, SOURCE, "c")


def test_the_queue_is_told_after_the_transaction(
    browser: Client, sent: list[UUID], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        run_id = post(browser, {"source": SOURCE}).json()["id"]
    assert sent == [UUID(run_id)]


def test_the_language_is_read_from_the_source_where_nothing_says_it(browser: Client) -> None:
    run = post(browser, {"source": "import torch\n\nclass Model(torch.nn.Module): ..."}).json()
    assert (run["language"], run["filename"]) == ("pytorch", "task.py")


@pytest.mark.parametrize(
    ("body", "status", "slug", "words"),
    [
        ({}, 400, "invalid", "source"),
        ({"source": "   "}, 400, "invalid", "empty"),
        ({"source": "x" * 1_000_001}, 413, "too-large", "1000001 bytes"),
        ({"source": "a\x00b"}, 400, "not-text", "NUL"),
        ({"source": "a\ud800b"}, 400, "not-text", "surrogate"),
        ({"source": SOURCE, "start_from": "y" * 1_000_001}, 413, "too-large", "start_from"),
        ({"source": SOURCE, "filename": "../etc/f.c"}, 400, "invalid", "filename"),
        ({"source": SOURCE, "filename": "f.txt"}, 400, "invalid", ".c or .py"),
        ({"source": SOURCE, "filename": "f.py", "language": "c"}, 400, "invalid", "language"),
        ({"source": SOURCE, "target": "sm_1"}, 400, "invalid", "sm_90"),
        ({"source": SOURCE, "policy": "magic"}, 400, "invalid", "builtin"),
        ({"source": SOURCE, "backend": "abacus"}, 400, "invalid", "backend"),
        ({"source": SOURCE, "turns": 0}, 400, "invalid", "1 to 50"),
        ({"source": SOURCE, "turns": 51}, 400, "invalid", "1 to 50"),
        ({"source": SOURCE, "turns": "many"}, 400, "invalid", "turns"),
        ({"source": SOURCE, "surprise": 1}, 400, "invalid", "surprise"),
        ({"source": SOURCE, "inputs": {"sizes": {"n": "x"}}}, 400, "invalid", "inputs.sizes.n"),
        ([], 400, "invalid", "object"),
    ],
)
def test_what_cannot_be_taken_is_said(browser: Client, body: Any, status: int, slug: str, words: str) -> None:
    response = post(browser, body, **{"X-Request-ID": "abc"})
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    problem = response.json()
    assert problem["type"] == f"/problems/{slug}"
    assert words in problem["detail"]
    assert problem["request_id"] == response["X-Request-ID"] == "abc"
    assert not AgentRun.objects.exists()


@pytest.mark.parametrize(
    ("body", "status", "slug"),
    [
        (b"{", 400, "not-json"),
        (b"\xff\xfe{}", 400, "not-text"),
        (b"[" * 100_000, 400, "not-json"),
        (b'"' + b"x" * settings.API_BODY_BYTES_MAX + b'"', 413, "too-large"),
    ],
)
def test_what_is_not_json_is_said(browser: Client, body: bytes, status: int, slug: str) -> None:
    response = browser.post(RUNS, body, content_type="application/json")
    assert (response.status_code, response.json()["type"]) == (status, f"/problems/{slug}")


def test_other_media_types_are_refused(browser: Client) -> None:
    response = browser.post(RUNS, {"source": SOURCE})
    assert (response.status_code, response.json()["type"]) == (415, "/problems/unsupported-media-type")


def test_the_same_key_gives_the_same_run_and_never_another(browser: Client, others_browser: Client) -> None:
    first = post(browser, {"source": SOURCE}, **{"Idempotency-Key": "k"})
    again = post(browser, {"source": SOURCE}, **{"Idempotency-Key": "k"})
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert first["Location"] == again["Location"]
    assert again["Idempotency-Replayed"] == "true"
    different = post(browser, {"source": SOURCE + " "}, **{"Idempotency-Key": "k"})
    assert (different.status_code, different.json()["type"]) == (409, "/problems/idempotency-key-reused")
    others = post(others_browser, {"source": SOURCE}, **{"Idempotency-Key": "k"})
    assert others.json()["id"] != first.json()["id"]
    assert AgentRun.objects.count() == 2


def test_a_page_without_the_csrf_token_can_change_nothing(user: User, make_run: MakeRun) -> None:
    run = make_run(done=True)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    for response in (
        post(client, {"source": SOURCE}),
        post(client, {}, f"{RUNS}/{run.pk}/cancel"),
        post(client, {}, f"{RUNS}/{run.pk}/rerun"),
        client.delete(f"{RUNS}/{run.pk}"),
        client.post("/sign-out"),
    ):
        assert response.status_code == 403
    token = client.get("/api/v1/session").json()["csrf_token"]
    assert post(client, {"source": SOURCE}, **{"X-CSRFToken": token}).status_code == 202


def test_a_run_shows_its_task_and_its_turns(browser: Client, make_run: MakeRun) -> None:
    run = make_run(done=True)
    shown = RunDetail.model_validate_json(browser.get(f"{RUNS}/{run.pk}").content)
    assert (shown.state, shown.reason, shown.title) == ("finished", "finished", "saxpy")
    assert (shown.best_turn, shown.verdict, shown.score, shown.turn_count) == (2, "passed", 71.5, 2)
    assert shown.task is not None
    assert shown.task.sizes == {"n": 1000}
    assert [(t.turn, t.title, t.base_turn, t.verdict, t.score, t.seconds) for t in shown.turns] == [
        (1, "Direct version", None, "wrong_result", None, 0.25),
        (2, "Guard the last block", 1, "passed", 71.5, 0.25),
    ]
    assert shown.turns[0].reflection == "turn 1 was wrong_result"


def test_events_come_in_pages_from_any_number(browser: Client, make_run: MakeRun) -> None:
    run = make_run(done=True)
    address = f"{RUNS}/{run.pk}/events"
    whole = EventPage.model_validate_json(browser.get(address).content)
    assert [it.seq for it in whole.results] == list(range(1, run.last_seq + 1))
    assert (whole.last_seq, whole.ended) == (run.last_seq, True)
    assert [it.event.type for it in whole.results].count("run_ended") == 1
    assert "text_delta" not in {it.event.type for it in whole.results}
    part = EventPage.model_validate_json(browser.get(f"{address}?after_seq=3&limit=2").content)
    assert [it.seq for it in part.results] == [4, 5]
    assert browser.get(f"{address}?after_seq=x").status_code == 400
    assert browser.get(f"{address}?after_seq=999").json()["results"] == []


def test_runs_are_listed_newest_first_in_pages(browser: Client, make_run: MakeRun) -> None:
    made = [make_run().pk for _ in range(5)]
    page = RunPage.model_validate_json(browser.get(f"{RUNS}?limit=2").content)
    assert [it.queue_position for it in page.results] == [5, 4]
    seen = [it.id for it in page.results]
    while page.next:
        page = RunPage.model_validate_json(browser.get(page.next).content)
        seen += [it.id for it in page.results]
    assert seen == made[::-1]


def test_cancel_ends_a_queued_run_at_once_and_an_ended_one_stays(browser: Client, make_run: MakeRun) -> None:
    run = make_run()
    for _ in range(2):
        response = post(browser, {}, f"{RUNS}/{run.pk}/cancel")
        assert (response.status_code, response.json()["state"]) == (200, "cancelled")
    assert [event.type for event in RunEvent.objects.filter(run=run)] == ["run_ended"]
    done = make_run(done=True)
    assert post(browser, {}, f"{RUNS}/{done.pk}/cancel").json()["state"] == "finished"


def test_a_running_run_is_asked_to_stop(browser: Client, make_run: MakeRun) -> None:
    run = make_run()
    services.agent_run_claim(run_id=run.pk)
    for _ in range(2):
        response = post(browser, {}, f"{RUNS}/{run.pk}/cancel")
        assert (response.status_code, response.json()["state"]) == (200, "cancelling")


def test_rerun_makes_a_new_run_of_the_same_request(browser: Client, make_run: MakeRun) -> None:
    run = make_run(done=True)
    response = post(browser, {}, f"{RUNS}/{run.pk}/rerun")
    again = response.json()
    assert response.status_code == 202
    assert again["id"] != str(run.pk)
    assert (again["rerun_of"], again["source"], again["state"]) == (str(run.pk), run.source, "queued")


def test_only_an_ended_run_can_be_deleted(browser: Client, make_run: MakeRun) -> None:
    run, done = make_run(), make_run(done=True)
    response = browser.delete(f"{RUNS}/{run.pk}")
    assert (response.status_code, response.json()["type"]) == (409, "/problems/run-not-ended")
    assert browser.delete(f"{RUNS}/{done.pk}").status_code == 204
    assert browser.get(f"{RUNS}/{done.pk}").status_code == 404
    assert not RunEvent.objects.filter(run=done.pk).exists()


def test_the_candidate_is_a_file_and_never_a_page(browser: Client, make_run: MakeRun) -> None:
    run = make_run(done=True)
    best = browser.get(f"{RUNS}/{run.pk}/candidate")
    assert best.content.decode() == "// turn 2\n"
    assert best["Content-Type"] == "text/x-cuda; charset=utf-8"
    assert best["Content-Disposition"] == 'attachment; filename="saxpy-turn2.cu"'
    assert best["X-Content-Type-Options"] == "nosniff"
    assert browser.get(f"{RUNS}/{run.pk}/candidate?turn=1").content.decode() == "// turn 1\n"
    assert browser.get(f"{RUNS}/{run.pk}/candidate?turn=9").status_code == 404
    assert browser.get(f"{RUNS}/{make_run().pk}/candidate").json()["type"] == "/problems/no-candidate"


def test_too_many_unfinished_runs_are_refused(browser: Client, make_run: MakeRun) -> None:
    for _ in range(20):
        make_run()
    response = post(browser, {"source": SOURCE})
    assert (response.status_code, response["Retry-After"]) == (429, "10")


_ROUTES = [
    ("get", ""),
    ("delete", ""),
    ("get", "/events"),
    ("post", "/cancel"),
    ("post", "/rerun"),
    ("post", "/resume"),
    ("get", "/candidate"),
]


def test_every_route_of_a_run_is_tried_below() -> None:
    with_id = [str(route.pattern) for route in urls.api_urlpatterns if "run_id" in str(route.pattern)]
    assert {route.partition("<uuid:run_id>")[2] for route in with_id} == {suffix for _, suffix in _ROUTES}


@pytest.mark.parametrize(("method", "suffix"), _ROUTES)
def test_another_users_run_is_not_there(
    browser: Client, others_browser: Client, make_run: MakeRun, method: str, suffix: str
) -> None:
    run = make_run(done=True)
    theirs = getattr(others_browser, method)(f"{RUNS}/{run.pk}{suffix}")
    nobodys = getattr(others_browser, method)(f"{RUNS}/{uuid4()}{suffix}")
    assert theirs.status_code == nobodys.status_code == 404
    assert theirs.json()["detail"] == nobodys.json()["detail"]
    assert AgentRun.objects.count() == 1
    assert others_browser.get(RUNS).json()["results"] == []
    assert others_browser.get(f"/runs/{run.pk}").status_code == 404


@pytest.mark.parametrize(
    "address", ["", "/00000000-0000-0000-0000-000000000000", "/00000000-0000-0000-0000-000000000000/events"]
)
def test_without_a_session_there_is_nothing(db: None, client: Client, address: str) -> None:
    response = client.get(RUNS + address)
    assert (response.status_code, response.json()["type"]) == (401, "/problems/not-signed-in")
    assert response["WWW-Authenticate"] == 'Bearer realm="kernelwright"'


def test_an_unknown_address_of_the_api_is_a_problem_too(browser: Client) -> None:
    response = browser.get("/api/v1/nothing")
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")
    assert browser.get(f"{RUNS}/not-a-uuid").json()["type"] == "/problems/not-found"
    assert browser.put(RUNS).json()["type"] == "/problems/method-not-allowed"


def test_our_own_fault_is_said_without_details(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("webapp.runs.selectors.runs_visible_to", broken)
    response = browser.get(RUNS)
    assert response.status_code == 500
    assert "secret" not in response.content.decode()

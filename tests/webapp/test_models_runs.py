"""Runs of a language model through the web: asked for, paid for, broken off by a dead endpoint, resumed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agent.events import Spent
from tests.webapp.endpoint import Endpoint, kernel, set_up
from tests.webapp.stack import Stack
from webapp.accounts.models import User
from webapp.gallery.selectors import EXAMPLES
from webapp.language_models.models import LanguageModel
from webapp.language_models.services import language_model_save
from webapp.runs import services
from webapp.runs.models import AgentRun, ModelUse

SAXPY = (EXAMPLES / "c" / "saxpy.c").read_text()
RUNS = "/api/v1/runs"


def post(client: Client, body: Any) -> Any:
    return client.post(RUNS, json.dumps(body), content_type="application/json")


def model(name: str = "coder", **values: Any) -> LanguageModel:
    made = LanguageModel()
    where = {"name": name, "model": "m", "base_url": "https://models.example/v1"}
    language_model_save(model=made, values={**where, **values})
    return made


def test_a_run_is_stored_with_its_model_and_limits(browser: Client) -> None:
    model(price_prompt=1.0, price_completion=2.0, is_default=True)
    limits = {"turns": 40, "tokens": 1000, "seconds": 90.0, "cost": 0.5}
    detail = post(browser, {"source": SAXPY, "policy": "llm", "protocol": "tools", **limits}).json()
    assert (detail["model"], detail["protocol"], detail["turn_limit"]) == ("coder", "tools", 40)
    assert (detail["token_limit"], detail["seconds_limit"], detail["cost_limit"]) == (1000, 90.0, 0.5)
    assert detail["usage"]["requests"] == 0
    again = browser.post(f"{RUNS}/{detail['id']}/rerun").json()
    assert {name: again[name] for name in ("model", "protocol", "token_limit", "cost_limit")} == {
        name: detail[name] for name in ("model", "protocol", "token_limit", "cost_limit")
    }


def test_a_model_takes_twelve_turns_and_its_own_protocol(browser: Client) -> None:
    model(protocol="tools")
    detail = post(browser, {"source": SAXPY, "policy": "llm", "model": "coder"}).json()
    assert (detail["turn_limit"], detail["protocol"]) == (12, "tools")
    builtin = post(browser, {"source": SAXPY}).json()
    assert (builtin["turn_limit"], builtin["model"], builtin["usage"]) == (8, "", None)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"policy": "llm", "model": "nobody"}, "no language model 'nobody'"),
        ({"policy": "llm", "model": "off"}, "no language model 'off'"),
        ({"policy": "llm", "model": "coder:adapter"}, "does not serve"),
        ({"policy": "llm", "model": "coder", "cost": 1}, "price"),
        ({"policy": "llm", "model": "coder", "tokens": 0}, "tokens"),
        ({"policy": "llm", "model": "coder", "turns": 201}, "200"),
        ({"model": "coder"}, '"policy": "llm"'),
        ({"tokens": 100}, '"policy": "llm"'),
    ],
)
def test_what_cannot_be_asked_for_says_why(browser: Client, fields: dict[str, Any], words: str) -> None:
    model()
    model("off", enabled=False)
    response = post(browser, {"source": SAXPY, **fields})
    assert response.status_code == 400
    assert words in response.json()["detail"]


def test_without_a_model_it_is_said_who_sets_one_up(browser: Client) -> None:
    assert "administrator" in post(browser, {"source": SAXPY, "policy": "llm"}).json()["detail"]


def test_only_what_was_broken_off_goes_on(browser: Client, user: User) -> None:
    model()
    run_id = post(browser, {"source": SAXPY, "policy": "llm"}).json()["id"]
    assert browser.post(f"{RUNS}/{run_id}/resume").status_code == 409
    browser.post(f"{RUNS}/{run_id}/cancel")
    resumed = browser.post(f"{RUNS}/{run_id}/resume")
    assert resumed.status_code == 202
    assert resumed.json()["resumes"] == run_id
    builtin = post(browser, {"source": SAXPY}).json()["id"]
    browser.post(f"{RUNS}/{builtin}/cancel")
    assert browser.post(f"{RUNS}/{builtin}/resume").status_code == 409
    assert AgentRun.objects.filter(owner=user, resumes=run_id).count() == 1


def test_what_was_spent_outlives_its_run(browser: Client, user: User) -> None:
    model()
    run = AgentRun.objects.get(pk=post(browser, {"source": SAXPY, "policy": "llm"}).json()["id"])
    spent = Spent(turn=1, prompt_tokens=70, completion_tokens=7, cost=0.25)
    services.run_events_append(run=run, events=[spent, spent])
    used = browser.get(f"{RUNS}/{run.pk}").json()["usage"]
    assert (used["requests"], used["prompt_tokens"], used["cost"]) == (2, 140, 0.5)
    browser.post(f"{RUNS}/{run.pk}/cancel")
    assert browser.delete(f"{RUNS}/{run.pk}").status_code == 204
    kept = ModelUse.objects.get()
    assert (kept.run_id, kept.user, kept.prompt_tokens, kept.completion_tokens) == (None, user, 140, 14)


# --- With the real server, the real judge, and an endpoint that is really killed ---------------------------


@pytest.fixture(scope="module")
def stack(jail: None, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("models")
    (home / "cache").mkdir(exist_ok=True)
    (folder / "cache").symlink_to(home / "cache")
    it = Stack(folder, {}, module="webapp.cli.serve")
    it.browser = it.start()
    yield it
    it.end()


@pytest.fixture
def endpoint(stack: Stack, tmp_path: Path) -> Iterator[Endpoint]:
    it = Endpoint(tmp_path, stack.environment)
    yield it
    if it.process is not None:
        it.kill()


def test_a_killed_endpoint_loses_nothing_and_the_run_goes_on(stack: Stack, endpoint: Endpoint) -> None:
    browser = stack.browser
    slow = {"says": kernel(256), "pause": 0.05, "size": 4, "stalls": True}
    set_up(browser, endpoint.start([{"says": kernel(128)}, slow]), "mortal")
    asked = {"source": SAXPY, "filename": "saxpy.c", "policy": "llm", "model": "mortal", "turns": 2}
    run_id = browser.translate(**asked)
    with browser.listen(run_id, 0) as live:  # until the second turn's text comes
        deadline = time.monotonic() + 60
        while True:
            frame = json.loads(live.recv(timeout=60))
            if frame["type"] == "delta" and frame["event"]["turn"] == 2:
                break
            assert time.monotonic() < deadline
    while_it_runs = browser.get(f"runs/{run_id}")["usage"]
    assert (while_it_runs["requests"], while_it_runs["prompt_tokens"]) == (1, 1000)
    endpoint.kill()
    ended = browser.wait_until(run_id, lambda run: run["ended_at"] is not None, 60)
    assert (ended["reason"], ended["state"], ended["resumable"]) == ("model_unavailable", "failed", True)
    assert "after 3 attempts" in ended["message"]
    assert (ended["best_turn"], ended["verdict"]) == (1, "passed")
    # The text that was lost in the middle was paid for, too.
    assert ended["usage"]["requests"] == 2
    assert ended["usage"]["prompt_tokens"] > 1000
    assert ended["usage"]["cost"] > while_it_runs["cost"] > 0
    assert ended["usage"]["first_token_seconds"] > 0
    events = [frame["event"] for frame in browser.events(run_id)]
    waits = [event for event in events if event["type"] == "stage" and event["stage"] == "model_wait"]
    assert [(wait["done"], wait["of"]) for wait in waits] == [(2, 3), (3, 3)]

    endpoint.start([{"says": kernel(512)}])
    resumed = browser.post(f"runs/{run_id}/resume")
    went_on = browser.wait_until(resumed["id"], lambda run: run["ended_at"] is not None, 60)
    assert (went_on["reason"], went_on["resumes"]) == ("turn_limit", run_id)
    assert [turn["verdict"] for turn in went_on["turns"]] == ["passed", "passed"]
    sources = [
        frame["event"]["source"]
        for frame in browser.events(resumed["id"])
        if frame["event"]["type"] == "action"
    ]
    assert ["128" in source for source in sources] == [True, False]
    assert "512" in sources[1]
    # What was told again is not paid for again.
    assert went_on["usage"]["requests"] == 1
    assert went_on["usage"]["prompt_tokens"] == 1000

"""`POST evaluations`: a given candidate is judged, alone or in a batch, by the same queue as runs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, JailUnavailable, TaskProblem
from sandbox.progress import StageAt
from sandbox.types import Problem
from tests.webapp.scripted import evaluation as judged
from webapp.accounts.models import User
from webapp.evaluations import queue, serializers, services, tasks, urls
from webapp.evaluations.models import EvaluationRecord
from webapp.live.resources import EvaluationBatch, EvaluationDetail, EvaluationPage
from webapp.live.worker import stopping

ROOT = Path(__file__).resolve().parents[2]
HERE = "/api/v1/evaluations"
BODY = {"source": "void f(int n, float *x) {}\n", "candidate": "// kernel\n", "filename": "f.c"}
SAXPY = {
    "source": (ROOT / "examples/c/saxpy.c").read_text(),
    "filename": "saxpy.c",
    "candidate": (ROOT / "tests/fixtures/kernels/right/saxpy_plain.cu").read_text(),
    "backend": "emulator",
}


@pytest.fixture(autouse=True)
def queued(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """The ids of the evaluations that were sent to the task queue."""
    ids: list[UUID] = []
    monkeypatch.setattr(queue, "evaluation_enqueue", ids.append)
    return ids


def post(client: Client, body: Any, address: str = HERE, **headers: str) -> Any:
    return client.post(address, json.dumps(body), content_type="application/json", headers=headers)


def made(user: User, **fields: Any) -> EvaluationRecord:
    request = serializers.evaluation_request(BODY | fields)
    return services.evaluation_create(user=user, request=request)[0]


def passes(record: EvaluationRecord, cancel: Cancellation) -> Iterator[services.Said]:
    yield StageAt("compile", "nvcc")
    yield judged("passed", 71.5)


def test_a_candidate_is_accepted_queued_and_found_at_its_location(
    browser: Client, queued: list[UUID], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        response = post(browser, BODY)
    assert response.status_code == 202
    detail = EvaluationDetail.model_validate_json(response.content)
    assert queued == [detail.id]
    assert (detail.state, detail.queue_position, detail.evaluation) == ("queued", 1, None)
    assert response["Location"] == f"{HERE}/{detail.id}"
    assert browser.get(response["Location"]).json()["candidate"] == BODY["candidate"]


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize(
    ("kernel", "verdict"),
    [("right/saxpy_plain", "passed"), ("wrong/saxpy_last_element_missing", "wrong_result")],
)
@pytest.mark.django_db(transaction=True)
def test_the_judge_judges(browser: Client, kernel: str, verdict: str) -> None:
    candidate = (ROOT / f"tests/fixtures/kernels/{kernel}.cu").read_text()
    address = post(browser, SAXPY | {"candidate": candidate})["Location"]
    tasks.evaluation_judge(address.rpartition("/")[2])
    detail = EvaluationDetail.model_validate_json(browser.get(address).content)
    assert (detail.state, detail.verdict, detail.title) == ("finished", verdict, "saxpy")
    assert detail.evaluation is not None
    assert detail.evaluation.verdict == verdict
    assert detail.evaluation.verification is not None
    assert detail.evaluation.reward is not None
    assert (detail.score is not None) == (verdict == "passed")


def test_the_same_key_gives_the_same_evaluation_and_never_another(browser: Client) -> None:
    first, again = (post(browser, BODY, **{"Idempotency-Key": "k"}) for _ in range(2))
    assert first.json()["id"] == again.json()["id"]
    assert again["Idempotency-Replayed"] == "true"
    other = post(browser, BODY | {"candidate": "// other"}, **{"Idempotency-Key": "k"})
    assert (other.status_code, other.json()["type"]) == (409, "/problems/idempotency-key-reused")
    run = post(browser, {"source": BODY["source"]}, "/api/v1/runs", **{"Idempotency-Key": "k"})
    assert run.status_code == 409
    EvaluationRecord.objects.all().delete()
    assert post(browser, BODY, **{"Idempotency-Key": "k"}).json()["id"] != first.json()["id"]


def test_a_batch_is_taken_whole_or_not_at_all(browser: Client, settings: Any) -> None:
    item = {key: BODY[key] for key in ("source", "candidate")}
    response = post(browser, {"items": [item] * 100}, f"{HERE}/batches", **{"Idempotency-Key": "b"})
    batch = EvaluationBatch.model_validate_json(response.content)
    assert (response.status_code, len(batch.results), batch.states) == (202, 100, {"queued": 100})
    again = post(browser, {"items": [item] * 100}, f"{HERE}/batches", **{"Idempotency-Key": "b"})
    assert again.json()["id"] == str(batch.id)
    assert EvaluationRecord.objects.count() == 100
    for items in ([], [item] * 101, [item, item | {"candidate": " "}]):
        assert post(browser, {"items": items}, f"{HERE}/batches").status_code == 400
    refused = post(browser, {"items": [item, item | {"filename": "f.rs"}]}, f"{HERE}/batches")
    assert refused.json()["errors"][0]["field"] == "items.1.filename"
    settings.EVALUATIONS_OPEN_MAX = 101
    full = post(browser, {"items": [item] * 2}, f"{HERE}/batches")
    assert (full.status_code, full["Retry-After"]) == (429, "10")
    assert EvaluationRecord.objects.count() == 100
    done = browser.get(response["Location"]).json()["results"][7]["id"]
    services.evaluation_execute(evaluation_id=UUID(done), judge=passes)
    stopped = post(browser, {}, f"{response['Location']}/cancel").json()
    assert (stopped["states"], stopped["ended"]) == ({"finished": 1, "cancelled": 99}, True)
    assert stopped["verdicts"] == {"passed": 1}
    assert [it["id"] for it in stopped["results"]] == [str(it.id) for it in batch.results]


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"candidate": None}, 400, "candidate"),
        ({"candidate": "x" * 1_000_001}, 413, "candidate"),
        ({"candidate": "a\x00"}, 400, "NUL"),
        ({"source": "\ud800"}, 400, "surrogate"),
        ({"filename": "f.cu"}, 400, ".c or .py"),
        ({"target": "sm_1"}, 400, "sm_90"),
        ({"backend": "abacus"}, 400, "backend"),
        ({"entry": "e" * 201}, 400, "entry"),
        ({"workspace": "nobodys"}, 404, "nothing"),
        ({"turns": 3}, 400, "turns"),
    ],
)
def test_what_cannot_be_taken_is_said(browser: Client, change: Any, status: int, words: str) -> None:
    response = post(browser, BODY | change)
    assert response.status_code == status
    assert words in response.json()["detail"]
    assert not EvaluationRecord.objects.exists()


def test_evaluations_are_listed_newest_first_in_pages(browser: Client, user: User) -> None:
    ids = [made(user).pk for _ in range(5)]
    page = EvaluationPage.model_validate_json(browser.get(f"{HERE}?limit=2").content)
    seen = [it.id for it in page.results]
    while page.next:
        page = EvaluationPage.model_validate_json(browser.get(page.next).content)
        seen += [it.id for it in page.results]
    assert seen == ids[::-1]


def test_cancel_ends_a_queued_one_and_only_an_ended_one_can_be_deleted(browser: Client, user: User) -> None:
    record = made(user)
    assert browser.delete(f"{HERE}/{record.pk}").json()["type"] == "/problems/evaluation-not-ended"
    for _ in range(2):
        response = post(browser, {}, f"{HERE}/{record.pk}/cancel")
        assert (response.status_code, response.json()["state"]) == (200, "cancelled")
    services.evaluation_execute(evaluation_id=record.pk, judge=passes)
    assert browser.get(f"{HERE}/{record.pk}").json()["verdict"] is None
    assert browser.delete(f"{HERE}/{record.pk}").status_code == 204


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("by", ["a user", "the server's stop"])
def test_a_running_judgement_hears_that_it_is_to_stop(user: User, by: str) -> None:
    record, heard = made(user), threading.Event()

    def waits(record: EvaluationRecord, cancel: Cancellation) -> Iterator[services.Said]:
        yield StageAt("verify", "draw 1")
        while not cancel.is_set:
            time.sleep(0.01)
        heard.set()
        raise Cancelled

    def work() -> None:
        services.evaluation_execute(evaluation_id=record.pk, judge=waits)
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + 10
    while EvaluationRecord.objects.get(pk=record.pk).stage != "verify draw 1":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    if by == "a user":
        assert services.evaluation_cancel(user=record.owner, record=record).state == "cancelling"
    else:
        stopping.set()
    thread.join(10)
    assert heard.is_set()
    record.refresh_from_db()
    assert record.state == ("cancelled" if by == "a user" else "interrupted")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TaskProblem(Problem(kind="parse_error", message="does not parse", line=2)), "parse_error"),
        (JailUnavailable("no user namespaces"), "judge_unavailable"),
        (RuntimeError("the judge broke"), "internal_error"),
        (None, "internal_error"),
    ],
)
def test_every_other_end_says_why(browser: Client, user: User, error: Exception | None, kind: str) -> None:
    record = made(user)

    def fails(record: EvaluationRecord, cancel: Cancellation) -> Iterator[services.Said]:
        yield StageAt("understand")
        if error is not None:
            raise error

    services.evaluation_execute(evaluation_id=record.pk, judge=fails)
    document = browser.get(f"{HERE}/{record.pk}").json()
    assert (document["state"], document["problem"]["kind"]) == ("failed", kind)
    assert "broke" not in document["message"]


def test_what_a_dead_worker_left_is_marked_and_what_waits_is_sent_again(
    user: User, queued: list[UUID], django_capture_on_commit_callbacks: Any
) -> None:
    lost, waiting = made(user), made(user)
    EvaluationRecord.objects.filter(pk=lost.pk).update(
        state="running", worker="elsewhere/1/1", heartbeat_at=timezone.now() - timedelta(hours=1)
    )
    assert services.evaluations_reconcile() == 1
    assert services.evaluations_requeue() == 1
    lost.refresh_from_db()
    assert (lost.state, queued) == ("interrupted", [waiting.pk])


_ROUTES = [("get", ""), ("delete", ""), ("post", "/cancel")]
_BATCH_ROUTES = [("get", ""), ("post", "/cancel")]


def test_every_route_with_an_id_is_tried_below() -> None:
    patterns = [str(route.pattern) for route in urls.api_urlpatterns]
    single = {it.partition("<uuid:evaluation_id>")[2] for it in patterns if "evaluation_id" in it}
    batch = {it.partition("<uuid:batch_id>")[2] for it in patterns if "batch_id" in it}
    assert (single, batch) == ({it for _, it in _ROUTES}, {it for _, it in _BATCH_ROUTES})


def test_anothers_evaluation_is_not_there(browser: Client, others_browser: Client) -> None:
    item = {key: BODY[key] for key in ("source", "candidate")}
    batch = post(browser, {"items": [item]}, f"{HERE}/batches").json()
    single = batch["results"][0]["id"]
    for method, suffix in _ROUTES:
        theirs = getattr(others_browser, method)(f"{HERE}/{single}{suffix}")
        nobodys = getattr(others_browser, method)(f"{HERE}/{uuid4()}{suffix}")
        assert theirs.status_code == nobodys.status_code == 404
        assert theirs.json()["detail"] == nobodys.json()["detail"]
    for method, suffix in _BATCH_ROUTES:
        assert getattr(others_browser, method)(f"{HERE}/batches/{batch['id']}{suffix}").status_code == 404
    assert others_browser.get(HERE).json()["results"] == []
    assert others_browser.get(f"{HERE}?workspace=ada").status_code == 404
    assert EvaluationRecord.objects.get().state == "queued"

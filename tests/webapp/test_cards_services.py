"""Leases of cards, and evaluations handed from one to another: what the rows allow, and what they do not."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.sites import site
from django.db.models.functions import Now
from django.test import Client

from sandbox.gpu.devices import Device
from sandbox.progress import LogChunk, StageAt
from tests.webapp.conftest import MakeRun
from webapp.accounts.models import User
from webapp.cards import queue, selectors, services
from webapp.cards.artifacts import ArtifactProblem, FolderStore, hash_of
from webapp.cards.models import Card, GpuEvaluation, GpuUse
from webapp.cards.wire import BadDocument, Outcome, outcome_of, packed, unpacked

TOKEN = "a token that is as long as it has to be"
H200 = Device(0, "GPU-1", "NVIDIA H200", (9, 0), "580.0", "Default", "Enabled", 143771)
AWAY = "elsewhere/7/1"  # a worker of another host, which is known by its lease alone
OTHER = "elsewhere/8/1"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def rung(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets that were rung for."""
    targets: list[str] = []
    monkeypatch.setattr(queue, "ring", targets.append)
    return targets


def leased(worker: str = AWAY, device: Device = H200) -> Card:
    card = services.card_lease(device=device, worker=worker)
    assert card is not None
    return card


def run_out(card: Card) -> None:
    Card.objects.filter(pk=card.pk).update(leased_until=Now() - timedelta(seconds=1))


@pytest.fixture
def ask(make_run: MakeRun) -> Any:
    def asked(target: str = "sm_90") -> GpuEvaluation:
        run = make_run()
        return services.evaluation_ask(
            evaluation_id=uuid4(), run_id=run.pk, given_id=None, target=target, request="0" * 64
        )

    return asked


def test_a_lease_is_one_workers_until_it_runs_out() -> None:
    card = leased()
    assert services.card_lease(device=H200, worker=OTHER) is None
    assert services.card_beat(card=card)
    run_out(card)
    assert services.card_beat(card=card)  # late, but nobody was faster
    run_out(card)
    taken_over = leased(OTHER)
    assert not services.card_beat(card=card)
    services.card_release(card=card)  # of somebody who has lost it: changes nothing
    assert services.card_beat(card=taken_over)
    services.card_release(card=taken_over)
    assert leased().pk == card.pk


def test_code_goes_to_cards_that_run_it(ask: Any) -> None:
    card = leased()
    assert "sm_90" in card.targets
    assert "sm_80" not in card.targets
    ask("sm_80")
    assert services.evaluation_take(card=card) is None
    first, second = ask(), ask()
    assert (selectors.positions()[first.pk], selectors.positions()[second.pk]) == (1, 2)
    taken = services.evaluation_take(card=card)
    assert taken is not None
    assert (taken.pk, taken.state, taken.attempts) == (first.pk, "working", 1)
    assert selectors.positions()[second.pk] == 1
    assert selectors.places([first.run_id, second.run_id]) == {
        first.run_id: selectors.Place(None, str(card)),
        second.run_id: selectors.Place(1, ""),
    }


def test_nothing_is_taken_without_the_lease_or_for_a_run_that_ended(ask: Any) -> None:
    card, evaluation = leased(), ask()
    run_out(card)
    assert services.evaluation_take(card=card) is None
    services.card_beat(card=card)
    services.card_quarantine(card=card, reason="it smoked")
    assert services.evaluation_take(card=card) is None
    services.card_healed(card=card)
    evaluation.run.ended_at = evaluation.run.created_at
    evaluation.run.save()
    assert services.evaluation_take(card=card) is None


def test_a_worker_that_was_given_up_and_comes_back_changes_nothing(ask: Any, rung: list[str]) -> None:
    late, evaluation = leased(), ask()
    first = services.evaluation_take(card=late)
    assert first is not None
    assert selectors.worker_lives(first)
    run_out(late)
    assert not selectors.worker_lives(first)
    evaluation.refresh_from_db()
    services.evaluation_take_back(evaluation=evaluation)
    assert (evaluation.state, evaluation.attempts, rung) == ("waiting", 1, ["sm_90", "sm_90"])
    second = services.evaluation_take(card=leased(OTHER))
    assert second is not None
    assert not services.evaluation_is_mine(evaluation=first)
    assert not services.evaluation_finish(evaluation=first, result="1" * 64, seconds=5.0)
    services.evaluation_put_back(evaluation=first)
    assert services.evaluation_is_mine(evaluation=second)
    assert services.evaluation_finish(evaluation=second, result="2" * 64, seconds=3.0)
    assert not services.evaluation_finish(evaluation=second, result="2" * 64, seconds=3.0)
    [use] = GpuUse.objects.all()
    assert (use.evaluation, use.run_id, use.seconds) == (evaluation.pk, evaluation.run_id, 3.0)


def test_a_second_death_ends_it(ask: Any) -> None:
    evaluation = ask()
    for worker in (AWAY, OTHER):
        card = leased(worker)
        assert services.evaluation_take(card=card) is not None
        run_out(card)
        evaluation.refresh_from_db()
        services.evaluation_take_back(evaluation=evaluation)
    assert evaluation.state == "failed"
    assert "so did the one that tried it again (elsewhere)" in evaluation.message


def test_what_is_cancelled_is_nobodys(ask: Any) -> None:
    card, evaluation = leased(), ask()
    taken = services.evaluation_take(card=card)
    assert taken is not None
    services.evaluation_cancel(evaluation=evaluation)
    assert not services.evaluation_is_mine(evaluation=taken)
    assert not services.evaluation_finish(evaluation=taken, result="1" * 64, seconds=1.0)
    assert GpuUse.objects.count() == 0


def test_what_a_dead_asker_left_is_swept(ask: Any, artifacts: str) -> None:
    evaluation = ask()
    evaluation.request = FolderStore().put(b"what was asked")
    evaluation.save()
    services.evaluation_say(evaluation=evaluation, progress=StageAt("replay"))
    assert services.evaluations_sweep() == 0  # its run goes on
    evaluation.run.ended_at = evaluation.run.created_at - timedelta(minutes=5)
    evaluation.run.save()
    assert services.evaluations_sweep() == 1
    assert services.evaluations_sweep() == 0
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.progress.count()) == ("cancelled", 0)
    with pytest.raises(ArtifactProblem, match="there is no artifact"):
        FolderStore().get(hash_of(b"what was asked"))


def test_devices_say_how_they_are(browser: Client, others_browser: Client, ask: Any) -> None:
    def states() -> list[str]:
        return [it["state"] for it in browser.get("/api/v1/devices").json()["results"]]

    assert Client().get("/api/v1/devices").status_code == 401
    card = leased()
    assert states() == ["free"]
    ask(), ask()
    services.evaluation_take(card=card)
    [found] = others_browser.get("/api/v1/devices").json()["results"]
    assert (found["state"], found["waiting"], found["host"]) == ("busy", 1, card.host)
    services.card_quarantine(card=card, reason="it smoked")
    assert states() == ["quarantined"]
    run_out(card)
    assert states() == ["away"]


def test_the_admin_asks_for_a_card_to_be_looked_at_again(db: None) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="correct horse battery"))
    card = leased()

    def heal() -> str:
        body = {"action": "heal", "_selected_action": [card.pk]}
        return client.post("/admin/cards/card/", body, follow=True).content.decode()

    assert "None of these cards is out of service" in heal()
    services.card_quarantine(card=card, reason="it smoked")
    assert "it smoked" in client.get("/admin/cards/card/").content.decode()
    assert "1 asked for" in heal()
    card.refresh_from_db()
    assert card.heal_asked_at is not None
    for model in site._registry:
        if model._meta.app_label == "cards":
            assert client.get(f"/admin/cards/{model._meta.model_name}/").status_code == 200
            assert client.get(f"/admin/cards/{model._meta.model_name}/add/").status_code == 403


# --- Artifacts ----------------------------------------------------------------------------------------------


@pytest.fixture
def artifacts(settings: Any, tmp_path: Any) -> str:
    settings.WORKER_TOKEN = TOKEN
    settings.STORAGES = {
        **settings.STORAGES,
        "artifacts": {**settings.STORAGES["artifacts"], "OPTIONS": {"location": tmp_path}},
    }
    return "/api/v1/artifacts"


def put(address: str, data: bytes, *, name: str | None = None, token: str = TOKEN) -> Any:
    return Client().put(
        f"{address}/{name or hashlib.sha256(data).hexdigest()}",
        data,
        content_type="application/octet-stream",
        headers={"Authorization": f"Bearer {token}"},
    )


def test_artifacts_come_back_as_they_were(artifacts: str, settings: Any) -> None:
    data, bearer = bytes(range(256)), {"Authorization": f"Bearer {TOKEN}"}
    address = f"{artifacts}/{hashlib.sha256(data).hexdigest()}"
    assert Client().get(artifacts, headers=bearer).status_code == 204
    assert put(artifacts, data).status_code == put(artifacts, data).status_code == 204
    assert Client().get(address, headers=bearer).content == data
    assert Client().delete(address, headers=bearer).status_code == 204
    gone = Client().get(address, headers=bearer)
    assert (gone.status_code, gone.json()["type"]) == (404, "/problems/no-artifact")
    settings.ARTIFACT_BYTES_MAX = 255
    assert put(artifacts, data).status_code == 413


def test_bytes_under_a_wrong_name_are_refused(artifacts: str, tmp_path: Any) -> None:
    wrong = put(artifacts, b"these", name=hashlib.sha256(b"others").hexdigest())
    assert (wrong.status_code, wrong.json()["type"]) == (400, "/problems/wrong-hash")
    put(artifacts, b"these")
    [kept] = list(tmp_path.iterdir())
    kept.write_bytes(b"those")
    answer = Client().get(f"{artifacts}/{kept.name}", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 404
    assert "its bytes have changed" in answer.json()["detail"]


def test_only_workers_reach_artifacts(artifacts: str, browser: Client, settings: Any) -> None:
    assert browser.get(artifacts).status_code == 401
    assert put(artifacts, b"these", token=TOKEN + "x").status_code == 401
    assert put(artifacts, b"these", token="").status_code == 401
    settings.WORKER_TOKEN = "short"
    refused = put(artifacts, b"these", token="short")
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/no-workers")
    settings.WORKER_TOKEN = ""
    assert put(artifacts, b"these", token="").status_code == 403


# --- What travels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "progress",
    [StageAt("replay", "draws", 1, 5), StageAt("gpu", queue_position=3), LogChunk("nvcc", "null \0 byte")],
    ids=["draws", "place", "log"],
)
def test_progress_travels_unchanged(progress: StageAt | LogChunk) -> None:
    assert unpacked(packed(progress)) == progress


def test_what_cannot_be_read_is_said() -> None:
    evaluation = uuid4()
    mine = Outcome(evaluation=evaluation, failure="no compiler").model_dump_json().encode()
    assert outcome_of(mine, evaluation).failure == "no compiler"
    with pytest.raises(BadDocument, match="about another evaluation"):
        outcome_of(mine, uuid4())
    with pytest.raises(BadDocument, match="cannot be read"):
        outcome_of(b'{"verdict": "passed"}', evaluation)
    with pytest.raises(BadDocument):
        unpacked('{"kind": "Verdict", "said": {}}')

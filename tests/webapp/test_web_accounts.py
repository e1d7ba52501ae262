"""Signing in: by a link that works once, or by a password that is slow to guess."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from tests.webapp.conftest import PASSWORD, MakeRun
from webapp.accounts import services, throttle
from webapp.accounts.models import SignInLink, User
from webapp.runs.models import AgentRun, RunEvent

pytestmark = pytest.mark.django_db


def test_the_owners_link_signs_in_once() -> None:
    owner = services.owner_ensure()
    assert services.owner_ensure() == owner
    assert not owner.has_usable_password()
    token = services.sign_in_link_create(user=owner)
    assert token not in SignInLink.objects.get().token_hash
    client = Client()
    response = client.get(f"/enter/{token}")
    assert (response.status_code, response["Location"]) == (302, "/")
    assert client.get("/api/v1/session").json()["user"] == {
        "id": owner.pk,
        "username": "owner",
        "is_staff": True,
    }
    again = Client().get(f"/enter/{token}")
    assert again.status_code == 410
    assert "prints a new one" in again.content.decode()
    assert client.get(f"/enter/{token}").status_code == 302  # who is signed in already just goes on


def test_a_link_expires_is_replaced_and_is_not_used_up_by_a_preview(user: User) -> None:
    late = services.sign_in_link_create(user=user, lifetime=timedelta(seconds=-1))
    assert Client().get(f"/enter/{late}").status_code == 410
    first = services.sign_in_link_create(user=user)
    second = services.sign_in_link_create(user=user)
    assert Client().get(f"/enter/{first}").status_code == 410
    assert Client().head(f"/enter/{second}").status_code == 405
    assert Client().get(f"/enter/{second}").status_code == 302
    assert Client().get("/enter/nonsense").status_code == 410


def test_a_user_who_may_not_sign_in_any_more_cannot_by_link(user: User) -> None:
    token = services.sign_in_link_create(user=user)
    User.objects.update(is_active=False)
    assert Client().get(f"/enter/{token}").status_code == 410


def test_the_page_asks_to_sign_in_and_comes_back(user: User, client: Client) -> None:
    response = client.get("/")
    assert (response.status_code, response["Location"]) == (302, "/sign-in?next=/")
    assert "<form" in client.get(response["Location"]).content.decode()
    wrong = client.post("/sign-in", {"username": "ada", "password": "wrong"})
    assert "do not match" in wrong.content.decode()
    right = client.post("/sign-in", {"username": "ada", "password": PASSWORD, "next": "/"})
    assert (right.status_code, right["Location"]) == (302, "/")
    elsewhere = Client().post(
        "/sign-in", {"username": "ada", "password": PASSWORD, "next": "https://evil.example/"}
    )
    assert elsewhere["Location"] == "/"
    assert client.get("/sign-out").status_code == 405
    assert client.post("/sign-out")["Location"] == "/sign-in"
    assert client.get("/api/v1/session").status_code == 401


def test_guessing_is_stopped(user: User, client: Client) -> None:
    for _ in range(throttle.FAILURES_MAX):
        assert client.post("/sign-in", {"username": "ada", "password": "wrong"}).status_code == 200
    blocked = client.post("/sign-in", {"username": "ada", "password": PASSWORD})
    assert (blocked.status_code, blocked["Retry-After"]) == (429, "300")
    assert client.post("/sign-in", {"username": "eve", "password": "wrong"}).status_code == 200


def test_the_admin_shows_runs_to_staff_only(browser: Client, user: User) -> None:
    nobody = Client().get("/admin/runs/agentrun/", follow=True)
    assert nobody.redirect_chain[-1][0] == "/sign-in?next=/admin/runs/agentrun/"
    assert browser.get("/admin/runs/agentrun/", follow=True).status_code == 403
    User.objects.update(is_staff=True, is_superuser=True)
    for page in ("runs/agentrun/", "runs/runevent/", "accounts/user/"):
        assert browser.get(f"/admin/{page}").status_code == 200
    assert browser.get("/admin/runs/runevent/add/").status_code == 403


def test_the_admin_deletes_ended_runs_with_their_events(browser: Client, make_run: MakeRun) -> None:
    User.objects.update(is_staff=True, is_superuser=True)
    ended, waiting = make_run(done=True), make_run()
    event = RunEvent.objects.filter(run=ended).first()
    assert event is not None
    yes = {"post": "yes"}
    assert browser.post(f"/admin/runs/runevent/{event.pk}/delete/", yes).status_code == 403
    assert browser.post(f"/admin/runs/agentrun/{waiting.pk}/delete/", yes).status_code == 403
    selected = {**yes, "action": "delete_selected", "_selected_action": [str(ended.pk), str(waiting.pk)]}
    assert browser.post("/admin/runs/agentrun/", selected).status_code == 403
    assert AgentRun.objects.count() == 2
    assert browser.post(f"/admin/runs/agentrun/{ended.pk}/delete/", yes).status_code == 302
    assert list(AgentRun.objects.all()) == [waiting]
    assert not RunEvent.objects.exists()

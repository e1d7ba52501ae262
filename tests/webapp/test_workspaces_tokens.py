"""API tokens and signed-in browsers: shown once, held to, ended; on websockets too."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.test import Client
from django.utils import timezone

from tests.webapp.conftest import PASSWORD, MakeRun
from tests.webapp.sockets import Socket, socket
from tests.webapp.teams import bearer, by_token, send, signed_in, team_make, token_make
from webapp.accounts.models import User
from webapp.workspaces.models import ApiToken, AuditEntry, Workspace
from webapp.workspaces.roles import Role, Scope

TOKENS = "/api/v1/tokens"
SESSIONS = "/api/v1/me/sessions"


@pytest.mark.django_db
def test_a_token_is_shown_once_and_kept_as_a_hash(browser: Client, user: User) -> None:
    made = send(browser, "POST", TOKENS, {"name": "ci", "scopes": ["runs:write", "read"], "days": 30})
    assert made.status_code == 201
    assert made["Cache-Control"] == "no-store"
    text = made.json()["token"]
    assert text.startswith("kw_")
    assert len(text) > 40
    record = ApiToken.objects.get()
    assert text not in (record.token_hash, record.prefix)
    assert (record.prefix, record.scopes) == (text[:11], ["read", "runs:write"])
    assert timedelta(days=29) < record.expires_at - timezone.now() < timedelta(days=30)
    listed = browser.get(TOKENS)
    assert text not in listed.content.decode()
    assert listed.json()["results"][0]["prefix"] == text[:11]
    # No cookie, no CSRF token.
    client = Client(enforce_csrf_checks=True, headers={"Authorization": f"bearer {text}"})
    assert send(client, "POST", "/api/v1/runs", {"source": "void f(int n);\n"}).status_code == 202
    assert AuditEntry.objects.get(action="run.create").token_prefix == text[:11]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body",
    [
        {"name": "", "scopes": ["read"]},
        {"name": "x\x00", "scopes": ["read"]},
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["everything"]},
        {"name": "x", "scopes": ["read"], "days": 0},
        {"name": "x", "scopes": ["read"], "days": 9999},
        {"name": "x"},
    ],
)
def test_what_is_no_token_is_said(browser: Client, body: dict[str, Any]) -> None:
    response = send(browser, "POST", TOKENS, body)
    assert (response.status_code, response.json()["type"]) == (400, "/problems/invalid")
    assert not ApiToken.objects.exists()


@pytest.mark.django_db
def test_tokens_end_and_say_so(browser: Client, user: User) -> None:
    record, text = token_make(user, Scope.READ)
    client = by_token(text)
    assert client.get("/api/v1/session").status_code == 200
    assert send(browser, "DELETE", f"{TOKENS}/{record.pk}").status_code == 204
    late, late_text = token_make(user, Scope.READ)
    ApiToken.objects.filter(pk=late.pk).update(expires_at=timezone.now())
    for gone in (text, late_text, "kw_nonsense", "nonsense", "", "kw_\udcff"):
        response = Client(headers={"Authorization": f"Bearer {gone}"}).get("/api/v1/session")
        assert (response.status_code, response["WWW-Authenticate"]) == (401, 'Bearer realm="kernelwright"')
    # Who sends a token acts by it, also where a cookie comes along.
    assert browser.get("/api/v1/session", headers={"Authorization": f"Bearer {text}"}).status_code == 401
    _, good = token_make(user, Scope.READ)
    User.objects.update(is_active=False)
    assert by_token(good).get("/api/v1/session").status_code == 401


@pytest.mark.django_db
def test_the_last_use_is_noted_once_a_minute(user: User) -> None:
    record, text = token_make(user, Scope.READ)
    client = by_token(text)

    def used() -> Any:
        client.get("/api/v1/session")
        return ApiToken.objects.values_list("last_used_at", flat=True).get(pk=record.pk)

    first = used()
    assert first is not None
    assert used() == first
    ApiToken.objects.update(last_used_at=first - timedelta(seconds=61))
    assert used() > first


@pytest.mark.django_db
def test_a_token_for_one_workspace_knows_no_other(user: User) -> None:
    team = team_make("team")
    run = team.run()
    client = bearer(team.maker, *Scope, workspace=team.workspace)
    listed = client.get("/api/v1/workspaces").json()["results"]
    assert [it["slug"] for it in listed] == ["team"]
    made = send(client, "POST", "/api/v1/runs", {"source": "void f(int n);\n"})
    assert made.status_code == 202  # without a name it is the token's workspace
    assert [it["id"] for it in client.get("/api/v1/runs").json()["results"]] == [
        made.json()["id"],
        str(run.pk),
    ]
    own = Workspace.objects.get(personal_of=team.maker).slug
    assert client.get(f"/api/v1/runs?workspace={own}").status_code == 404
    assert send(client, "POST", "/api/v1/workspaces", {"slug": "x", "name": "x"}).status_code == 403


@pytest.mark.django_db
def test_an_admin_keeps_a_members_token_out_of_the_workspace_alone() -> None:
    team = team_make("team")
    run = team.run()
    admin = signed_in(team.people[Role.ADMIN])
    path = "/api/v1/workspaces/team/tokens"
    for workspace, elsewhere in ((team.workspace, 401), (None, 200)):
        record, text = token_make(team.maker, Scope.READ, workspace=workspace)
        client = by_token(text)
        assert [it["id"] for it in admin.get(path).json()["results"]] == [str(record.pk)]
        assert client.get(f"/api/v1/runs/{run.pk}").status_code == 200
        assert send(admin, "DELETE", f"{path}/{record.pk}").status_code == 204
        assert admin.get(path).json()["results"] == []
        assert client.get(f"/api/v1/runs/{run.pk}").status_code in (401, 404)
        assert client.get("/api/v1/runs").status_code == elsewhere


@pytest.mark.django_db
def test_browsers_are_listed_and_signed_out(user: User) -> None:
    def sign_in(agent: str) -> Client:
        client = Client(headers={"User-Agent": agent})
        client.post("/sign-in", {"username": "ada", "password": PASSWORD})
        return client

    here, phone, old = (sign_in(name) for name in ("Firefox here", "Phone", "Old one"))
    listed = here.get(SESSIONS).json()["results"]
    assert {it["agent"]: it["current"] for it in listed} == {
        "Firefox here": True,
        "Phone": False,
        "Old one": False,
    }
    assert {it["address"] for it in listed} == {"127.0.0.1"}
    ids = {it["agent"]: it["id"] for it in listed}
    assert send(here, "DELETE", f"{SESSIONS}/{ids['Phone']}").status_code == 204
    assert phone.get("/api/v1/session").status_code == 401
    assert old.get("/api/v1/session").status_code == 200
    assert send(here, "DELETE", SESSIONS).status_code == 204
    assert (old.get("/api/v1/session").status_code, here.get("/api/v1/session").status_code) == (401, 200)
    assert [it["agent"] for it in here.get(SESSIONS).json()["results"]] == ["Firefox here"]
    here.post("/sign-out")
    again = sign_in("Again")
    assert [it["agent"] for it in again.get(SESSIONS).json()["results"]] == ["Again"]
    eve = User.objects.create_user("eve", password=PASSWORD)
    mine = again.get(SESSIONS).json()["results"][0]["id"]
    assert send(signed_in(eve), "DELETE", f"{SESSIONS}/{mine}").status_code == 404


@pytest.mark.django_db
def test_the_account_page_does_the_same(browser: Client, user: User) -> None:
    signed_in(user).get("/api/v1/session")
    page = browser.get("/account").content.decode()
    assert "this browser" in page
    assert "Sign all others out" in page
    made = browser.post("/account", {"do": "token-create", "name": "ci", "scopes": ["read"], "days": "3"})
    record = ApiToken.objects.get()
    assert record.prefix in made.content.decode().partition("<pre>")[2].partition("</pre>")[0]
    assert "<pre>" not in browser.get("/account").content.decode()
    wrong = browser.post("/account", {"do": "token-create", "name": "ci", "scopes": ["read"], "days": "no"})
    assert wrong.status_code == 400
    assert 'role="alert"' in wrong.content.decode()
    assert browser.post("/account", {"do": "token-revoke", "id": str(record.pk)}).status_code == 302
    record.refresh_from_db()
    assert record.revoked_at is not None
    assert browser.post("/account", {"do": "sessions-end"}).status_code == 302
    assert "Sign all others out" not in browser.get("/account").content.decode()
    for gone in ({"do": "token-revoke", "id": "x"}, {"do": "session-end"}):
        assert browser.post("/account", gone).status_code == 404
    assert browser.post("/account", {"do": "fly"}).status_code == 400
    assert Client().get("/account")["Location"] == "/sign-in?next=/account"


@pytest.mark.django_db
def test_signing_in_is_in_the_log(user: User) -> None:
    client = Client()
    client.post("/sign-in", {"username": "ada", "password": "wrong"})
    client.post("/sign-in", {"username": "ada", "password": PASSWORD})
    client.post("/sign-out")
    entries = AuditEntry.objects.order_by("pk").values_list("action", "denied", "actor_name", "detail")
    assert list(entries) == [
        ("sign-in", True, "", {"username": "ada"}),
        ("sign-in", False, "ada", {}),
        ("sign-out", False, "ada", {}),
    ]


@pytest.mark.django_db(transaction=True)
async def test_websockets_are_held_to_the_same(make_run: MakeRun, user: User) -> None:
    make = database_sync_to_async(lambda: team_make("team"))
    team = await make()
    run = await database_sync_to_async(team.run)()
    stranger = await database_sync_to_async(signed_in)(user)
    paths = [f"/ws/runs/{run.pk}", "/ws/runs?workspace=team"]

    async def ends(it: Socket, code: int | None) -> bool:
        """Whether the connection is closed with this code; None: whether it stays."""
        assert await it.connect()
        if code is not None:
            return await it.closed_with() == code
        return await it.is_silent(0.1) or await it.closed_or_not() is None

    tokens: dict[str, tuple[Any, int | None]] = {
        "good": (database_sync_to_async(token_make)(team.maker, Scope.READ), None),
        "no scope": (database_sync_to_async(token_make)(team.maker, Scope.RUNS_WRITE), 4403),
        "elsewhere": (
            database_sync_to_async(
                lambda: token_make(
                    team.maker, Scope.READ, workspace=Workspace.objects.get(personal_of=team.maker)
                )
            )(),
            4404,
        ),
        "stranger's": (database_sync_to_async(token_make)(user, *Scope), 4404),
    }
    texts = {name: ((await made)[1], expected) for name, (made, expected) in tokens.items()}
    texts["nonsense"] = ("kw_nonsense", 4401)
    for path in paths:
        for role, person in team.people.items():
            client = await database_sync_to_async(signed_in)(person)
            async with socket(path, client) as it:
                assert await ends(it, None), role
        async with socket(path, stranger) as it:
            assert await ends(it, 4404)
        async with socket(path, None) as it:
            assert await ends(it, 4401)
        for name, (text, expected) in texts.items():
            async with socket(path, None, bearer=text) as it:
                assert await ends(it, expected), (name, path)
    denials = AuditEntry.objects.filter(denied=True, action="run.view")
    assert await database_sync_to_async(denials.count)() == len(paths)

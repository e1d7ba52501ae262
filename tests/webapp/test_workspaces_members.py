"""Workspaces are made, people invited and let go; a workspace never loses its last admin."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.db.models import ProtectedError
from django.test import Client
from django.utils import timezone

from tests.webapp.teams import Team, bearer, send, signed_in, team_make
from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.workspaces import invitations, services
from webapp.workspaces.models import AuditEntry, Invitation, Membership, Workspace
from webapp.workspaces.roles import Role, Scope

pytestmark = pytest.mark.django_db
WORKSPACES = "/api/v1/workspaces"


@pytest.fixture
def team() -> Team:
    return team_make("team")


@pytest.fixture
def admin(team: Team) -> Client:
    return signed_in(team.founder)


def test_a_team_is_made_and_listed_after_ones_own(browser: Client, user: User) -> None:
    made = send(browser, "POST", WORKSPACES, {"slug": "a-team", "name": " A team "})
    assert (made.status_code, made["Location"]) == (201, f"{WORKSPACES}/a-team")
    assert (made.json()["role"], made.json()["name"], made.json()["members"]) == ("admin", "A team", 1)
    listed = browser.get(WORKSPACES).json()["results"]
    assert [(it["slug"], it["personal"]) for it in listed] == [("ada", True), ("a-team", False)]
    again = send(browser, "POST", WORKSPACES, {"slug": "a-team", "name": "x"})
    assert (again.status_code, again.json()["type"]) == (409, "/problems/name-taken")
    for slug in ("", "A", "-a", "a_b", "a" * 65, "ä", "a/b"):
        assert send(browser, "POST", WORKSPACES, {"slug": slug, "name": "x"}).status_code == 400, slug
    assert send(browser, "POST", WORKSPACES, {"slug": "x", "name": " "}).status_code == 400


def test_settings_change_only_from_what_was_seen(admin: Client, team: Team) -> None:
    path = f"{WORKSPACES}/team"
    seen = admin.get(path)["ETag"]
    assert send(admin, "PATCH", path, {"name": "B"}).status_code == 428
    changed = send(admin, "PATCH", path, {"name": "B"}, **{"If-Match": seen})
    assert (changed.status_code, changed.json()["name"]) == (200, "B")
    assert changed["ETag"] == admin.get(path)["ETag"] != seen
    late = send(admin, "PATCH", path, {"name": "C"}, **{"If-Match": seen})
    assert (late.status_code, late.json()["type"]) == (412, "/problems/changed-meanwhile")
    assert send(admin, "PATCH", path, {"name": "C"}, **{"If-Match": "xyz"}).status_code == 412
    moved = send(admin, "PATCH", path, {"slug": "moved"}, **{"If-Match": changed["ETag"]})
    assert (moved.status_code, admin.get(path).status_code) == (200, 404)
    taken = send(admin, "PATCH", f"{WORKSPACES}/moved", {"slug": "ada"}, **{"If-Match": moved["ETag"]})
    assert taken.status_code == 200
    assert AuditEntry.objects.filter(action="workspace.edit").first().detail == {"slug": ["moved", "ada"]}  # type: ignore[union-attr]


def test_a_link_makes_one_member_once(admin: Client, team: Team, browser: Client, user: User) -> None:
    made = send(admin, "POST", f"{WORKSPACES}/team/invitations", {"role": "reviewer"}).json()
    assert (made["mail"], made["state"], made["invited_by"]) == ("no_address", "open", "team-founder")
    token = made["link"].rpartition("/")[2]
    assert made["link"] == f"http://testserver/invitations/{token}"
    assert Invitation.objects.filter(token_hash=token).count() == 0
    assert token not in str(admin.get(f"{WORKSPACES}/team/invitations").content)
    page = browser.get(f"/invitations/{token}").content.decode()
    assert "team-founder invites you" in page
    assert "<button>Accept</button>" in page
    assert not Membership.objects.filter(user=user, workspace=team.workspace).exists()
    accepted = send(browser, "POST", "/api/v1/invitations/accept", {"token": token})
    assert (accepted.status_code, accepted.json()["role"]) == (200, "reviewer")
    again = send(browser, "POST", "/api/v1/invitations/accept", {"token": token})
    assert (again.status_code, again.json()["type"]) == (410, "/problems/invitation-gone")
    assert browser.get(f"/invitations/{token}").status_code == 410
    shown = admin.get(f"{WORKSPACES}/team/invitations").json()["results"]
    assert [(it["state"], it["accepted_by"]) for it in shown] == [("accepted", "ada")]
    assert send(admin, "DELETE", f"{WORKSPACES}/team/invitations/{made['id']}").status_code == 409


def test_the_page_accepts_and_a_member_uses_nothing_up(team: Team, browser: Client, user: User) -> None:
    invitation, token = team.invitation()
    member = signed_in(team.people[Role.VIEWER])
    assert member.post(f"/invitations/{token}").status_code == 409
    invitation.refresh_from_db()
    assert invitation.state == "open"
    assert browser.post(f"/invitations/{token}")["Location"] == "/account"
    assert Membership.objects.get(user=user, workspace=team.workspace).role == "author"
    assert Client().get(f"/invitations/{token}")["Location"].startswith("/sign-in?next=/invitations/")


def test_invitations_end_by_being_taken_back_and_by_time(admin: Client, team: Team, user: User) -> None:
    back, token = team.invitation()
    for _ in range(2):
        assert send(admin, "DELETE", f"{WORKSPACES}/team/invitations/{back.pk}").status_code == 204
    late, late_token = team.invitation()
    Invitation.objects.filter(pk=late.pk).update(expires_at=timezone.now())
    for gone in (token, late_token, "nonsense", ""):
        with pytest.raises(ProblemError) as told:
            invitations.invitation_accept(user=user, token=gone)
        assert told.value.status == 410
    states = [it["state"] for it in admin.get(f"{WORKSPACES}/team/invitations").json()["results"]]
    assert states == ["expired", "revoked"]


def test_mail_is_sent_where_it_is_configured_and_else_it_is_said(
    admin: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{WORKSPACES}/team/invitations"
    body = {"role": "author", "email": "bob@example.com"}
    told = send(admin, "POST", path, body).json()
    assert told["mail"] == "not_configured"
    assert told["link"].startswith("http://testserver/invitations/")
    settings.MAIL_CONFIGURED = True
    sent = send(admin, "POST", path, body).json()
    assert (sent["mail"], sent["link"], sent["email"]) == ("sent", None, "bob@example.com")
    assert mail.outbox[0].to == ["bob@example.com"]
    token = str(mail.outbox[0].body).partition("/invitations/")[2].split()[0]
    assert invitations.invitation_find(token) is not None
    # A real connection that nobody answers.
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    failed = send(admin, "POST", path, body).json()
    assert (failed["mail"], failed["link"] is not None) == ("failed", True)
    assert send(admin, "POST", path, {"role": "author", "email": "no address"}).status_code == 400


def test_nobody_is_invited_into_a_personal_workspace_or_leaves_it(browser: Client, user: User) -> None:
    for response in (
        send(browser, "POST", f"{WORKSPACES}/ada/invitations", {"role": "viewer"}),
        send(browser, "DELETE", f"{WORKSPACES}/ada/members/{user.pk}"),
        send(browser, "PATCH", f"{WORKSPACES}/ada/members/{user.pk}", {"role": "viewer"}),
    ):
        assert (response.status_code, response.json()["type"]) == (409, "/problems/personal-workspace")


def test_the_last_admin_stays(admin: Client, team: Team) -> None:
    other = team.people[Role.ADMIN]
    members = f"{WORKSPACES}/team/members"
    assert send(admin, "DELETE", f"{members}/{other.pk}").status_code == 204
    for response in (
        send(admin, "DELETE", f"{members}/{team.founder.pk}"),
        send(admin, "PATCH", f"{members}/{team.founder.pk}", {"role": "maintainer"}),
    ):
        assert (response.status_code, response.json()["type"]) == (409, "/problems/last-admin")
    with pytest.raises(ProtectedError, match=r"Membership\.user"):
        team.founder.delete()
    # An admin who cannot sign in is none.
    send(admin, "PATCH", f"{members}/{team.maker.pk}", {"role": "admin"})
    User.objects.filter(pk=team.maker.pk).update(is_active=False)
    assert send(admin, "DELETE", f"{members}/{team.founder.pk}").status_code == 409
    User.objects.filter(pk=team.maker.pk).update(is_active=True)
    assert send(admin, "DELETE", f"{members}/{team.founder.pk}").status_code == 204
    team.founder.delete()
    assert Workspace.objects.filter(personal_of=None).count() == 1


def at_once(*work: Callable[[], Any]) -> list[Any]:
    """What each came to, an error where there was one, all begun together in threads of their own."""
    results: list[Any] = [None] * len(work)
    start = threading.Barrier(len(work))

    def go(number: int) -> None:
        start.wait()
        try:
            results[number] = work[number]()
        except Exception as error:
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=go, args=(number,)) for number in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.django_db(transaction=True)
def test_of_many_who_accept_at_once_one_becomes_a_member() -> None:
    team = team_make("team")
    _, token = team.invitation()
    users = [User.objects.create_user(f"racer{number}") for number in range(6)]
    before = Membership.objects.filter(workspace=team.workspace).count()
    results = at_once(
        *(lambda user=user: invitations.invitation_accept(user=user, token=token) for user in users)  # type: ignore[misc]
    )
    assert sum(isinstance(it, Membership) for it in results) == 1
    assert [it.status for it in results if isinstance(it, ProblemError)] == [410] * 5
    assert Membership.objects.filter(workspace=team.workspace).count() == before + 1
    assert AuditEntry.objects.filter(action="invitation.accept").count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", ["leave", "step down", "remove each other"])
def test_of_two_admins_who_go_at_once_one_stays(way: str) -> None:
    team = team_make("team")
    pair = [
        Membership.objects.get(workspace=team.workspace, user=user)
        for user in (team.founder, team.people[Role.ADMIN])
    ]
    match way:
        case "leave":
            work = [lambda it=it: services.member_remove(user=it.user, member=it) for it in pair]
        case "step down":
            work = [
                lambda it=it: services.member_role_set(user=it.user, member=it, role=Role.VIEWER)
                for it in pair
            ]
        case _:
            work = [
                lambda a=a, b=b: services.member_remove(user=a.user, member=b) for a, b in (pair, pair[::-1])
            ]
    results = at_once(*work)  # type: ignore[arg-type]
    assert sorted(it.slug for it in results if isinstance(it, ProblemError)) == ["last-admin"], results
    assert Membership.objects.filter(workspace=team.workspace, role=Role.ADMIN).count() == 1


def test_removed_members_lose_what_they_had(admin: Client, team: Team) -> None:
    maker = signed_in(team.maker)
    run = team.run()
    bound, unbound = (bearer(team.maker, Scope.READ, workspace=it) for it in (team.workspace, None))
    for client in (maker, bound, unbound):
        assert client.get(f"/api/v1/runs/{run.pk}").status_code == 200
    send(admin, "DELETE", f"{WORKSPACES}/team/members/{team.maker.pk}")
    assert [it.get(f"/api/v1/runs/{run.pk}").status_code for it in (maker, bound, unbound)] == [404, 401, 404]
    assert signed_in(team.founder).get(f"/api/v1/runs/{run.pk}").status_code == 200

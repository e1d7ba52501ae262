"""Every route, every role: what the table of roles says, the API does. A new route needs an entry here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from tests.webapp import review_calls
from tests.webapp.teams import CANDIDATE, Team, bearer, send, signed_in, team_make, token_make
from webapp.accounts.models import BrowserSession, User
from webapp.gallery.selectors import gallery
from webapp.urls import api
from webapp.workspaces.models import AuditEntry, Workspace
from webapp.workspaces.roles import ACTIONS, Role, Scope

pytestmark = pytest.mark.django_db

RECORDING = next(it.id for it in gallery() if it.kind == "recording")
#: For everybody, and for GPU workers, which show a token of the server's own.
NOT_FOR_USERS = {"schema", "docs", "artifacts", "artifact"}
#: What somebody sends: path, body, headers.
Call = tuple[str, Any, dict[str, str]]
#: Makes what it needs in the team, for `user` to ask.
Make = Callable[[Team, User], Call]


def _path(suffix: str, body: Any = None) -> Make:
    return lambda team, user: (f"workspaces/{team.workspace.slug}{suffix}", body, {})


def _run(suffix: str = "", done: bool = True) -> Make:
    return lambda team, user: (f"runs/{team.run(done=done).pk}{suffix}", None, {})


def _versioned(suffix: str, body: Any) -> Make:
    def make(team: Team, user: User) -> Call:
        version = Workspace.objects.get(pk=team.workspace.pk).version
        return f"workspaces/{team.workspace.slug}{suffix}", body, {"If-Match": f'"{version}"'}

    return make


def _accept(team: Team, user: User) -> Call:
    elsewhere = team_make(f"elsewhere{User.objects.count()}")
    return "invitations/accept", {"token": elsewhere.invitation()[1]}, {}


def _browser(team: Team, user: User) -> Call:
    signed_in(user).get("/api/v1/session")
    return f"me/sessions/{BrowserSession.objects.filter(user=user).latest('signed_in_at').pk}", None, {}


CALLS: dict[tuple[str, str], Make] = {
    ("GET", "session"): lambda team, user: ("session", None, {}),
    ("GET", "doctor"): lambda team, user: ("doctor", None, {}),
    ("GET", "devices"): lambda team, user: ("devices", None, {}),
    ("GET", "examples"): lambda team, user: ("examples", None, {}),
    ("GET", "recording"): lambda team, user: (f"recordings/{RECORDING}", None, {}),
    ("GET", "workspaces"): lambda team, user: ("workspaces", None, {}),
    ("POST", "workspaces"): lambda team, user: (
        "workspaces",
        {"slug": f"new-{user.pk}-{Workspace.objects.count()}", "name": "New"},
        {},
    ),
    ("GET", "workspace"): _path(""),
    ("PATCH", "workspace"): _versioned("", {"name": "Other"}),
    ("GET", "members"): _path("/members"),
    ("PATCH", "member"): lambda team, user: _path(f"/members/{team.maker.pk}", {"role": "author"})(
        team, user
    ),
    ("DELETE", "member"): lambda team, user: _path(f"/members/{team.newcomer().pk}")(team, user),
    ("GET", "invitations"): _path("/invitations"),
    ("POST", "invitations"): _path("/invitations", {"role": "viewer"}),
    ("DELETE", "workspace-invitation"): lambda team, user: _path(f"/invitations/{team.invitation()[0].pk}")(
        team, user
    ),
    ("POST", "invitation-accept"): _accept,
    ("GET", "usage"): _path("/usage"),
    ("GET", "quotas"): _path("/quotas"),
    ("PUT", "quotas"): _versioned("/quotas", {"quotas": [{"kind": "runs_at_once", "limit": 90}]}),
    ("GET", "member-tokens"): _path("/tokens"),
    ("DELETE", "member-token"): lambda team, user: _path(
        f"/tokens/{token_make(team.maker, Scope.READ)[0].pk}"
    )(team, user),
    ("GET", "audit"): _path("/audit"),
    ("GET", "audit-file"): _path("/audit.csv"),
    ("GET", "tokens"): lambda team, user: ("tokens", None, {}),
    ("POST", "tokens"): lambda team, user: ("tokens", {"name": "ci", "scopes": ["read"]}, {}),
    ("DELETE", "token"): lambda team, user: (f"tokens/{token_make(user, Scope.READ)[0].pk}", None, {}),
    ("GET", "sessions"): lambda team, user: ("me/sessions", None, {}),
    ("DELETE", "sessions"): lambda team, user: (_browser(team, user) and "me/sessions", None, {}),
    ("DELETE", "browser-session"): _browser,
    ("GET", "runs"): lambda team, user: (f"runs?workspace={team.workspace.slug}", None, {}),
    ("POST", "runs"): lambda team, user: (
        "runs",
        {"source": "void f(int n);\n", "workspace": team.workspace.slug},
        {},
    ),
    ("GET", "run"): _run(),
    ("DELETE", "run"): _run(),
    ("GET", "run-events"): _run("/events"),
    ("POST", "run-cancel"): _run("/cancel", done=False),
    ("POST", "run-rerun"): _run("/rerun"),
    ("GET", "run-candidate"): _run("/candidate"),
    ("POST", "run-resume"): lambda team, user: (f"runs/{team.broken_off_run().pk}/resume", None, {}),
    ("GET", "evaluations"): lambda team, user: (f"evaluations?workspace={team.workspace.slug}", None, {}),
    ("POST", "evaluations"): lambda team, user: (
        "evaluations",
        {**CANDIDATE, "workspace": team.workspace.slug},
        {},
    ),
    ("GET", "evaluation"): lambda team, user: (f"evaluations/{team.evaluation().pk}", None, {}),
    ("DELETE", "evaluation"): lambda team, user: (f"evaluations/{team.evaluation(ended=True).pk}", None, {}),
    ("POST", "evaluation-cancel"): lambda team, user: (
        f"evaluations/{team.evaluation().pk}/cancel",
        None,
        {},
    ),
    ("POST", "evaluation-batches"): lambda team, user: (
        "evaluations/batches",
        {"items": [CANDIDATE], "workspace": team.workspace.slug},
        {},
    ),
    ("GET", "evaluation-batch"): lambda team, user: (f"evaluations/batches/{team.batch().pk}", None, {}),
    ("POST", "evaluation-batch-cancel"): lambda team, user: (
        f"evaluations/batches/{team.batch().pk}/cancel",
        None,
        {},
    ),
    ("GET", "profiles"): lambda team, user: (f"profiles?workspace={team.workspace.slug}", None, {}),
    ("GET", "profile"): lambda team, user: _path(f"/profiles/{team.profile()}")(team, user),
    ("PUT", "profile"): lambda team, user: _path(f"/profiles/{team.profile()}", {"turns": 3})(team, user),
    ("DELETE", "profile"): lambda team, user: _path(f"/profiles/{team.profile()}")(team, user),
    ("GET", "models"): lambda team, user: ("models", None, {}),
    ("POST", "models"): lambda team, user: ("models", {}, {}),
    ("GET", "model"): lambda team, user: ("models/1", None, {}),
    ("PATCH", "model"): lambda team, user: ("models/1", {}, {}),
    ("DELETE", "model"): lambda team, user: ("models/1", None, {}),
    ("POST", "model-try"): lambda team, user: ("models/1/try", None, {}),
    **review_calls.CALLS,
}


def routes() -> Iterator[tuple[str, str, Any]]:
    """Each method of each address of the API, with its view."""
    for route in api:
        view = getattr(route.callback, "view_class", None) or route.callback.cls
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            if route.name not in NOT_FOR_USERS and hasattr(view, method.lower()):
                yield method, str(route.name), view


ROUTES = [(method, name, view.actions[method]) for method, name, view in routes()]
IDS = [f"{method} {name}" for method, name, _ in ROUTES]


def test_every_route_has_an_entry_here_and_an_action_in_the_table() -> None:
    assert {(method, name) for method, name, _ in ROUTES} == set(CALLS)
    assert {action for _, _, action in ROUTES} <= set(ACTIONS)


@pytest.fixture(autouse=True)
def examined(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the machine can do is not the question here, and takes a second to find out."""
    monkeypatch.setattr("webapp.common.apis.examine", list)


@pytest.fixture
def team() -> Team:
    return team_make("team")


@pytest.mark.parametrize(("method", "name", "action"), ROUTES, ids=IDS)
def test_each_role_may_what_the_table_says(team: Team, method: str, name: str, action: str) -> None:
    rule = ACTIONS[action]
    for role, user in team.people.items():
        path, body, headers = CALLS[method, name](team, user)
        last = _last_entry()
        response = send(signed_in(user), method, f"/api/v1/{path}", body, **headers)
        entries = _since(last)
        if rule.staff or (rule.role is not None and role.rank < rule.role.rank):
            assert response.status_code == 403, (role, response.content)
            problem = response.json()
            assert problem["type"] == "/problems/not-allowed"
            assert "administrators" in problem["detail"] if rule.staff else role.value in problem["detail"]
            assert [(it.action, it.denied, it.actor_id) for it in entries] == [(action, True, user.pk)]
            own = Workspace.objects.get(personal_of=user)
            assert entries[0].workspace_id == (own if rule.staff else team.workspace).pk
            assert entries[0].request_id == response["X-Request-ID"]
        else:
            assert response.status_code // 100 == 2, (role, response.content)
            assert not any(it.denied for it in entries)
            # Having read something is no change that anybody else would ask about.
            assert bool(entries) == (method != "GET" and name != "notifications-read"), entries
            assert all(it.actor_id == user.pk and it.address == "127.0.0.1" for it in entries)
            if rule.role is not None:
                assert all(it.workspace_id == team.workspace.pk for it in entries)


@pytest.mark.parametrize(("method", "name", "action"), ROUTES, ids=IDS)
def test_strangers_find_nothing_and_nobody_is_asked_to_sign_in(
    team: Team, method: str, name: str, action: str
) -> None:
    path, body, headers = CALLS[method, name](team, team.founder)
    nobody = send(Client(), method, f"/api/v1/{path}", body, **headers)
    assert (nobody.status_code, nobody.json()["type"]) == (401, "/problems/not-signed-in")
    if ACTIONS[action].role is None and "token" not in name and "browser" not in name:
        return  # about oneself
    if name in ("tokens",):
        return
    stranger = team_make("strangers").people[Role.ADMIN]
    last = _last_entry()
    theirs = send(signed_in(stranger), method, f"/api/v1/{path}", body, **headers)
    assert (theirs.status_code, theirs.json()["type"]) == (404, "/problems/not-found"), theirs.content
    assert _since(last) == []
    # By a token too, whatever its scopes; and by one of a member that is bound to another workspace.
    if ACTIONS[action].scope is not None:
        bound = bearer(team.founder, *Scope, workspace=Workspace.objects.get(personal_of=team.founder))
        for client in (bearer(stranger, *Scope), bound):
            assert send(client, method, f"/api/v1/{path}", body, **headers).status_code == 404


@pytest.mark.parametrize(("method", "name", "action"), ROUTES, ids=IDS)
def test_a_token_is_good_for_its_scopes_alone(team: Team, method: str, name: str, action: str) -> None:
    admin = team.people[Role.ADMIN]
    needed = ACTIONS[action].scope
    for scope in Scope:
        path, body, headers = CALLS[method, name](team, admin)
        client = bearer(admin, scope)
        last = _last_entry()
        response = send(client, method, f"/api/v1/{path}", body, **headers)
        entries = _since(last)
        if scope == needed:
            assert response.status_code // 100 == 2, (scope, response.content)
            assert all(it.token_prefix.startswith("kw_") for it in entries)
        else:
            assert response.status_code == 403, (scope, response.content)
            assert (needed or "browser") in response.json()["detail"]
            assert [(it.action, it.denied) for it in entries] == [(action, True)]
            assert entries[0].token_prefix.startswith("kw_")


def test_objects_of_one_workspace_are_not_found_under_another(team: Team) -> None:
    """Identifiers cannot be mixed: an admin of two workspaces reaches each thing only where it is."""
    other = team_make("other")
    admin = other.founder
    client = signed_in(admin)
    mine = f"/api/v1/workspaces/{other.workspace.slug}"
    invitation, _ = team.invitation()
    bound, _ = token_make(team.maker, Scope.READ, workspace=team.workspace)
    for method, path, body in (
        ("PATCH", f"members/{team.maker.pk}", {"role": "admin"}),
        ("DELETE", f"members/{team.maker.pk}", None),
        ("DELETE", f"invitations/{invitation.pk}", None),
        ("DELETE", f"tokens/{bound.pk}", None),
        ("DELETE", f"invitations/{uuid4()}", None),
        ("DELETE", "members/999999999999", None),
    ):
        assert send(client, method, f"{mine}/{path}", body).status_code == 404, path
    tokens_there = client.get(f"{mine}/tokens").json()["results"]
    assert tokens_there == []
    assert client.get(f"{mine}/audit?object={invitation.pk}").json()["results"] == []


def test_authors_stop_and_delete_their_own_and_anybody_leaves(team: Team) -> None:
    author = team.people[Role.AUTHOR]
    client = signed_in(author)
    run = team.run(owner=author, done=False)
    assert send(client, "POST", f"/api/v1/runs/{run.pk}/cancel").status_code == 200
    assert send(client, "DELETE", f"/api/v1/runs/{run.pk}").status_code == 204
    viewer = team.people[Role.VIEWER]
    path = f"/api/v1/workspaces/{team.workspace.slug}/members"
    assert send(signed_in(viewer), "DELETE", f"{path}/{viewer.pk}").status_code == 204
    assert signed_in(viewer).get(path).status_code == 404


def test_who_was_made_viewer_may_not_stop_their_own_run(team: Team) -> None:
    author = team.people[Role.AUTHOR]
    run = team.run(owner=author, done=False)
    team.workspace.memberships.filter(user=author).update(role=Role.VIEWER)
    assert send(signed_in(author), "POST", f"/api/v1/runs/{run.pk}/cancel").status_code == 403


def _since(last: int) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(pk__gt=last).exclude(action="sign-in"))


def _last_entry() -> int:
    return AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0

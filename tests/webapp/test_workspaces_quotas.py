"""Quotas: shown before they bite, and nobody gets over them. The audit log: added to, read, never changed."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from agent.events import Spent, TurnEnded
from tests.webapp import scripted
from tests.webapp.conftest import MakeRun
from tests.webapp.teams import Team, request, send, signed_in, team_make
from tests.webapp.test_workspaces_members import at_once
from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.runs import services, usage
from webapp.runs.models import AgentRun
from webapp.workspaces import audit
from webapp.workspaces.models import AppendOnly, AuditEntry, Quota, QuotaKind, Usage, month_of
from webapp.workspaces.quotas import remaining, usage_add

pytestmark = pytest.mark.django_db
RUNS = "/api/v1/runs"
TEAM = "/api/v1/workspaces/team"
BODY = {"source": "void f(int n);\n", "workspace": "team"}


@pytest.fixture
def team() -> Team:
    return team_make("team")


def quotas_set(team: Team, *quotas: dict[str, Any]) -> Any:
    admin = signed_in(team.founder)
    headers = {"If-Match": admin.get(f"{TEAM}/quotas")["ETag"]}
    return send(admin, "PUT", f"{TEAM}/quotas", {"quotas": list(quotas)}, **headers)


def uses(client: Client) -> dict[tuple[str, str], tuple[float, int | None, float | None]]:
    report = client.get(f"{TEAM}/usage").json()
    return {(it["kind"], it["of"]): (it["used"], it["limit"], it["remaining"]) for it in report["quotas"]}


def test_what_is_left_is_shown_and_then_no_more_is_taken(team: Team) -> None:
    assert quotas_set(team, {"kind": "runs_at_once", "limit": 2}).status_code == 200
    maker = signed_in(team.maker)
    assert uses(maker)["runs_at_once", "workspace"] == (0, 2, 2)
    first = send(maker, "POST", RUNS, BODY)
    assert first.status_code == 202
    assert uses(maker)["runs_at_once", "workspace"] == (1, 2, 1)
    assert uses(maker)["runs_at_once", "user"] == (1, 20, 19)
    response = maker.get(f"{TEAM}/usage")
    assert '"runs_at_once-workspace";q=2' in response["RateLimit-Policy"]
    assert '"runs_at_once-workspace";r=1' in response["RateLimit"]
    # Another member's counts too; one's own workspace has its own.
    assert send(signed_in(team.people["author"]), "POST", RUNS, BODY).status_code == 202  # type: ignore[index]
    full = send(maker, "POST", RUNS, BODY)
    assert (full.status_code, full.json()["type"]) == (429, "/problems/too-many-runs")
    assert "The workspace has 2 unfinished runs; the limit is 2. Wait for one to end" in full.json()["detail"]
    assert (full["Retry-After"], '"runs_at_once-workspace";r=0' in full["RateLimit"]) == ("10", True)
    assert send(maker, "POST", RUNS, {"source": "void f(int n);\n"}).status_code == 202
    send(maker, "POST", f"{RUNS}/{first.json()['id']}/cancel")
    assert send(maker, "POST", RUNS, BODY).status_code == 202
    assert AgentRun.objects.filter(workspace=team.workspace).count() == 3


def test_a_members_limit_is_theirs_and_the_lowest_holds(team: Team) -> None:
    member = {"kind": "runs_at_once", "member": team.maker.pk, "limit": 1}
    quotas_set(team, member, {"kind": "runs_at_once", "limit": 5})
    maker = signed_in(team.maker)
    assert send(maker, "POST", RUNS, BODY).status_code == 202
    assert "You have in this workspace 1" in send(maker, "POST", RUNS, BODY).json()["detail"]
    assert send(signed_in(team.founder), "POST", RUNS, BODY).status_code == 202
    # A workspace's own limit cannot be above the server's.
    Quota.objects.create(workspace=team.workspace, kind="runs_at_once", limit=2, by_server=True)
    assert uses(maker)["runs_at_once", "workspace"] == (2, 2, 0)
    Quota.objects.create(user=team.maker, kind="runs_at_once", limit=7, by_server=True)
    assert uses(maker)["runs_at_once", "user"] == (1, 7, 6)


def test_administrators_set_the_servers_limits(team: Team, browser: Client) -> None:
    User.objects.filter(username="ada").update(is_staff=True, is_superuser=True)
    add = "/admin/workspaces/quota/add/"
    assert browser.post(add, {"kind": "runs_at_once", "limit": "3"}).status_code == 200  # of nothing
    row = {"kind": "runs_at_once", "limit": "3", "workspace": str(team.workspace.pk)}
    assert browser.post(add, row).status_code == 302
    assert Quota.objects.get().by_server
    assert uses(signed_in(team.maker))["runs_at_once", "workspace"] == (0, 3, 3)
    assert AuditEntry.objects.get(action="quota.edit").workspace_id == team.workspace.pk
    for page in ("auditentry", "apitoken", "invitation", "usage", "membership", "workspace", "quota"):
        assert browser.get(f"/admin/workspaces/{page}/").status_code == 200, page
    entry = AuditEntry.objects.get(action="quota.edit")
    assert browser.get(f"/admin/workspaces/auditentry/{entry.pk}/change/").status_code == 200
    assert (
        browser.post(f"/admin/workspaces/auditentry/{entry.pk}/delete/", {"post": "yes"}).status_code == 403
    )


def test_settings_that_cannot_be_are_said(team: Team, other: User) -> None:
    one = {"kind": "gpu_seconds", "limit": 1}
    for wrong in (
        [one, one],
        [{**one, "member": other.pk}],
        [{**one, "limit": -1}],
        [{**one, "limit": 2**63}],
        [{"kind": "beer", "limit": 1}],
    ):
        assert quotas_set(team, *wrong).status_code == 400, wrong
    assert not Quota.objects.exists()
    admin = signed_in(team.founder)
    assert send(admin, "PUT", f"{TEAM}/quotas", {"quotas": []}).status_code == 428
    assert send(admin, "PUT", f"{TEAM}/quotas", {"quotas": []}, **{"If-Match": '"99"'}).status_code == 412


def test_gpu_seconds_are_booked_by_turn_and_run_out(team: Team) -> None:
    quotas_set(team, {"kind": "gpu_seconds", "limit": 3})
    run = team.run(done=False)
    services.agent_run_claim(run_id=run.pk)
    evaluation = scripted.evaluation("passed", 50.0)
    for backend in ("gpu", "emulator", "gpu"):
        judged = evaluation.model_copy(update={"backend": backend, "stages": {"replay": 1.75}})
        event = TurnEnded(turn=1, evaluation=judged, best_turn=1, seconds=9)
        services.run_event_append(run=run, event=event)
    maker = signed_in(team.maker)
    assert uses(maker)["gpu_seconds", "workspace"] == (3.5, 3, 0)
    assert uses(maker)["gpu_seconds", "user"] == (3.5, None, None)
    full = send(maker, "POST", RUNS, BODY)
    assert (full.status_code, full.json()["type"]) == (429, "/problems/quota-exceeded")
    assert "(UTC)" in full.json()["detail"]
    assert int(full["Retry-After"]) > 0
    assert send(maker, "POST", RUNS, {**BODY, "backend": "emulator"}).status_code == 202
    # The next month is another account.
    Usage.objects.update(month=(month_of(timezone.now()) - timedelta(days=1)).replace(day=1).date())
    assert send(maker, "POST", RUNS, BODY).status_code == 202


def test_tokens_of_models_are_counted_from_the_books(team: Team) -> None:
    run = team.run(done=False)
    AgentRun.objects.update(policy="llm", model="m")
    run.refresh_from_db()
    usage.book(run, Spent(turn=1, prompt_tokens=700, completion_tokens=42))
    maker = signed_in(team.maker)
    assert uses(maker)["model_tokens", "workspace"] == (742, None, None)
    quotas_set(team, {"kind": "model_tokens", "limit": 1000})
    assert remaining(user=team.maker, workspace=team.workspace, kind=QuotaKind.MODEL_TOKENS) == 258
    quotas_set(team, {"kind": "model_tokens", "limit": 700})
    with pytest.raises(ProblemError, match="742 tokens of language models this month; the limit is 700"):
        services.agent_run_rerun(user=team.maker, run=run)


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_only_as_many_as_fit_are_taken() -> None:
    team = team_make("team")
    quotas_set(team, {"kind": "runs_at_once", "limit": 2})
    wanted = request("team")
    people = [*team.people.values(), team.maker, team.founder][1:]
    results = at_once(
        *(lambda it=it: services.agent_run_create(user=it, request=wanted) for it in people)  # type: ignore[misc]
    )
    assert sum(isinstance(it, tuple) for it in results) == 2, results
    assert {it.slug for it in results if isinstance(it, ProblemError)} == {"too-many-runs"}
    assert AgentRun.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_nothing_that_is_used_at_once_is_lost() -> None:
    team = team_make("team")
    whose = {"workspace_id": team.workspace.pk, "user_id": team.maker.pk}
    add = [lambda: usage_add(**whose, kind=QuotaKind.GPU_SECONDS, amount=1.0)] * 8  # type: ignore[arg-type]
    assert at_once(*add) == [None] * 8
    assert Usage.objects.get().amount == 8.0


# --- The audit log ------------------------------------------------------------------------------------------


def test_the_log_is_only_ever_added_to(user: User) -> None:
    audit.record("test", actor=user, workspace=None)
    entry = AuditEntry.objects.get()
    for change in (
        entry.save,
        entry.delete,
        lambda: AuditEntry.objects.update(action="x"),
        lambda: AuditEntry.objects.all().delete(),
        lambda: AuditEntry.objects.bulk_update([entry], ["action"]),
    ):
        with pytest.raises(AppendOnly):
            change()
    user.delete()  # what it speaks of may go
    assert AuditEntry.objects.get(action="test").actor_name == "ada"


def test_postgresql_refuses_changes_too(user: User) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no such trigger; test_web_system runs this on PostgreSQL")
    audit.record("test", actor=user, workspace=None)
    for statement in ("UPDATE workspaces_auditentry SET action = 'x'", "DELETE FROM workspaces_auditentry"):
        with (
            pytest.raises(DatabaseError, match="only ever added to"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
    assert AuditEntry.objects.get(action="test").action == "test"


def test_no_change_without_its_entry_and_no_entry_without_its_change(team: Team) -> None:
    """The entry is in the change's transaction: where that is undone, the entry is too."""
    before = AuditEntry.objects.count()
    with transaction.atomic():
        team.run(done=False)
        assert AuditEntry.objects.count() == before + 1
        transaction.set_rollback(True)
    assert AuditEntry.objects.count() == before


def test_the_log_is_read_in_pages_with_filters_and_as_a_file(team: Team) -> None:
    admin = signed_in(team.founder)
    run = team.run(done=False)
    viewer = signed_in(team.people["viewer"])  # type: ignore[index]
    assert send(viewer, "POST", f"{RUNS}/{run.pk}/cancel").status_code == 403
    audit.record("test", actor=team.maker, workspace=team.workspace, detail={"name": '=1+1,"x"\n'})

    def actions(query: str = "") -> list[str]:
        page = admin.get(f"{TEAM}/audit?limit=2{query}").json()
        found = list(page["results"])
        while page["next"]:
            page = admin.get(page["next"]).json()
            found += page["results"]
        return [it["action"] for it in found]

    assert actions() == ["test", "run.cancel", "run.create", "workspace.create"]
    assert actions("&denied=true") == ["run.cancel"]
    assert actions("&action=run.") == ["run.cancel", "run.create"]
    assert actions("&action=run.create") == ["run.create"]
    assert actions("&actor=team-viewer") == ["run.cancel"]
    assert actions(f"&object={run.pk}") == ["run.cancel", "run.create"]
    assert actions("&until=2020-01-01T00:00:00Z") == []
    for wrong in ("denied=maybe", "since=yesterday", "until=2026-13-01T00:00:00Z", "actor=%00"):
        assert admin.get(f"{TEAM}/audit?{wrong}").status_code == 400, wrong
    denied = admin.get(f"{TEAM}/audit?denied=true").json()["results"][0]
    assert "takes the role maintainer; yours in this workspace is viewer" in denied["detail"]["why"]
    file = admin.get(f"{TEAM}/audit.csv?action=test")
    assert file["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(b"".join(file.streaming_content).decode())))  # type: ignore[attr-defined]
    assert [row["action"] for row in rows] == ["test"]
    assert rows[0]["detail"] == '{"name": "=1+1,\\"x\\"\\n"}'


def test_no_cell_of_the_file_is_a_formula(team: Team, make_run: MakeRun) -> None:
    User.objects.filter(pk=team.maker.pk).update(username="=cmd()")
    maker = User.objects.get(pk=team.maker.pk)
    audit.record("test", actor=maker, workspace=team.workspace)
    file = signed_in(team.founder).get(f"{TEAM}/audit.csv?action=test")
    assert "'=cmd()" in b"".join(file.streaming_content).decode()  # type: ignore[attr-defined]

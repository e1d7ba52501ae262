"""Reviewing by API alone: asked for, talked about, changed, approved, merged."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from tests.webapp import scripted
from webapp.accounts.models import User
from webapp.evaluations import services as evaluations
from webapp.evaluations.models import EvaluationRecord
from webapp.library.models import LibraryEntry
from webapp.live.resources import RunCreate
from webapp.reviews.models import Revision
from webapp.runs import serializers, services
from webapp.runs.models import AgentRun
from webapp.workspaces.models import Membership, Workspace
from webapp.workspaces.roles import Role

pytestmark = pytest.mark.django_db


class Person:
    """Somebody with a browser, who speaks JSON."""

    def __init__(self, workspace: Workspace, name: str, role: Role | None) -> None:
        self.user = User.objects.create_user(name, email=f"{name}@example.org")
        if role is not None:
            Membership.objects.create(workspace=workspace, user=self.user, role=role)
        self.client = Client()
        self.client.force_login(self.user)

    def get(self, path: str, status: int = 200) -> Any:
        return self._answer(self.client.get(f"/api/v1/{path}"), status)

    def post(self, path: str, body: Any = None, status: int = 200, **headers: str) -> Any:
        data = "" if body is None else json.dumps(body)
        response = self.client.post(f"/api/v1/{path}", data, "application/json", headers=headers)
        return self._answer(response, status)

    def patch(self, path: str, body: Any, status: int = 200, **headers: str) -> Any:
        data = json.dumps(body)
        response = self.client.patch(f"/api/v1/{path}", data, "application/json", headers=headers)
        return self._answer(response, status)

    def delete(self, path: str, status: int = 204) -> None:
        self._answer(self.client.delete(f"/api/v1/{path}"), status)

    @staticmethod
    def _answer(response: Any, status: int) -> Any:
        assert response.status_code == status, response.content
        return json.loads(response.content) if response.content else None


@pytest.fixture
def workspace(db: None) -> Workspace:
    return Workspace.objects.create(slug="team", name="Team")


@pytest.fixture
def ann(workspace: Workspace) -> Person:
    return Person(workspace, "ann", Role.AUTHOR)


@pytest.fixture
def rob(workspace: Workspace) -> Person:
    return Person(workspace, "rob", Role.REVIEWER)


@pytest.fixture
def mia(workspace: Workspace) -> Person:
    return Person(workspace, "mia", Role.MAINTAINER)


@pytest.fixture
def run(ann: Person, workspace: Workspace) -> AgentRun:
    request = serializers.run_request(
        {"source": "// script: turns\nvoid f(int n);\n", "filename": "f.c", "workspace": workspace.slug}
    )
    assert isinstance(request, RunCreate)
    made, _ = services.agent_run_create(user=ann.user, request=request)
    services.agent_run_execute(run_id=made.pk, translate=scripted.translate)
    made.refresh_from_db()
    return made


def asked(ann: Person, run: AgentRun, **more: object) -> Any:
    body = {"run": str(run.pk), "title": "Scale rows", **more}
    return ann.post("review-requests", body, 201)


def judged(revision: str, verdict: str = "passed", score: float = 80.0) -> None:
    """The judge's word comes, as from a worker."""
    record = Revision.objects.get(pk=revision).judgement
    assert record is not None
    said = scripted.evaluation(verdict, score)  # type: ignore[arg-type]
    assert evaluations.evaluation_end(
        record=record, state=EvaluationRecord.State.FINISHED, message=said.message, evaluation=said
    )


def lines(revision: Any) -> int:
    return len(revision["source"].splitlines())


def test_a_request_names_the_best_turn_and_what_it_lacks(ann: Person, rob: Person, run: AgentRun) -> None:
    it = asked(ann, run, reviewers=["rob"], tags=["rows"])
    assert (it["number"], it["state"], it["workspace"]) == (1, "open", "team")
    head = it["head"]
    assert (head["origin"], head["turn"], head["author"], head["verdict"]) == ("turn", 2, None, "passed")
    assert head["reference"]["source"] == run.source
    assert [turn["number"] for turn in it["turns"]] == [1, 2]
    assert it["turns"][1]["parent"] == it["turns"][0]["id"]
    assert it["reviewers"] == [{"username": "rob", "state": "waiting", "asked": True, "revision": None}]
    assert {item["name"]: item["ok"] for item in it["checklist"]} == {
        "approvals": False,
        "no_changes_requested": True,
        "no_unresolved": True,
        "verdict_passed": True,
    }
    assert not it["can"]["approve"]
    assert "own work" in it["can"]["why"]["approve"]
    assert rob.get(f"review-requests/{it['id']}")["can"]["approve"]
    assert rob.get("review-requests?workspace=team")["results"][0]["id"] == it["id"]
    assert rob.get("inbox")["results"][0]["id"] == it["id"]
    assert ann.get("inbox")["results"] == []
    again = ann.post("review-requests", {"run": str(run.pk), "turn": 2, "title": "Again"}, 201)
    assert again["head"]["id"] == head["id"]
    assert again["number"] == 2


def test_a_thread_is_begun_answered_and_resolved(ann: Person, rob: Person, run: AgentRun) -> None:
    it = asked(ann, run)
    anchor = {"revision": it["head"]["id"], "line": 1, "end_line": 1, "quoted": "// turn 2"}
    thread = rob.post(f"review-requests/{it['id']}/threads", {"anchor": anchor, "body": "Why, @ann?"}, 201)
    assert thread["place"] == {"side": "new", "line": 1, "end_line": 1}
    ann.post(f"threads/{thread['id']}/comments", {"body": "Because."}, 201)
    now = ann.get(f"review-requests/{it['id']}")
    assert now["unresolved"] == 1
    assert now["version"] > it["version"]
    assert not next(item for item in now["checklist"] if item["name"] == "no_unresolved")["ok"]
    assert rob.post(f"threads/{thread['id']}/resolve")["resolved_by"] == {"username": "rob"}
    listed = ann.get(f"review-requests/{it['id']}/threads")["results"]
    assert [comment["body"] for comment in listed[0]["comments"]] == ["Why, @ann?", "Because."]
    assert not rob.post(f"threads/{thread['id']}/reopen")["resolved"]


def test_review_edit_approve_and_merge_by_api_alone(
    ann: Person, rob: Person, mia: Person, run: AgentRun
) -> None:
    it = asked(ann, run, reviewers=["rob"], rule={"approvals": 1, "score_at_least": 75})
    here = f"review-requests/{it['id']}"
    head = it["head"]["id"]
    anchor = {"revision": head, "line": 1, "end_line": 1}
    draft = {"anchor": anchor, "body": "Say what it is for.", "draft": True}
    draft["suggestion"] = {"line": 1, "end_line": 1, "text": "int rows = 2;  // of the second turn\n"}
    thread = rob.post(f"{here}/threads", draft, 201)
    assert ann.get(f"{here}/threads")["results"] == []
    ann.get(f"threads/{thread['id']}", 404)
    review = {"verdict": "request_changes", "body": "One thing.", "revision": head}
    sent = rob.post(f"{here}/submissions", review, 201)
    assert sent["comments"] == 1
    assert ann.get(here)["state"] == "changes_requested"
    assert ann.get("inbox")["results"][0]["id"] == it["id"]
    # Ann takes the suggestion in, and changes something herself.
    suggestion = ann.get(f"threads/{thread['id']}")["comments"][0]
    applied = ann.post(f"{here}/suggestions/apply", {"comments": [suggestion["id"]]}, 201)
    assert applied["source"] == "int rows = 2;  // of the second turn\n"
    assert (applied["origin"], applied["author"]["username"], applied["credited"]) == (
        "suggestion",
        "ann",
        ["rob"],
    )
    judged(applied["id"], "passed", 80.0)
    ann.post(f"threads/{thread['id']}/resolve")
    now = rob.get(here)
    assert now["head"]["verdict"] == "passed"
    assert now["head"]["score"] == 80.0
    # Rob's suggestion is in it: somebody else has to approve.
    own = {"verdict": "approve", "revision": applied["id"]}
    assert rob.post(f"{here}/submissions", own, 403)["type"] == "/problems/own-work"
    mia.post(f"{here}/submissions", {"verdict": "approve", "revision": head}, 409)
    mia.post(f"{here}/submissions", own, 201)
    assert mia.post(f"{here}/merge", {}, 409)["type"] == "/problems/not-approved"  # rob wants changes
    rob.post(
        f"{here}/submissions", {"verdict": "comment", "body": "Fine now", "revision": applied["id"]}, 201
    )
    assert rob.get(here)["state"] == "approved"
    assert mia.get("inbox")["results"] == []
    merged = mia.post(f"{here}/merge", {"revision": applied["id"]})
    assert merged["state"] == "merged"
    entry = LibraryEntry.objects.get(pk=UUID(merged["library_entry"]))
    assert (entry.title, entry.version, str(entry.revision_id)) == ("Scale rows", 1, applied["id"])
    mia.post(f"{here}/merge", {}, 409)
    ann.post(f"{here}/close", status=409)
    # The next request of this title is compared with what the library holds.
    following = ann.post("review-requests", {"revision": head, "title": "Scale rows"}, 201)
    assert following["base"]["id"] == applied["id"]

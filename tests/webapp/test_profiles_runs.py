"""Agent profiles: named, versioned, chosen for a run, and what the model then may use."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from agent.llm.skills import Means, Skill, index, search
from agent.llm.toolbox import schemas
from tests.webapp.teams import Team, send, signed_in, team_make
from webapp.language_models.models import LanguageModel
from webapp.language_models.services import language_model_save
from webapp.profiles.models import ProfileVersion
from webapp.runs.models import AgentRun
from webapp.runs.tasks import _request
from webapp.workspaces.models import AuditEntry
from webapp.workspaces.roles import Role

pytestmark = pytest.mark.django_db

SKILL = {"name": "house-rules", "description": "Always", "text": "Name kernels after what they do."}
PROFILE: dict[str, Any] = {"model": "coder", "protocol": "tools", "tools": ["compile"], "turns": 5}
PROFILE |= {"skills": [SKILL], "strategy": "best_of_n", "samples": 3}
SOURCE = "void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] = 1.0f; }\n"


@pytest.fixture
def team() -> Team:
    model = LanguageModel()
    values = {"name": "coder", "model": "m", "base_url": "https://models.example/v1"}
    language_model_save(model=model, values=values)
    return team_make("team")


@pytest.fixture
def maintainer(team: Team) -> Client:
    return signed_in(team.people[Role.MAINTAINER])


def put(client: Client, body: dict[str, Any], name: str = "careful") -> Any:
    return send(client, "PUT", f"/api/v1/workspaces/team/profiles/{name}", body)


def start(client: Client, **fields: Any) -> Any:
    return send(client, "POST", "/api/v1/runs", {"source": SOURCE, "workspace": "team", **fields})


def test_each_change_is_a_new_version_and_a_run_says_which(team: Team, maintainer: Client) -> None:
    first = put(maintainer, PROFILE)
    assert (first.status_code, first.json()["version"]) == (201, 1)
    assert put(maintainer, PROFILE).status_code == 200  # the same again is no change
    assert put(maintainer, {**PROFILE, "turns": 7}).json()["versions"] == [2, 1]
    author = signed_in(team.people[Role.AUTHOR])
    newest = start(author, profile="careful").json()
    assert (newest["profile"], newest["turn_limit"], newest["protocol"]) == ("careful@2", 7, "tools")
    pinned = start(author, profile="careful@1").json()
    assert (pinned["profile"], pinned["turn_limit"], pinned["model"]) == ("careful@1", 5, "coder")
    again = author.post(f"/api/v1/runs/{pinned['id']}/rerun").json()
    assert (again["profile"], again["turn_limit"]) == ("careful@1", 5)
    assert AuditEntry.objects.filter(action="profile.edit", object_title="careful").count() == 2


def test_what_a_run_may_use_is_what_its_version_says(team: Team, maintainer: Client) -> None:
    put(maintainer, PROFILE)
    run = AgentRun.objects.get(pk=start(maintainer, profile="careful").json()["id"])
    request = _request(run)
    assert (request.policy, request.protocol, request.turns) == ("llm", "tools", 5)
    assert (request.search.strategy, request.search.samples) == ("best_of_n", 3)
    names = {each["function"]["name"] for each in schemas(request.means)}
    assert names == {"compile", "write_file", "verify", "finish"}  # what it cannot do without is left
    assert "house-rules: Always" in index(request.means.skills)
    assert search(["kernels", "house"], request.means.skills)[0].name == "house-rules"


def test_a_page_of_ones_own_can_stand_in_the_place_of_ours() -> None:
    own = Means(skills=[Skill(name="coalescing", description="ours", families=["coalescing"], text="x")])
    assert index(own.skills).count("coalescing:") == 1


def test_a_version_never_changes_and_an_archived_profile_stays_known(team: Team, maintainer: Client) -> None:
    put(maintainer, PROFILE)
    run_id = start(maintainer, profile="careful").json()["id"]
    version = ProfileVersion.objects.get()
    version.number = 9
    with pytest.raises(TypeError, match="never changed"):
        version.save()
    assert send(maintainer, "DELETE", "/api/v1/workspaces/team/profiles/careful").status_code == 204
    assert send(maintainer, "GET", "/api/v1/profiles").json()["results"] == []
    assert start(maintainer, profile="careful").status_code == 400
    assert send(maintainer, "GET", f"/api/v1/runs/{run_id}").json()["profile"] == "careful@1"
    assert maintainer.post(f"/api/v1/runs/{run_id}/rerun").status_code == 202


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"model": "nobody"}, "no language model"),
        ({"tools": ["shell"]}, "'shell' is no tool"),
        ({"turns": 900}, "200"),
        ({"cost": 1.0}, "price"),
        ({"skills": [SKILL, SKILL]}, "two are called"),
        ({"skills": [{**SKILL, "text": "x" * 8001}]}, "8000"),
        ({"skills": [{**SKILL, "families": ["speed"]}]}, "no family"),
        ({"skills": [{**SKILL, "name": "../etc"}]}, "name"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_is_wrong_is_named(maintainer: Client, body: dict[str, Any], words: str) -> None:
    response = put(maintainer, body)
    assert response.status_code == 400
    assert words in json.dumps(response.json())
    assert not ProfileVersion.objects.exists()


def test_a_request_says_a_profile_or_what_profiles_say(team: Team, maintainer: Client) -> None:
    put(maintainer, PROFILE)
    assert "said by the profile" in start(maintainer, profile="careful", turns=3).json()["detail"]
    assert "it has careful" in start(maintainer, profile="bold").json()["detail"]
    assert "no version" in start(maintainer, profile="careful@8").json()["detail"]

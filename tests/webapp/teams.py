"""A team's workspace with a member of every role, and what is in it, for the tests of who may what."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.test import Client

from tests.webapp import scripted
from webapp.accounts.models import User
from webapp.evaluations import services as evaluations
from webapp.evaluations.models import EvaluationBatch, EvaluationRecord
from webapp.evaluations.serializers import batch_request, evaluation_request
from webapp.live.resources import RunCreate
from webapp.live.resources_profiles import ProfileSettings
from webapp.profiles.models import AgentProfile
from webapp.profiles.services import profile_save
from webapp.runs import serializers, services
from webapp.runs.models import AgentRun
from webapp.workspaces import invitations, tokens
from webapp.workspaces.models import ApiToken, Invitation, Membership, Workspace
from webapp.workspaces.roles import Role, Scope
from webapp.workspaces.services import workspace_create

DAY = timedelta(days=1)
CANDIDATE = {"source": "void f(int n, float *x) {}\n", "candidate": "// kernel\n", "filename": "f.c"}


@dataclass
class Team:
    workspace: Workspace
    people: dict[Role, User]  # one of each role
    maker: User  # an author, who made what is in the workspace
    founder: User  # a second admin, so that none is the last

    def run(self, *, owner: User | None = None, done: bool = True) -> AgentRun:
        run, _ = services.agent_run_create(user=owner or self.maker, request=request(self.workspace.slug))
        if done:
            services.agent_run_execute(run_id=run.pk, translate=scripted.translate)
            run.refresh_from_db()
        return run

    def broken_off_run(self) -> AgentRun:
        run = self.run()
        AgentRun.objects.filter(pk=run.pk).update(policy="llm", reason="interrupted")
        return run

    def evaluation(self, *, ended: bool = False) -> EvaluationRecord:
        wanted = evaluation_request({**CANDIDATE, "workspace": self.workspace.slug})
        record, _ = evaluations.evaluation_create(user=self.maker, request=wanted)
        return evaluations.evaluation_cancel(user=self.maker, record=record) if ended else record

    def batch(self) -> EvaluationBatch:
        wanted = batch_request({"items": [CANDIDATE], "workspace": self.workspace.slug})
        return evaluations.evaluation_batch_create(user=self.maker, request=wanted)[0]

    def profile(self) -> str:
        """The name of an agent profile; a new one each time."""
        name = f"profile-{AgentProfile.objects.count()}"
        profile_save(user=self.maker, workspace=self.workspace, name=name, wanted=ProfileSettings())
        return name

    def newcomer(self) -> User:
        user = User.objects.create_user(f"newcomer{User.objects.count()}")
        Membership.objects.create(workspace=self.workspace, user=user, role=Role.VIEWER)
        return user

    def invitation(self) -> tuple[Invitation, str]:
        return invitations.invitation_create(
            user=self.founder, workspace=self.workspace, email="", role=Role.AUTHOR, lifetime=DAY
        )


def team_make(slug: str) -> Team:
    founder = User.objects.create_user(f"{slug}-founder")
    workspace = workspace_create(user=founder, slug=slug, name=slug.title())
    people = {}
    for role in Role:
        people[role] = User.objects.create_user(f"{slug}-{role.value}")
        Membership.objects.create(workspace=workspace, user=people[role], role=role)
    maker = User.objects.create_user(f"{slug}-maker")
    Membership.objects.create(workspace=workspace, user=maker, role=Role.AUTHOR)
    return Team(workspace, people, maker, founder)


def request(slug: str | None = None, script: str = "turns") -> RunCreate:
    return serializers.run_request({"source": f"// script: {script}\nvoid f(int n);\n", "workspace": slug})


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def token_make(user: User, *scopes: Scope, workspace: Workspace | None = None) -> tuple[ApiToken, str]:
    return tokens.token_create(user=user, name="t", scopes=scopes, workspace=workspace, lifetime=DAY)


def by_token(text: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {text}"})


def bearer(user: User, *scopes: Scope, workspace: Workspace | None = None) -> Client:
    return by_token(token_make(user, *scopes, workspace=workspace)[1])


def send(client: Client, method: str, path: str, body: Any = None, **headers: str) -> Any:
    if method in ("GET", "HEAD"):
        return client.generic(method, path, headers=headers)
    return client.generic(
        method,
        path,
        "" if body is None else json.dumps(body),
        content_type="application/json",
        headers=headers,
    )

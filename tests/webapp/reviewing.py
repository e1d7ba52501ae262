"""A small team that reviews: an author, a reviewer, a maintainer, and a run of the author's."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from tests.webapp import scripted
from webapp.accounts.models import User
from webapp.evaluations import services as evaluations
from webapp.evaluations.models import EvaluationRecord
from webapp.reviews.models import Revision
from webapp.runs import serializers, services
from webapp.runs.models import AgentRun
from webapp.workspaces.models import Membership, Workspace
from webapp.workspaces.roles import Role

KERNEL = """\
__global__ void scale(int n, float f, float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = x[i] * f;
}

extern "C" void launch(int n, float f, float *x) {
    scale<<<(n + 255) / 256, 256>>>(n, f, x);
}
"""


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


class Story:
    """Everybody, and a finished run."""

    def __init__(self, slug: str = "team") -> None:
        self.workspace = Workspace.objects.create(slug=slug, name=slug.title())
        self.ann = Person(self.workspace, f"{slug}-ann", Role.AUTHOR)
        self.rob = Person(self.workspace, f"{slug}-rob", Role.REVIEWER)
        self.mia = Person(self.workspace, f"{slug}-mia", Role.MAINTAINER)
        self.run = self.run_of(self.ann)

    def run_of(self, person: Person) -> AgentRun:
        request = serializers.run_request(
            {
                "source": "// script: turns\nvoid f(int n);\n",
                "filename": "f.c",
                "workspace": self.workspace.slug,
            }
        )
        made, _ = services.agent_run_create(user=person.user, request=request)
        services.agent_run_execute(run_id=made.pk, translate=scripted.translate)
        made.refresh_from_db()
        return made

    def asked(self, **more: object) -> Any:
        """A request by Ann for the run's best turn."""
        return self.ann.post("review-requests", {"run": str(self.run.pk), "title": "Scale", **more}, 201)

    def with_kernel(self, **more: object) -> Any:
        """The same, with a real kernel as its head, judged."""
        it = self.asked(**more)
        pushed = self.push(it["id"], KERNEL, it["head"]["id"])
        judged(pushed["id"])
        return self.ann.get(f"review-requests/{it['id']}")

    def push(self, request: str, source: str, base: str, status: int = 201) -> Any:
        body = {"source": source, "base_revision": base}
        return self.ann.post(f"review-requests/{request}/revisions", body, status)


def judged(revision: str, verdict: str = "passed", score: float = 80.0) -> None:
    """The judge's word comes, as from a worker."""
    record = Revision.objects.get(pk=revision).judgement
    assert record is not None
    said = scripted.evaluation(verdict, score if verdict == "passed" else None)  # type: ignore[arg-type]
    assert evaluations.evaluation_end(
        record=record, state=EvaluationRecord.State.FINISHED, message=said.message, evaluation=said
    )

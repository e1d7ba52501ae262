"""Two users with browsers, and a task queue that only remembers what was sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from django.core.cache import cache
from django.test import Client

from tests.webapp import scripted
from webapp.accounts.models import User
from webapp.live.resources import RunCreate
from webapp.live.worker import stopping
from webapp.runs import queue, serializers, services
from webapp.runs.models import AgentRun

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """The ids of the runs that were sent to the task queue."""
    ids: list[UUID] = []
    monkeypatch.setattr(queue, "run_enqueue", ids.append)
    return ids


@pytest.fixture(autouse=True)
def clean(settings: Any) -> Iterator[None]:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the real one is slow
    cache.clear()
    yield
    stopping.clear()


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_user("ada", password=PASSWORD)


@pytest.fixture
def other(db: None) -> User:
    return User.objects.create_user("eve", password=PASSWORD)


@pytest.fixture
def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def others_browser(other: User) -> Client:
    client = Client()
    client.force_login(other)
    return client


def request(script: str = "turns", **fields: object) -> RunCreate:
    return serializers.run_request({"source": f"// script: {script}\nvoid f(int n);\n", **fields})


MakeRun = Callable[..., AgentRun]


@pytest.fixture
def make_run(user: User) -> MakeRun:
    """A queued run of a script; with `done` one that has been through it."""

    def make(script: str = "turns", *, done: bool = False, owner: User | None = None) -> AgentRun:
        run, _ = services.agent_run_create(user=owner or user, request=request(script))
        if done:
            services.agent_run_execute(run_id=run.pk, translate=scripted.translate)
            run.refresh_from_db()
        return run

    return make

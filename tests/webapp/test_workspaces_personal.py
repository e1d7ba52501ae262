"""Everybody has a workspace of their own: new users, and those who came before there were workspaces."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from webapp.accounts.models import User
from webapp.workspaces.models import Membership, Workspace
from webapp.workspaces.services import personal_workspace_ensure


@pytest.mark.django_db
def test_a_new_user_is_admin_of_a_workspace_of_their_own() -> None:
    names = ["ada", "Ada@home", "ada-home", "ada.home", "@@@", "ünï"]
    users = [User.objects.create_user(name) for name in names]
    slugs = [Workspace.objects.get(personal_of=user).slug for user in users]
    assert slugs == ["ada", "adahome", "ada-home", "adahome-2", "user", "uni"]
    assert list(Membership.objects.order_by("pk").values_list("user", "role")) == [
        (user.pk, "admin") for user in users
    ]
    assert personal_workspace_ensure(user=users[0]).slug == "ada"
    assert Workspace.objects.count() == len(users)


@pytest.mark.django_db(transaction=True)
def test_users_and_runs_from_before_move_to_workspaces_of_their_own() -> None:
    before = [("runs", "0001_initial"), ("workspaces", None)]
    try:
        executor = MigrationExecutor(connection)
        executor.migrate(before)
        old = executor.loader.project_state([("runs", "0001_initial")]).apps
        people = [old.get_model("accounts", "User").objects.create(username=name) for name in ("ada", "Ada")]
        for person in people:
            old.get_model("runs", "AgentRun").objects.create(
                owner=person, filename="f.c", language="c", source="", turn_limit=1
            )
    finally:
        call_command("migrate", verbosity=0)
    from webapp.runs.models import AgentRun

    assert [(run.owner.username, run.workspace.slug) for run in AgentRun.objects.order_by("owner")] == [
        ("ada", "ada"),
        ("Ada", "ada-2"),
    ]
    assert all(run.workspace.personal_of_id == run.owner_id for run in AgentRun.objects.all())
    assert set(Membership.objects.values_list("role", flat=True)) == {"admin"}

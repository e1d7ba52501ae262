"""Runs that are there already belong to their owner's own workspace."""

from typing import Any

from django.db import migrations


def move(apps: Any, schema_editor: Any) -> None:
    AgentRun = apps.get_model("runs", "AgentRun")
    Workspace = apps.get_model("workspaces", "Workspace")
    for workspace in Workspace.objects.exclude(personal_of=None).iterator():
        AgentRun.objects.filter(workspace=None, owner=workspace.personal_of_id).update(workspace=workspace)


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0002_agentrun_workspace'),
        ('workspaces', '0002_personal'),
    ]

    operations = [migrations.RunPython(move, migrations.RunPython.noop)]

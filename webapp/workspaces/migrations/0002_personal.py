"""Every user who is there already gets a workspace of their own."""

from typing import Any

from django.db import migrations
from django.utils.text import slugify


def make(apps: Any, schema_editor: Any) -> None:
    User = apps.get_model("accounts", "User")
    Workspace = apps.get_model("workspaces", "Workspace")
    Membership = apps.get_model("workspaces", "Membership")
    taken = set(Workspace.objects.values_list("slug", flat=True))
    for user in User.objects.filter(personal_workspace=None).order_by("pk").iterator():
        stem = slugify(user.username)[:50] or "user"
        slug, number = stem, 1
        while slug in taken:
            number += 1
            slug = f"{stem}-{number}"
        taken.add(slug)
        workspace = Workspace.objects.create(slug=slug, name=user.username, personal_of=user)
        Membership.objects.create(workspace=workspace, user=user, role="admin")


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
        ('workspaces', '0001_initial'),
    ]

    operations = [migrations.RunPython(make, migrations.RunPython.noop)]

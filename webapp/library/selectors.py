"""Reads of the library."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from webapp.accounts.models import User
from webapp.library.models import LibraryEntry
from webapp.workspaces.models import Workspace
from webapp.workspaces.selectors import workspaces_visible_to


def library_visible_to(user: User | AnonymousUser) -> QuerySet[LibraryEntry]:
    """The one place that decides: the library is seen by the members of its workspace."""
    return LibraryEntry.objects.filter(workspace__in=workspaces_visible_to(user)).select_related("workspace")


def newest_entry(workspace: Workspace, title: str) -> LibraryEntry | None:
    return LibraryEntry.objects.filter(workspace=workspace, title=title).order_by("-version").first()

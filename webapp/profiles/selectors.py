"""Reads of agent profiles."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import F, Max, QuerySet
from django.http import Http404

from webapp.accounts.models import User
from webapp.live.resources_profiles import ProfileDetail, ProfileSettings
from webapp.live.resources_profiles import ProfileVersion as VersionData
from webapp.profiles.models import AgentProfile, ProfileVersion
from webapp.workspaces.models import Workspace
from webapp.workspaces.selectors import workspaces_visible_to


class NoProfile(Exception):
    """The message says which there are."""


def profiles_of(workspace: Workspace) -> QuerySet[AgentProfile]:
    return AgentProfile.objects.filter(workspace=workspace, archived=False)


def profile_of(workspace: Workspace, name: str) -> AgentProfile:
    """Raises Http404."""
    found = profiles_of(workspace).filter(name=name).first()
    if found is None:
        raise Http404
    return found


def newest_versions(workspaces: Iterable[Workspace]) -> QuerySet[ProfileVersion]:
    """Of each profile that is offered, the newest."""
    offered = ProfileVersion.objects.filter(
        profile__workspace__in=workspaces, profile__archived=False
    ).annotate(newest=Max("profile__versions__number"))
    newest = offered.filter(number=F("newest")).select_related("profile__workspace", "created_by")
    return newest.order_by("profile__workspace__slug", "profile__name")


def newest_versions_for(user: User) -> QuerySet[ProfileVersion]:
    return newest_versions(workspaces_visible_to(user))


def version_named(workspace: Workspace, wanted: str) -> ProfileVersion:
    """The version that a run asks for: "careful" (the newest), "careful@3". Raises NoProfile."""
    name, at, number = wanted.partition("@")
    versions = ProfileVersion.objects.filter(profile__in=profiles_of(workspace), profile__name=name)
    if not versions.exists():
        among = ", ".join(profiles_of(workspace).values_list("name", flat=True)) or "none"
        raise NoProfile(f"workspace {workspace.slug} has no profile {name!r}; it has {among}")
    found = versions.filter(number=int(number)).first() if number.isdecimal() else None
    if at and found is None:
        raise NoProfile(f"profile {name} has no version {number!r}; its newest is {versions[0].number}")
    return found or versions[0]


def settings_of(version: ProfileVersion) -> ProfileSettings:
    return ProfileSettings.model_validate(version.settings)


def version_data(version: ProfileVersion) -> VersionData:
    return VersionData(
        **settings_of(version).model_dump(),
        name=version.profile.name,
        workspace=version.profile.workspace.slug,
        version=version.number,
        created_by=version.created_by.get_username() if version.created_by else "",
        created_at=version.created_at,
    )


def profile_detail(profile: AgentProfile, number: int | None = None) -> ProfileDetail:
    """One version, the newest where none is named. Raises Http404."""
    versions = profile.versions.select_related("profile__workspace", "created_by")
    version = versions.first() if number is None else versions.filter(number=number).first()
    if version is None:
        raise Http404
    numbers = list(versions.values_list("number", flat=True))
    return ProfileDetail(**version_data(version).model_dump(), versions=numbers)

"""Writes of agent profiles."""

from __future__ import annotations

from django.conf import settings as server
from django.db import transaction

from agent.llm.skills import known_families
from agent.llm.toolbox import TOOLS
from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.language_models.selectors import ModelUnusable, language_model_named
from webapp.live.resources import FieldProblem
from webapp.live.resources_profiles import ProfileSettings
from webapp.profiles.models import AgentProfile, ProfileVersion
from webapp.workspaces import audit
from webapp.workspaces.models import Workspace

#: A workspace may have so many.
PROFILES_MAX = 100


def profile_save(
    *, user: User, workspace: Workspace, name: str, wanted: ProfileSettings
) -> tuple[ProfileVersion, bool]:
    """A new version of the profile, which is made where there is none; and whether it is new.

    The same settings again make no new version. Raises ProblemError that names what is wrong.
    """
    _check(wanted)
    stored = wanted.model_dump(mode="json")
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=workspace.pk)  # one version after the other
        profile = AgentProfile.objects.filter(workspace=workspace, name=name).first()
        if profile is None:
            if AgentProfile.objects.filter(workspace=workspace).count() >= PROFILES_MAX:
                raise ProblemError(409, "too-many", f"A workspace has at most {PROFILES_MAX} profiles.")
            profile = AgentProfile.objects.create(workspace=workspace, name=name)
        newest = profile.versions.first()
        if newest is not None and newest.settings == stored and not profile.archived:
            return newest, False
        if profile.archived:
            profile.archived = False
            profile.save(update_fields=["archived"])
        number = newest.number + 1 if newest else 1
        version = ProfileVersion.objects.create(
            profile=profile, number=number, settings=stored, created_by=user
        )
        detail = {"version": number, "model": wanted.model}
        audit.record("profile.edit", actor=user, workspace=workspace, thing=profile, detail=detail)
    return version, True


def profile_archive(*, user: User, profile: AgentProfile) -> None:
    """It is offered no more. Its versions stay, since runs were made with them."""
    with transaction.atomic():
        AgentProfile.objects.filter(pk=profile.pk).update(archived=True)
        detail = {"archived": True}
        audit.record("profile.edit", actor=user, workspace=profile.workspace, thing=profile, detail=detail)


def _check(wanted: ProfileSettings) -> None:
    if wanted.model is not None:
        try:
            model = language_model_named(wanted.model)
        except ModelUnusable as unusable:
            raise _wrong("model", str(unusable)) from None
        if wanted.cost is not None and model.price_prompt is None:
            raise _wrong("cost", f"a limit needs the price of {wanted.model}, which is not known")
    elif wanted.cost is not None:
        raise _wrong("cost", "a limit needs a model with a price: name the model")
    for tool in wanted.tools or ():
        if tool not in TOOLS:
            raise _wrong("tools", f"{tool!r} is no tool; there are {', '.join(TOOLS)}")
    if wanted.turns is not None and not 1 <= wanted.turns <= server.TURNS_MAX_LLM:
        raise _wrong("turns", f"must be from 1 to {server.TURNS_MAX_LLM}")
    limits = {"seconds": wanted.seconds, "tokens": wanted.tokens, "cost": wanted.cost}
    for field, limit in limits.items():
        if limit is not None and not 0 < limit < 1e9:
            raise _wrong(field, "must be above 0 and below a thousand million")
    names = [skill.name for skill in wanted.skills]
    for skill in wanted.skills:
        if names.count(skill.name) > 1:
            raise _wrong("skills", f"two are called {skill.name!r}")
        for family in skill.families:
            if family not in known_families():
                known = ", ".join(known_families())
                raise _wrong("skills", f"{skill.name}: {family!r} is no family; there are {known}")


def _wrong(field: str, message: str) -> ProblemError:
    return ProblemError(
        400, "invalid", f"{field}: {message}", errors=[FieldProblem(field=field, message=message)]
    )

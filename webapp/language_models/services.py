"""Writes of language models: set up, changed, tried, kept in step with the environment."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.dispatch import Signal
from django.utils import timezone

from agent.llm.client import EndpointFailed, served_models
from webapp.language_models.asking import tried
from webapp.language_models.keys import KeyUnreadable, place, seal, unseal
from webapp.language_models.models import LanguageModel
from webapp.language_models.selectors import (
    ENVIRONMENT,
    ModelUnusable,
    endpoint_of,
    environment_named,
    language_models,
)
from webapp.live.resources import ModelTried

logger = logging.getLogger(__name__)

Origin = LanguageModel.Origin
DROPPED = "The key was given for another address and has been removed. Enter the key of the new one."
#: What the environment or this server says, and nobody else.
GIVEN = ("base_url", "model", "allow_loopback", "allow_private")


#: Sent in the transaction of each change: `actor` (a user, or None for the server itself), `model`, `detail`.
language_model_changed = Signal()


def language_model_save(
    *, model: LanguageModel, values: Mapping[str, Any], key: str | None = None, actor: Any = None
) -> bool:
    """Checks and stores a new or changed model. `key`: None leaves it, "" removes it.

    Returns whether a key was dropped since it was given for another address. Raises ValidationError.
    """
    before, is_new = place(model.base_url), model.pk is None
    changed = sorted(name for name, value in values.items() if is_new or getattr(model, name) != value)
    for name, value in values.items():
        setattr(model, name, value)
    model.full_clean(validate_constraints=False)
    model.validate_unique()
    dropped = False
    if key is not None:
        model.sealed_key = seal(key, model.base_url) if key else ""
    elif model.sealed_key and place(model.base_url) != before:
        model.sealed_key, dropped = "", True
    with transaction.atomic():
        if model.is_default:
            language_models().exclude(pk=model.pk).filter(is_default=True).update(is_default=False)
        model.save()
        key_is = "" if key is None and not dropped else "given" if key else "removed"
        detail = {"changed": changed, "new": is_new, "base_url": model.base_url, "key": key_is}
        language_model_changed.send(LanguageModel, actor=actor, model=model, detail=detail)
    return dropped


def language_model_delete(*, model: LanguageModel, actor: Any = None) -> None:
    """Its runs and what they took stay."""
    with transaction.atomic():
        language_model_changed.send(LanguageModel, actor=actor, model=model, detail={"deleted": True})
        model.delete()


def language_model_try(*, model: LanguageModel) -> ModelTried:
    """Really asks it, and keeps what was found out. Takes as long as the endpoint does, up to a minute."""
    try:
        found = tried(endpoint_of(model))
    except ModelUnusable as unusable:
        return ModelTried(ok=False, detail=str(unusable))
    changes: dict[str, Any] = {"tried_at": timezone.now(), "served": found.served or model.served}
    if found.ok:
        changes["calls_tools"] = found.calls_tools
    language_models().filter(pk=model.pk).update(**changes)
    return found


def served_refresh(*, model: LanguageModel) -> list[str]:
    """The names that the endpoint serves now, kept. Raises ModelUnusable with why it cannot be asked."""
    try:
        served = served_models(endpoint_of(model))
    except EndpointFailed as failed:
        raise ModelUnusable(str(failed)) from failed
    language_models().filter(pk=model.pk).update(served=served)
    return served


def environment_model_ensure() -> None:
    """A row for the model that the environment names; where it is, is read whenever it is asked."""
    if environment_named():
        first = not language_models().exists()
        LanguageModel.objects.get_or_create(
            name=ENVIRONMENT, defaults={"origin": Origin.ENVIRONMENT, "is_default": first}
        )


def keys_seal_again() -> int:
    """After SECRET_KEY was changed: what a fallback opens is sealed under the new one. Returns how many."""
    count = 0
    for model in language_models().exclude(sealed_key=""):
        try:
            key = unseal(model.sealed_key, model.base_url)
        except KeyUnreadable:
            logger.warning("the key of language model %s cannot be read; enter it again", model.name)
            continue
        language_models().filter(pk=model.pk).update(sealed_key=seal(key, model.base_url))
        count += 1
    return count

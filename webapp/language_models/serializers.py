"""Between REST and records of language models."""

from __future__ import annotations

from typing import Any

from webapp.common.bodies import parsed
from webapp.common.errors import ProblemError
from webapp.language_models.models import LanguageModel
from webapp.language_models.selectors import ModelUnusable, endpoint_of, model_info
from webapp.language_models.services import GIVEN
from webapp.live.resources import FieldProblem, ModelSettings, ModelWrite


def model_settings(model: LanguageModel, notice: str = "") -> ModelSettings:
    """All but the key."""
    fields = (
        *(
            "origin",
            "base_url",
            "has_key",
            "temperature",
            "top_p",
            "answer_tokens",
            "attempts",
            "backoff_seconds",
        ),
        *("connect_seconds", "silence_seconds", "answer_seconds", "requests_per_minute", "requests_at_once"),
        *("allow_loopback", "allow_private", "calls_tools", "tried_at"),
    )
    shown = {name: getattr(model, name) for name in fields}
    if model.origin == LanguageModel.Origin.ENVIRONMENT:
        shown |= environment_shown(model)
    return ModelSettings(
        **model_info(model).model_dump(), **shown, protocol_setting=model.protocol, notice=notice
    )


def environment_shown(model: LanguageModel) -> dict[str, Any]:
    """What the environment says now, as it is shown: read only, and without the key."""
    try:
        endpoint = endpoint_of(model)
    except ModelUnusable:
        return {}
    return {
        "base_url": endpoint.base_url,
        "has_key": endpoint.key is not None,
        "allow_loopback": endpoint.allow_loopback,
        "allow_private": endpoint.allow_private,
    }


def model_values(data: Any, model: LanguageModel) -> tuple[dict[str, Any], str | None]:
    """A request's fields for `model`, and the key where one is given. Raises ProblemError."""
    request = parsed(ModelWrite, data)
    values = {name: getattr(request, name) for name in request.model_fields_set}
    key = values.pop("key", None)
    is_new = model.pk is None
    if not is_new and values.get("name", model.name) != model.name:
        raise _wrong("name", "cannot be changed: runs are asked for with it. Add another model instead")
    if is_new and not values.get("name"):
        raise _wrong("name", "is missing")
    if model.origin != LanguageModel.Origin.ADMIN:
        given = [*GIVEN, "key"]
        for name in request.model_fields_set & set(given):
            raise _wrong(name, f"comes from {model.get_origin_display()}; change it there")
    optional = {field.name for field in LanguageModel._meta.fields if field.null}
    for name, value in values.items():
        if value is None and name not in optional:
            raise _wrong(name, "must have a value")
    return values, key


def _wrong(field: str, message: str) -> ProblemError:
    return ProblemError(
        400, "invalid", f"{field}: {message}", errors=[FieldProblem(field=field, message=message)]
    )

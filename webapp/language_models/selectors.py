"""Reads of language models: which there are, how each is asked, and why one cannot be."""

from __future__ import annotations

import os
from importlib.util import find_spec

from django.db.models import QuerySet
from pydantic import SecretStr, ValidationError

from agent.llm.endpoint import Endpoint, Price
from webapp.language_models.keys import KeyUnreadable, unseal
from webapp.language_models.models import LanguageModel
from webapp.live.resources import ModelInfo, PolicyOption

ENVIRONMENT = "environment"
_BASE_URL, _MODEL = "KERNELWRIGHT_LLM_BASE_URL", "KERNELWRIGHT_LLM_MODEL"
_KEY, _ALLOW = "KERNELWRIGHT_LLM_API_KEY", "KERNELWRIGHT_LLM_ALLOW"


class ModelUnusable(Exception):
    """The model cannot be asked as it is set up; the message says why and what to do."""


def environment_named() -> bool:
    """Whether the environment names a language model."""
    return bool(os.environ.get(_BASE_URL))


def language_models() -> QuerySet[LanguageModel]:
    return LanguageModel.objects.all()


def language_model_default() -> LanguageModel | None:
    """The one marked as default, else the first enabled one."""
    return language_models().filter(enabled=True).first()


def language_model_named(name: str) -> LanguageModel:
    """The model that runs name, perhaps with one of the names it serves: "local", "local:my-adapter".

    Raises ModelUnusable for one that is not there, not enabled or lacks something.
    """
    own, _, served = name.partition(":")
    model = language_models().filter(name=own).first()
    if model is None or not model.enabled:
        raise ModelUnusable(f"this server has no language model {own!r}; GET /api/v1/models lists them")
    if served and served not in model.served:
        among = ", ".join(model.served) or "no other names"
        raise ModelUnusable(f"{own} does not serve {served!r}; when last asked it served {among}")
    endpoint_of(model)
    return model


def endpoint_named(name: str) -> Endpoint:
    """How the model that a run names is asked, now. Raises ModelUnusable."""
    return endpoint_of(language_model_named(name), name.partition(":")[2])


def endpoint_of(model: LanguageModel, served: str = "") -> Endpoint:
    """How `model` is asked, now; `served` is another of the names at its address. Raises ModelUnusable."""
    if find_spec("httpx2") is None:
        raise ModelUnusable("asking a language model needs httpx2: pip install 'kernelwright[llm]'")
    if model.origin == LanguageModel.Origin.VLLM and model.trouble:
        raise ModelUnusable(model.trouble)
    where = _environment() if model.origin == LanguageModel.Origin.ENVIRONMENT else _stored(model)
    price = None
    if model.price_prompt is not None and model.price_completion is not None:
        price = Price(prompt=model.price_prompt, completion=model.price_completion)
    fields = (
        *("temperature", "top_p", "context_tokens", "answer_tokens", "attempts", "backoff_seconds"),
        *("connect_seconds", "silence_seconds", "answer_seconds", "requests_per_minute", "requests_at_once"),
    )
    settings = {name: getattr(model, name) for name in fields} | where | {"price": price}
    if served:
        settings["model"] = served
    try:
        return Endpoint.model_validate(settings)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise ModelUnusable(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _stored(model: LanguageModel) -> dict[str, object]:
    key = None
    if model.sealed_key:
        try:
            key = SecretStr(unseal(model.sealed_key, model.base_url))
        except KeyUnreadable as unreadable:
            raise ModelUnusable(str(unreadable)) from None
    return {
        "base_url": model.base_url,
        "model": model.model,
        "key": key,
        "allow_loopback": model.allow_loopback,
        "allow_private": model.allow_private,
    }


def _environment() -> dict[str, object]:
    base_url, name = os.environ.get(_BASE_URL), os.environ.get(_MODEL)
    if not base_url or not name:
        missing = _BASE_URL if not base_url else _MODEL
        raise ModelUnusable(f"{missing} is not set in the environment of this process")
    key, allowed = os.environ.get(_KEY), os.environ.get(_ALLOW, "").replace(" ", "").split(",")
    return {
        "base_url": base_url,
        "model": name,
        "key": SecretStr(key) if key else None,
        "allow_loopback": "loopback" in allowed,
        "allow_private": "private" in allowed,
    }


def protocol_of(model: LanguageModel, wished: str = "auto") -> str:
    """How a run with this model is driven: "rewrite" or "tools"."""
    chosen = model.protocol if wished == "auto" else wished
    if chosen == "auto":
        return "tools" if model.calls_tools else "rewrite"
    return chosen


def policy_options() -> list[PolicyOption]:
    """For the page: every enabled model, and each further name that it serves."""
    options = []
    for model in language_models().filter(enabled=True):
        info = model_info(model)
        options.append(_option(model, model.name, info.title, info.reason))
        others = [name for name in model.served if name != info.model]
        if model.origin == LanguageModel.Origin.VLLM:
            options += [_option(model, f"{model.name}:{name}", name, info.reason) for name in others]
    return options


def _option(model: LanguageModel, name: str, title: str, reason: str) -> PolicyOption:
    return PolicyOption(
        name="llm",
        title=title,
        available=not reason,
        reason=reason,
        model=name,
        protocol=protocol_of(model),
        priced=model.price_prompt is not None,
    )


def model_info(model: LanguageModel) -> ModelInfo:
    """What every user may know of a model."""
    reason, asked = "", model.model
    try:
        asked = endpoint_of(model).model
    except ModelUnusable as unusable:
        reason = str(unusable)
    if not model.enabled:
        reason = "an administrator has switched it off"
    title = (
        model.name
        if model.origin == LanguageModel.Origin.ADMIN
        else f"{asked or model.name} ({model.origin})"
    )
    return ModelInfo(
        id=model.pk,
        name=model.name,
        title=title,
        model=asked,
        protocol=protocol_of(model),
        served=model.served,
        context_tokens=model.context_tokens,
        price_prompt=model.price_prompt,
        price_completion=model.price_completion,
        enabled=model.enabled,
        is_default=model.is_default,
        available=not reason,
        reason=reason,
    )

"""What `doctor` and `GET doctor` say of language models."""

from __future__ import annotations

from django.apps import AppConfig
from django.db import DatabaseError

from webapp.common import services_found
from webapp.live.resources import Finding


class LanguageModelsConfig(AppConfig):
    name = "webapp.language_models"
    verbose_name = "Language models"

    def ready(self) -> None:
        services_found.further.append(language_models_found)


def language_models_found() -> list[Finding]:
    """Each enabled model, asked which names it serves; nothing where the database has no such table yet."""
    from webapp.language_models.selectors import ModelUnusable, language_models, model_info
    from webapp.language_models.services import served_refresh

    try:
        models = list(language_models().filter(enabled=True))
    except DatabaseError:
        return []
    if not models:
        detail = "none is set up; the built-in policy needs none"
        how = "an administrator adds one at /admin/, or set KERNELWRIGHT_LLM_BASE_URL: docs/language-model.md"
        return [Finding(name="language models", ok=False, detail=detail, how=how, needed=False)]
    findings = []
    for model in models:
        asked = model_info(model).model
        try:
            served = served_refresh(model=model)
        except ModelUnusable as unusable:
            ok, detail = False, str(unusable)
        else:
            ok = asked in served
            detail = (
                f"{asked} at its endpoint" if ok else f"its endpoint serves {', '.join(served) or 'nothing'}"
            )
        how = "" if ok else "start its endpoint, or correct it at /admin/"
        findings.append(Finding(name=f"model {model.name}", ok=ok, detail=detail, how=how, needed=False))
    return findings

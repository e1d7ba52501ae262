"""Tells the quotas what runs use."""

from __future__ import annotations

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "webapp.runs"

    def ready(self) -> None:
        from webapp.runs.selectors import open_runs_count
        from webapp.runs.usage import tokens_since
        from webapp.workspaces.models import QuotaKind
        from webapp.workspaces.quotas import counted

        counted(QuotaKind.RUNS_AT_ONCE, open_runs_count)
        counted(QuotaKind.MODEL_TOKENS, tokens_since)

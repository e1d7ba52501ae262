"""Runs in Django's admin: to look at, and to delete; nothing here is written by hand."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from webapp.runs.models import AgentRun, RunEvent


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False


@admin.register(AgentRun)
class AgentRunAdmin(ReadOnly):
    list_display = (
        "id",
        "title",
        "owner",
        "state",
        "reason",
        "verdict",
        "score",
        "turn_count",
        "created_at",
        "worker",
    )
    list_filter = ("state", "language", "policy", "backend_used", "target")
    list_select_related = ("owner",)
    search_fields = ("id", "task_name", "filename", "owner__username")
    date_hierarchy = "created_at"


@admin.register(RunEvent)
class RunEventAdmin(ReadOnly):
    list_display = ("run_id", "seq", "type", "at")
    list_filter = ("type",)
    search_fields = ("run__id",)
    show_full_result_count = False

    def has_delete_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False

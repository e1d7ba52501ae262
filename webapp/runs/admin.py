"""Runs in Django's admin: to look at, and to delete; nothing here is written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.accounts.selectors import signed_in
from webapp.common.admin import NoAdding, NoChanging
from webapp.runs import services
from webapp.runs.models import AgentRun, RunEvent


@admin.register(AgentRun)
class AgentRunAdmin(NoAdding, NoChanging):
    list_display = (
        "id",
        "title",
        "owner",
        "workspace",
        "state",
        "reason",
        "verdict",
        "score",
        "turn_count",
        "created_at",
        "worker",
    )
    list_filter = ("state", "language", "policy", "backend_used", "target")
    list_select_related = ("owner", "workspace")
    search_fields = ("id", "task_name", "filename", "owner__username")
    date_hierarchy = "created_at"

    def has_delete_permission(self, request: HttpRequest, obj: AgentRun | None = None) -> bool:
        """Like everywhere else: a run must have ended."""
        return super().has_delete_permission(request, obj) and (obj is None or obj.has_ended)

    def get_deleted_objects(
        self, objs: Sequence[Any] | QuerySet[Any], request: HttpRequest
    ) -> tuple[Any, Any, set[str], Any]:
        """Events may not be deleted by themselves; with their run they go."""
        shown, counts, forbidden, protected = super().get_deleted_objects(objs, request)
        return shown, counts, forbidden - {str(RunEvent._meta.verbose_name)}, protected

    def delete_model(self, request: HttpRequest, obj: AgentRun) -> None:
        services.agent_run_delete(user=signed_in(request.user), run=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[AgentRun]) -> None:
        for run in queryset:
            services.agent_run_delete(user=signed_in(request.user), run=run)


@admin.register(RunEvent)
class RunEventAdmin(NoAdding, NoChanging):
    list_display = ("run_id", "seq", "type", "at")
    list_filter = ("type",)
    search_fields = ("run__id",)
    show_full_result_count = False

    def has_delete_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False

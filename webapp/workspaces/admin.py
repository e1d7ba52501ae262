"""Workspaces in the admin: to look at, since changes go through the services; the server's quotas to set."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.common.admin import ReadOnly
from webapp.workspaces import audit
from webapp.workspaces.models import ApiToken, AuditEntry, Invitation, Membership, Quota, Usage, Workspace


@admin.register(Workspace)
class WorkspaceAdmin(ReadOnly):
    list_display = ("slug", "name", "personal_of", "created_at")
    search_fields = ("slug", "name")


@admin.register(Membership)
class MembershipAdmin(ReadOnly):
    list_display = ("workspace", "user", "role", "created_at")
    list_filter = ("role",)
    search_fields = ("workspace__slug", "user__username")


@admin.register(Invitation)
class InvitationAdmin(ReadOnly):
    list_display = ("workspace", "email", "role", "state", "invited_by", "created_at", "expires_at")
    list_select_related = ("workspace", "invited_by")
    exclude = ("token_hash",)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = ("prefix", "name", "user", "workspace", "created_at", "expires_at", "revoked_at")
    list_select_related = ("user", "workspace")
    search_fields = ("prefix", "user__username")
    exclude = ("token_hash",)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    list_display = ("created_at", "actor_name", "action", "denied", "object_kind", "object_title", "address")
    list_filter = ("denied", "action")
    search_fields = ("actor_name", "object_id", "request_id")
    show_full_result_count = False
    # The keys may be of what is gone.
    fields = (
        "created_at",
        "actor_name",
        "token_prefix",
        "action",
        "denied",
        "object_kind",
        "object_id",
        "object_title",
        "detail",
        "address",
        "request_id",
    )


@admin.register(Usage)
class UsageAdmin(ReadOnly):
    list_display = ("month", "workspace", "user", "kind", "amount")
    list_filter = ("kind", "month")
    list_select_related = ("workspace", "user")


@admin.register(Quota)
class QuotaAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The server's limits of single workspaces and users, in place of the defaults."""

    list_display = ("kind", "workspace", "user", "limit")
    list_select_related = ("workspace", "user")
    autocomplete_fields = ("workspace", "user")
    fields = ("workspace", "user", "kind", "limit")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Quota]:
        return Quota.objects.filter(by_server=True)

    def save_model(self, request: HttpRequest, obj: Quota, form: Any, change: bool) -> None:
        obj.by_server = True
        super().save_model(request, obj, form, change)
        self._record(request, obj, obj.limit)

    def delete_model(self, request: HttpRequest, obj: Quota) -> None:
        self._record(request, obj, None)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Quota]) -> None:
        for quota in queryset:
            self.delete_model(request, quota)

    def _record(self, request: HttpRequest, quota: Quota, limit: int | None) -> None:
        detail = {"by_server": True, "kind": quota.kind, "user": quota.user_id, "limit": limit}
        audit.record("quota.edit", actor=request.user, workspace=quota.workspace_id, detail=detail)

"""Workspaces in Django's admin: to look at. Changes go through the services, which keep the audit log."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from webapp.workspaces.models import Membership, Workspace


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False


@admin.register(Workspace)
class WorkspaceAdmin(ReadOnly):
    list_display = ("slug", "name", "personal_of", "created_at")
    search_fields = ("slug", "name")


@admin.register(Membership)
class MembershipAdmin(ReadOnly):
    list_display = ("workspace", "user", "role", "created_at")
    list_filter = ("role",)
    search_fields = ("workspace__slug", "user__username")

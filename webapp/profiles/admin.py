"""Agent profiles in Django's admin: to look at. They are changed by those who use them, over REST."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from webapp.profiles.models import ProfileVersion


@admin.register(ProfileVersion)
class ProfileVersionAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("__str__", "workspace", "created_by", "created_at")
    list_select_related = ("profile__workspace", "created_by")
    search_fields = ("profile__name", "profile__workspace__slug")

    @admin.display(description="workspace")
    def workspace(self, version: ProfileVersion) -> str:
        return version.profile.workspace.slug

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False

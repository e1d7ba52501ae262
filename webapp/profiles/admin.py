"""Agent profiles in Django's admin: to look at. They are changed by those who use them, over REST."""

from __future__ import annotations

from django.contrib import admin

from webapp.common.admin import ReadOnly
from webapp.profiles.models import ProfileVersion


@admin.register(ProfileVersion)
class ProfileVersionAdmin(ReadOnly):
    list_display = ("__str__", "workspace", "created_by", "created_at")
    list_select_related = ("profile__workspace", "created_by")
    search_fields = ("profile__name", "profile__workspace__slug")

    @admin.display(description="workspace")
    def workspace(self, version: ProfileVersion) -> str:
        return version.profile.workspace.slug

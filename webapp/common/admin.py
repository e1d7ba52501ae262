"""What Django's admin may not do to records that services write: each refusal by itself, and all of them."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest


class NoAdding(admin.ModelAdmin):  # type: ignore[type-arg]
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


class NoChanging(admin.ModelAdmin):  # type: ignore[type-arg]
    def has_change_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False


class NoDeleting(admin.ModelAdmin):  # type: ignore[type-arg]
    def has_delete_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False


class ReadOnly(NoAdding, NoChanging, NoDeleting):
    """To look at."""

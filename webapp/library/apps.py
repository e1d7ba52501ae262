"""The library, as Django knows it."""

from __future__ import annotations

from django.apps import AppConfig


class LibraryConfig(AppConfig):
    name = "webapp.library"
    verbose_name = "Library"

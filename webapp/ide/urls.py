"""Addresses of the IDE."""

from __future__ import annotations

from django.urls import path

from webapp.ide import views

pages_urlpatterns = [
    path("", views.ide, name="ide"),
    path("runs/<uuid:run_id>", views.ide, name="ide-run"),
    path("reviews/<uuid:review_id>", views.ide, name="ide-review"),
    path("workspace", views.ide, name="ide-workspace"),
    path("settings", views.ide, name="ide-settings"),
]

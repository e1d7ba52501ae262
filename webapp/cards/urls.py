"""Addresses of cards, and of workers' artifacts."""

from __future__ import annotations

from django.urls import path, re_path

from webapp.cards import apis

api_urlpatterns = [
    path("devices", apis.DevicesApi.as_view(), name="devices"),
    path("artifacts", apis.ArtifactsApi.as_view(), name="artifacts"),
    re_path(r"^artifacts/(?P<name>[0-9a-f]{64})$", apis.ArtifactApi.as_view(), name="artifact"),
]

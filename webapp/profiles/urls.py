"""Addresses of agent profiles."""

from __future__ import annotations

from django.urls import path

from webapp.profiles import apis

api_urlpatterns = [
    path("profiles", apis.ProfilesApi.as_view(), name="profiles"),
    path("workspaces/<slug:slug>/profiles/<str:name>", apis.ProfileApi.as_view(), name="profile"),
]

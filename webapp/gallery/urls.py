"""Addresses of the gallery."""

from __future__ import annotations

from django.urls import path

from webapp.gallery import apis

api_urlpatterns = [
    path("examples", apis.ExamplesApi.as_view(), name="examples"),
    path("recordings/<slug:name>", apis.RecordingApi.as_view(), name="recording"),
]

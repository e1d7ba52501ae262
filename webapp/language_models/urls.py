"""Addresses of language models."""

from __future__ import annotations

from django.urls import path

from webapp.language_models import apis

api_urlpatterns = [
    path("models", apis.ModelsApi.as_view(), name="models"),
    path("models/<int:model_id>", apis.ModelApi.as_view(), name="model"),
    path("models/<int:model_id>/try", apis.ModelTryApi.as_view(), name="model-try"),
]

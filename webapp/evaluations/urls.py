"""Addresses of evaluations."""

from __future__ import annotations

from django.urls import path

from webapp.evaluations import apis

api_urlpatterns = [
    path("evaluations", apis.EvaluationsApi.as_view(), name="evaluations"),
    path("evaluations/batches", apis.EvaluationBatchesApi.as_view(), name="evaluation-batches"),
    path("evaluations/batches/<uuid:batch_id>", apis.EvaluationBatchApi.as_view(), name="evaluation-batch"),
    path(
        "evaluations/batches/<uuid:batch_id>/cancel",
        apis.EvaluationBatchCancelApi.as_view(),
        name="evaluation-batch-cancel",
    ),
    path("evaluations/<uuid:evaluation_id>", apis.EvaluationApi.as_view(), name="evaluation"),
    path(
        "evaluations/<uuid:evaluation_id>/cancel",
        apis.EvaluationCancelApi.as_view(),
        name="evaluation-cancel",
    ),
]

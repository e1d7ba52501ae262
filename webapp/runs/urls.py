"""Addresses of runs."""

from __future__ import annotations

from django.urls import path

from webapp.runs import apis

api_urlpatterns = [
    path("runs", apis.RunsApi.as_view(), name="runs"),
    path("runs/<uuid:run_id>", apis.RunApi.as_view(), name="run"),
    path("runs/<uuid:run_id>/events", apis.RunEventsApi.as_view(), name="run-events"),
    path("runs/<uuid:run_id>/cancel", apis.RunCancelApi.as_view(), name="run-cancel"),
    path("runs/<uuid:run_id>/rerun", apis.RunRerunApi.as_view(), name="run-rerun"),
    path("runs/<uuid:run_id>/resume", apis.RunResumeApi.as_view(), name="run-resume"),
    path("runs/<uuid:run_id>/candidate", apis.RunCandidateApi.as_view(), name="run-candidate"),
]

"""Addresses of the websockets."""

from __future__ import annotations

from django.urls import path

from webapp.runs import consumers

websocket_urlpatterns = [
    path("ws/runs", consumers.RunsConsumer.as_asgi()),
    path("ws/runs/<uuid:run_id>", consumers.RunConsumer.as_asgi()),
]

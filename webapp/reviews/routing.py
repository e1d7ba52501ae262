"""Addresses of the websocket."""

from __future__ import annotations

from django.urls import path

from webapp.reviews import consumers

websocket_urlpatterns = [
    path("ws/reviews/<uuid:request_id>", consumers.ReviewConsumer.as_asgi()),
]

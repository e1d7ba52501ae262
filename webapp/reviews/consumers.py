"""The websocket of a review request: it has changed, get it again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async

from webapp.live import publish
from webapp.live.envelope import ChangedFrame
from webapp.reviews.models import ReviewRequest
from webapp.reviews.selectors import requests_visible_to
from webapp.runs.consumers import NOT_FOUND, NOT_SIGNED_IN, Live


class ReviewConsumer(Live):
    """`/ws/reviews/{id}`: the version at first and whenever it is another. The row is the truth."""

    async def connect(self) -> None:
        self.request_id: UUID = self.scope["url_route"]["kwargs"]["request_id"]
        self.group = publish.review_group(self.request_id)
        self.told: int | None = None
        await super().connect()

    async def refusal(self) -> int | None:
        user = self.scope["user"]
        if not user.is_authenticated:
            return NOT_SIGNED_IN
        visible = requests_visible_to(user).filter(pk=self.request_id)
        return None if await database_sync_to_async(visible.exists)() else NOT_FOUND

    async def step(self) -> None:
        versions = ReviewRequest.objects.filter(pk=self.request_id).values_list("version", flat=True)
        version = await database_sync_to_async(versions.first)()
        if version is not None and version != self.told:
            self.told = version
            await self.send_frame(ChangedFrame(version=version))

    async def review_changed(self, message: dict[str, Any]) -> None:
        self.bell.set()

"""The websockets: replay from a number, then live. The database is the truth, the layer a doorbell."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from channels.auth import get_user
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import Http404
from django.utils import timezone
from pydantic import ValidationError

from agent.events import TextDelta
from webapp.accounts.models import User
from webapp.live import publish
from webapp.live.envelope import (
    ChangedFrame,
    DeltaFrame,
    HelloFrame,
    LiveFrame,
    PingFrame,
    PongFrame,
    ResetFrame,
    RunFrame,
    client_frames,
)
from webapp.runs.models import AgentRun
from webapp.runs.selectors import events_after, runs_listed, runs_visible_to
from webapp.runs.serializers import event_frame, run_summaries
from webapp.workspaces.access import Denied, require
from webapp.workspaces.models import Workspace
from webapp.workspaces.selectors import Owned, workspace_visible_to, workspaces_visible_to
from webapp.workspaces.tokens import token_user

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
PING_SECONDS = 20.0
HELLO_SECONDS = 15.0
#: How often it is looked at whether the user is still signed in and may still see this.
ACCESS_SECONDS = 15.0
FRAME_CHARACTERS_MAX = 4096
BATCH = 200
#: Transactions may become visible in another order than their time stamps.
OVERLAP = timedelta(seconds=5)

NOT_UNDERSTOOD, NOT_SIGNED_IN, NOT_ALLOWED, NOT_FOUND = 4400, 4401, 4403, 4404


class _Gone(Exception):
    """The browser has left; there is nobody to tell."""


class _Close(Exception):
    """The connection is to end, with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Live(AsyncWebsocketConsumer):
    """What both websockets share: who may listen, the doorbell, pings, one task that does the sending."""

    group: str = ""

    async def connect(self) -> None:
        publish.bind_loop(asyncio.get_running_loop())
        self.bell = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        # Accepted before it is closed: a refused handshake would keep the close code from the page.
        await self.accept()
        if (code := await self.refusal()) is not None:
            await self.close(code)
            return
        await self.channel_layer.group_add(self.group, self.channel_name)
        self.task = asyncio.create_task(self._run())

    async def disconnect(self, code: int) -> None:
        if self.group and self.task is not None:
            await self.channel_layer.group_discard(self.group, self.channel_name)
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.task

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        try:
            if text_data is None or len(text_data) > FRAME_CHARACTERS_MAX:
                raise ValueError("not a frame")
            frame = client_frames.validate_json(text_data)
        except (ValidationError, ValueError):
            await self.close(NOT_UNDERSTOOD)
            return
        match frame:
            case PingFrame():
                await self.send_frame(PongFrame())
            case HelloFrame():
                await self.hello(frame)
            case PongFrame():
                pass

    async def hello(self, frame: HelloFrame) -> None:
        """The client says where it stands."""

    async def refusal(self) -> int | None:
        """The close code for one who may not listen (any more); None for one who may."""
        raise NotImplementedError

    async def denied(self, user: User, thing: Owned) -> int | None:
        """The close code for one who sees this and may not listen, as by a token without the scope."""
        try:
            await database_sync_to_async(require)(user, "run.view", thing)
        except Denied as error:
            await database_sync_to_async(error.record)()
            return NOT_ALLOWED
        except Http404:
            return NOT_FOUND
        return None

    async def step(self) -> None:
        """Sends what there is to send."""
        raise NotImplementedError

    async def send_frame(
        self, frame: PingFrame | PongFrame | LiveFrame | ResetFrame | DeltaFrame | RunFrame | ChangedFrame
    ) -> None:
        await self.say(frame.model_dump_json())

    async def say(self, text: str) -> None:
        """Raises _Gone when the browser has left: a server tells it by an OSError of its own."""
        try:
            await self.send(text)
        except OSError as error:
            raise _Gone from error

    async def _run(self) -> None:
        try:
            await self._loop()
        except _Close as close:
            await self.close(close.code)
        except _Gone:
            pass
        except Exception:
            logger.exception("websocket %s failed", self.group)
            await self.close(1011)

    async def _loop(self) -> None:
        pinged = checked = time.monotonic()
        while True:
            self.bell.clear()
            await self.step()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.bell.wait(), POLL_SECONDS)
            now = time.monotonic()
            if now - pinged >= PING_SECONDS:
                pinged = now
                await self.send_frame(PingFrame())
            if now - checked >= ACCESS_SECONDS:
                checked = now
                self.scope["user"] = await self._user_now()
                if (code := await self.refusal()) is not None:
                    raise _Close(code)

    async def _user_now(self) -> User | AnonymousUser:
        """Who is signed in by the token or session as it is now; the scope's was read at the handshake."""
        if (bearer := self.scope.get("bearer")) is not None:
            return await database_sync_to_async(token_user)(bearer) or AnonymousUser()
        store = import_module(settings.SESSION_ENGINE).SessionStore
        user: User | AnonymousUser = await get_user({"session": store(self.scope["session"].session_key)})
        return user


class RunConsumer(Live):
    """`/ws/runs/{id}`: one run, every event in order."""

    async def connect(self) -> None:
        self.run_id: UUID = self.scope["url_route"]["kwargs"]["run_id"]
        self.group = publish.run_group(self.run_id)
        self.asked: int | None = None  # a hello not yet acted on
        self.sent: int | None = None  # the client has everything up to here; None before its hello
        self.live = False
        self.connected_at = time.monotonic()
        await super().connect()

    async def refusal(self) -> int | None:
        user = self.scope["user"]
        if not user.is_authenticated:
            return NOT_SIGNED_IN
        run = await database_sync_to_async(runs_visible_to(user).filter(pk=self.run_id).first)()
        return NOT_FOUND if run is None else await self.denied(user, run)

    async def hello(self, frame: HelloFrame) -> None:
        self.asked = frame.after_seq
        self.bell.set()

    async def step(self) -> None:
        if self.asked is not None:
            await self._start()
        if self.sent is None:
            if time.monotonic() - self.connected_at > HELLO_SECONDS:
                raise _Close(NOT_UNDERSTOOD)
            return
        while records := await database_sync_to_async(events_after)(self.run_id, self.sent, BATCH):
            self.live = False
            for record in records:
                await self.say(json.dumps(event_frame(record)))
                self.sent = record.seq
        if not self.live:
            self.live = True
            await self.send_frame(LiveFrame(seq=self.sent))

    async def _start(self) -> None:
        """Goes to where the client says it is; asks for another hello when the run was never that far."""
        after_seq, self.asked = self.asked, None
        last_seqs = AgentRun.objects.filter(pk=self.run_id).values_list("last_seq", flat=True)
        last_seq = await database_sync_to_async(last_seqs.first)()
        self.live = False
        if last_seq is not None and after_seq is not None and after_seq > last_seq:
            self.sent, self.connected_at = None, time.monotonic()
            await self.send_frame(ResetFrame())
        else:
            self.sent = after_seq

    async def run_reached(self, message: dict[str, Any]) -> None:
        self.bell.set()

    async def run_delta(self, message: dict[str, Any]) -> None:
        # Before the client is live, text would arrive ahead of the turn it belongs to.
        if self.live:
            await self.send_frame(DeltaFrame(event=TextDelta.model_validate(message["event"])))

    async def run_deleted(self, message: dict[str, Any]) -> None:
        await self.close(NOT_FOUND)


class RunsConsumer(Live):
    """`/ws/runs`: a workspace's runs as they change. What was before the connection comes by `GET runs`."""

    async def connect(self) -> None:
        self.user_id: int | None = getattr(self.scope["user"], "pk", None)
        asked = parse_qs(self.scope["query_string"].decode("latin-1")).get("workspace")
        self.workspace = await database_sync_to_async(self._workspace)(asked[0] if asked else None)
        self.group = publish.runs_group(self.workspace.pk if self.workspace else 0)
        self.seen: datetime = timezone.now()
        self.told: dict[UUID, datetime] = {}
        await super().connect()

    async def refusal(self) -> int | None:
        user = self.scope["user"]
        if not user.is_authenticated or user.pk != self.user_id:
            return NOT_SIGNED_IN
        if self.workspace is None:
            return NOT_FOUND
        visible = workspaces_visible_to(user).filter(pk=self.workspace.pk)
        if not await database_sync_to_async(visible.exists)():
            return NOT_FOUND
        return await self.denied(user, self.workspace)

    def _workspace(self, slug: str | None) -> Workspace | None:
        try:
            return workspace_visible_to(self.scope["user"], slug)
        except Http404:
            return None

    async def step(self) -> None:
        for run, frame in await database_sync_to_async(self._changed)():
            await self.send_frame(frame)
            self.told[run.pk] = run.changed_at
        self.told = {run_id: at for run_id, at in self.told.items() if at > self.seen - OVERLAP}

    def _changed(self) -> list[tuple[AgentRun, RunFrame]]:
        assert self.workspace is not None
        recent = runs_listed(self.scope["user"], self.workspace).filter(changed_at__gt=self.seen - OVERLAP)
        runs = [
            run for run in recent.order_by("changed_at")[:BATCH] if self.told.get(run.pk) != run.changed_at
        ]
        if runs:
            self.seen = max(self.seen, runs[-1].changed_at)
        return [(run, RunFrame(run=summary)) for run, summary in zip(runs, run_summaries(runs), strict=True)]

    async def run_changed(self, message: dict[str, Any]) -> None:
        self.bell.set()

"""The frames of the websockets `/ws/runs/{id}` and `/ws/runs`, both ways.

`/ws/runs/{id}`: the client says hello with the last number it has; the server answers with everything after
it, in order, then `live`; after that, events as they are stored, `live` again when caught up.
`/ws/runs?workspace=slug`: no hello; a `run` frame whenever a run of the workspace (without one: the user's
own) is new or has changed.
`/ws/reviews/{id}`: no hello; a `changed` frame with the request's version at first and whenever it changes.

Close codes: 4400 not understood, 4401 not signed in, 4403 not allowed, 4404 no such run or
workspace (deleted, or not for this user). A handshake from a foreign origin is refused.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from agent.events import Event, TextDelta
from sandbox.types import Data
from webapp.live.resources import RunSummary


class HelloFrame(Data):
    type: Literal["hello"] = "hello"
    after_seq: int = Field(default=0, ge=0)


class PingFrame(Data):
    type: Literal["ping"] = "ping"


class PongFrame(Data):
    type: Literal["pong"] = "pong"


class EventFrame(Data):
    type: Literal["event"] = "event"
    seq: int
    at: datetime
    event: Event = Field(discriminator="type")


class DeltaFrame(Data):
    """Text as it is written: not stored, not numbered, lost when nobody listens."""

    type: Literal["delta"] = "delta"
    event: TextDelta


class LiveFrame(Data):
    """Everything up to `seq` has been sent."""

    type: Literal["live"] = "live"
    seq: int


class ResetFrame(Data):
    """The client's number is ahead of the run's: forget everything and say hello from 0."""

    type: Literal["reset"] = "reset"


class RunFrame(Data):
    """A run of the workspace is new or has changed (`/ws/runs`)."""

    type: Literal["run"] = "run"
    run: RunSummary


class ChangedFrame(Data):
    """A review request has changed (`/ws/reviews/{id}`): get it again. Sent first for how it stands."""

    type: Literal["changed"] = "changed"
    version: int


ClientFrame = HelloFrame | PingFrame | PongFrame
ServerFrame = (
    EventFrame | DeltaFrame | LiveFrame | ResetFrame | RunFrame | ChangedFrame | PingFrame | PongFrame
)

client_frames: TypeAdapter[ClientFrame] = TypeAdapter(Annotated[ClientFrame, Field(discriminator="type")])
server_frames: TypeAdapter[ServerFrame] = TypeAdapter(Annotated[ServerFrame, Field(discriminator="type")])

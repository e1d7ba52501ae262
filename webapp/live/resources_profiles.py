"""What REST answers and accepts of agent profiles."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from agent.search.options import Strategy
from sandbox.types import Data
from webapp.live.resources import ProtocolChoice


class ProfileSkill(Data):
    """A page of the workspace's own, shown to the model as Kernelwright's own pages are."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")
    description: str = Field(min_length=1, max_length=200)  # when to read it, one line
    families: list[str] = Field(default_factory=list, max_length=8)  # metric families it cures; none: always
    text: str = Field(min_length=1, max_length=8000)  # Markdown


class ProfileSettings(Data):
    """What `PUT workspaces/{slug}/profiles/{name}` takes: each change is a new version."""

    description: str = Field(default="", max_length=500)
    model: str | None = None  # a name from `GET models`; absent: the server's default when a run starts
    protocol: ProtocolChoice = "auto"
    tools: list[str] | None = None  # of the protocol tools; absent: all
    skills: list[ProfileSkill] = Field(default_factory=list, max_length=12)
    strategy: Strategy = "single"
    samples: int = Field(default=4, ge=1, le=64)  # of the strategies with several samples
    turns: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None


class ProfileVersion(ProfileSettings):
    """One version, as it was made; it never changes."""

    name: str
    workspace: str
    version: int
    created_by: str
    created_at: datetime


class ProfileDetail(ProfileVersion):
    """The newest version, and which there are."""

    versions: list[int]


class ProfileList(Data):
    results: list[ProfileVersion]

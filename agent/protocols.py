"""Who chooses and who answers: the policy and the environment, as the loop sees them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from agent.events import Event
from agent.trajectory import Trajectory
from sandbox.tasks.base import TaskSpec
from sandbox.types import Compilation, Evaluation


@dataclass(frozen=True)
class Submit:
    """Judge this candidate. `title` names what the turn tries; `base_turn` is where it started from."""

    source: str
    title: str
    base_turn: int | None = None


@dataclass(frozen=True)
class Finish:
    """Nothing left to try."""

    reason: str


@dataclass(frozen=True)
class Keep:
    """The program is better left sequential: it has nothing that could run in parallel, or too little."""

    reason: str


@dataclass(frozen=True)
class Unusable:
    """The policy had its turn and wrote no candidate; `why` is told to it and to the reader."""

    why: str
    title: str
    base_turn: int | None = None


Action = Submit | Finish | Keep | Unusable


class Policy(Protocol):
    """Chooses the next action from the trajectory so far."""

    name: str

    def act(self, trajectory: Trajectory) -> Generator[Event, None, Action]:
        """Yields what can be told meanwhile, and returns the action.

        A policy that takes its time yields `turn_started` first; for others the loop does, from the action.
        Raises TaskProblem when it cannot translate the task (construct, line, why), and RunEnds.
        """

    def reflect(self, trajectory: Trajectory) -> str:
        """After a judged turn: what was measured, and what it means for the next step."""


class Environment(Protocol):
    """Answers actions: judges candidates for one task."""

    @property
    def spec(self) -> TaskSpec: ...

    backend: str
    target: str

    def step(self, turn: int, source: str) -> Generator[Event, None, Evaluation]:
        """Yields log, stage, compiled, verified, measured, timed; returns the evaluation."""

    def compile(self, turn: int, source: str) -> Generator[Event, None, tuple[bool, Compilation]]:
        """Compiles only, which is quicker. Yields log and stage; returns whether nvcc took it."""

    def reference_times(self, turn: int) -> Generator[Event, None, dict[str, float]]:
        """Median microseconds of the reference on this machine, by how it was built. Yields stage."""


class Translator(Protocol):
    """What the built-in policy asks of a translator: one per kind of task (C, PyTorch)."""

    def first(self) -> Draft:
        """The direct version. Raises TaskProblem naming construct, line and why."""

    def moves(self, draft: Draft, evaluation: Evaluation) -> Iterator[Move]:
        """Improvements of `draft`, best first, each argued from the metrics measured in `evaluation`."""

    def variants(self, draft: Draft) -> Iterator[Variant]:
        """`draft` with each improvement left out, and spoiled in every way that applies."""


@dataclass(frozen=True)
class Draft:
    """One version of the kernel: its CUDA source and the choices that made it."""

    source: str
    schedule: object  # the translator's own frozen, hashable choices; equal schedules give equal sources
    sequential: str = ""  # why all of it is one thread's work; empty where something runs in parallel


@dataclass(frozen=True)
class Move:
    """One improvement: what it makes, its title, and the measured reason."""

    draft: Draft
    title: str  # "Tile through shared memory"
    reason: str  # "Line 14 loads 32 sectors per request (4 would do): consecutive threads are a row apart."


@dataclass(frozen=True)
class Variant:
    """A version worse than it could be, on purpose and still right: data to learn from."""

    draft: Draft
    kind: Literal["without", "spoiled"]  # an improvement left out; something made worse
    change: str  # stable slug: "tile", "useless_barriers"
    says: str  # the same in words

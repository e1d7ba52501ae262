"""What a function becomes: kernels of three kinds, and the host code between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.translator.c.reductions import Reduction
from agent.translator.c.syntax import ArrayDecl, Assign, Body, Expr, For, Swap, Var, While


@dataclass(frozen=True)
class Guard:
    """The stage runs only while this device-side flag has this truth."""

    flag: Var
    holds: bool


@dataclass(frozen=True)
class MapStage:
    """One thread for each point of `dims` (loop headers, outermost first; their bodies are not looked at)."""

    name: str
    dims: tuple[For, ...]
    body: Body
    atomics: frozenset[str] = frozenset()  # arrays whose updates may meet
    live: frozenset[str] = frozenset()  # scalars that matter afterwards
    guards: tuple[Guard, ...] = ()
    line: int = 0
    exact: bool = False  # a rounding may decide how the code goes on


@dataclass(frozen=True)
class ReduceStage:
    """All points of `dims` accumulated into scalars; `before` and `after` run once, around the result."""

    name: str
    dims: tuple[For, ...]
    body: Body
    reductions: tuple[Reduction, ...]
    atomics: frozenset[str] = frozenset()
    before: Body = ()
    after: Body = ()
    live: frozenset[str] = frozenset()
    guards: tuple[Guard, ...] = ()
    line: int = 0
    exact: bool = False


@dataclass(frozen=True)
class SerialStage:
    """One thread."""

    name: str
    body: Body
    why: tuple[str, ...] = ()  # what keeps its loops from running in parallel
    live: frozenset[str] = frozenset()
    guards: tuple[Guard, ...] = ()
    line: int = 0

    @property
    def exact(self) -> bool:
        return True


@dataclass(frozen=True)
class Scratch:
    """Device memory for a local array, until the end of `launch`."""

    array: ArrayDecl


@dataclass(frozen=True)
class HostAssign:
    assign: Assign


@dataclass(frozen=True)
class HostIf:
    test: Expr
    then: tuple[Stage, ...]
    other: tuple[Stage, ...]
    note: str = ""


@dataclass(frozen=True)
class HostLoop:
    """A loop whose iterations launch kernels."""

    header: For | While
    body: tuple[Stage, ...]


@dataclass(frozen=True)
class HostBreak:
    pass


@dataclass(frozen=True)
class HostSwap:
    swap: Swap


Kernel = MapStage | ReduceStage | SerialStage
Stage = Kernel | Scratch | HostAssign | HostIf | HostLoop | HostBreak | HostSwap


@dataclass
class Plan:
    """A function's stages, and where its scalars live."""

    stages: tuple[Stage, ...]
    host: frozenset[str]  # scalars of host code
    device: dict[str, Var]  # scalars that pass between kernels, in device memory
    types: dict[str, Var]  # every scalar
    notes: list[str] = field(default_factory=list)


def kernels(stages: tuple[Stage, ...]) -> list[Kernel]:
    """Every kernel, in order."""
    found: list[Kernel] = []
    for stage in stages:
        match stage:
            case MapStage() | ReduceStage() | SerialStage():
                found.append(stage)
            case HostIf():
                found += kernels(stage.then) + kernels(stage.other)
            case HostLoop():
                found += kernels(stage.body)
            case _:
                pass
    return found

"""What a stage runs, as one piece of code, and which scalars are its own."""

from __future__ import annotations

from dataclasses import replace

from agent.translator.c.stages import (
    Guard,
    HostIf,
    HostLoop,
    MapStage,
    ReduceStage,
    SerialStage,
    Stage,
)
from agent.translator.c.syntax import (
    Body,
    Decl,
    For,
    walk_statements,
)


def guarded(stage: Stage, guard: Guard) -> Stage:
    match stage:
        case MapStage() | ReduceStage() | SerialStage():
            return replace(stage, guards=(guard, *stage.guards))
        case HostLoop():
            return replace(stage, body=tuple(guarded(s, guard) for s in stage.body))
        case HostIf():
            return replace(
                stage,
                then=tuple(guarded(s, guard) for s in stage.then),
                other=tuple(guarded(s, guard) for s in stage.other),
            )
        case _:
            return stage


def whole_body(stage: MapStage | ReduceStage | SerialStage) -> Body:
    """Everything a kernel runs, in order."""
    match stage:
        case ReduceStage():
            loop: Body = stage.body
            for dim in reversed(stage.dims):
                loop = (replace(dim, body=loop),)
            return (*stage.before, *loop, *stage.after)
        case MapStage():
            loop = stage.body
            for dim in reversed(stage.dims):
                loop = (replace(dim, body=loop),)
            return loop
        case _:
            return stage.body


def own_names(stage: MapStage | ReduceStage | SerialStage) -> frozenset[str]:
    """Scalars that are the kernel's alone: declared in it, or loop variables nobody else sees."""
    body = whole_body(stage)
    dims = set() if isinstance(stage, SerialStage) else {d.var.name for d in stage.dims}
    return frozenset(declared_names(body) | dims)


def declared_names(body: Body) -> set[str]:
    names = {s.name for s in walk_statements(body) if isinstance(s, Decl)}
    return names | {s.var.name for s in walk_statements(body) if isinstance(s, For) and s.own}

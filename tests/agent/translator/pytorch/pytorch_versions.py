"""The source of one schedule, without going through the moves that lead to it."""

from __future__ import annotations

from agent.translator.pytorch.lower import lower
from agent.translator.pytorch.plan import plan
from agent.translator.pytorch.schedule import Schedule
from agent.translator.pytorch.source import write_source
from sandbox.tasks.base import TaskSpec
from sandbox.tasks.pytorch.graph import Graph


def source(spec: TaskSpec, schedule: Schedule) -> str:
    graph = Graph.model_validate(spec.graph)
    made = plan(lower(graph, split=schedule.split), fuse=schedule.fuse)
    return write_source(spec, made, schedule, {n.name: n.line for n in graph.nodes})

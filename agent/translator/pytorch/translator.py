"""The built-in translator for PyTorch modules: a direct version, then moves argued from what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from agent.protocols import Draft, Move, Variant
from agent.translator.pytorch.lower import lower
from agent.translator.pytorch.moves import propose
from agent.translator.pytorch.plan import CannotPlan, Plan, plan
from agent.translator.pytorch.schedule import Schedule
from agent.translator.pytorch.source import write_source
from sandbox.errors import TaskProblem
from sandbox.tasks.base import TaskSpec
from sandbox.tasks.pytorch.graph import Graph
from sandbox.types import Evaluation, Problem


class PyTorchTranslator:
    """Implements `agent.protocols.Translator`. Works on `spec.graph`, never on torch."""

    def __init__(self, spec: TaskSpec) -> None:
        if spec.graph is None:
            raise TaskProblem(Problem(kind="no_graph", message="the task carries no traced graph"))
        self._spec = spec
        self._graph = Graph.model_validate(spec.graph)
        self._lines = {node.name: node.line for node in self._graph.nodes}

    def first(self) -> Draft:
        """Raises TaskProblem("unsupported_construct") naming the op and its line."""
        return self._draft(Schedule())

    def moves(self, draft: Draft, evaluation: Evaluation) -> Iterator[Move]:
        schedule = draft.schedule
        assert isinstance(schedule, Schedule)
        for proposal in propose(self._plan(schedule), self._fused(schedule), schedule, evaluation):
            made = self._draft(proposal.schedule)
            if made.source != draft.source:
                yield Move(made, proposal.title, proposal.reason)

    def variants(self, draft: Draft) -> Iterator[Variant]:
        """Improvements left out; this translator has nothing of its own to spoil yet."""
        schedule = draft.schedule
        assert isinstance(schedule, Schedule)
        direct = Schedule()
        for field in fields(Schedule):
            plain = getattr(direct, field.name)
            if getattr(schedule, field.name) != plain:
                says = f"without the choice of `{field.name}`"
                yield Variant(
                    self._draft(replace(schedule, **{field.name: plain})), "without", field.name, says
                )

    def _draft(self, schedule: Schedule) -> Draft:
        source = write_source(self._spec, self._plan(schedule), schedule, self._lines)
        return Draft(source, schedule)

    def _plan(self, schedule: Schedule) -> Plan:
        return plan(lower(self._graph, split=schedule.split), fuse=schedule.fuse)

    def _fused(self, schedule: Schedule) -> Plan | None:
        """None where fusing would make kernels wait for each other."""
        try:
            return self._plan(replace(schedule, fuse=True))
        except CannotPlan:
            return None

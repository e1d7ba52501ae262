"""The translator of C tasks: the direct version and, from measured numbers, improvements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent.protocols import Draft, Move, Variant
from agent.translator.c.analysis import CARRIES
from agent.translator.c.frontend import RESERVED, read_function
from agent.translator.c.kernels import Context
from agent.translator.c.passes.catalogue import offers
from agent.translator.c.passes.measured import Offer, measured_kernels
from agent.translator.c.passes.spoiled import WITHOUT, spoilt, without
from agent.translator.c.planner import plan
from agent.translator.c.program import emit_program
from agent.translator.c.renaming import function_of, rename_parameters, renamed_text
from agent.translator.c.schedules import Choice, Schedule
from agent.translator.c.scope import Unit
from agent.translator.c.stages import SerialStage, kernels
from sandbox.cancellation import Cancellation
from sandbox.tasks.base import TaskSpec
from sandbox.types import Evaluation


class CTranslator:
    """Translates `spec`. Reading and analysing happen once, at the first call of `first`."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self._context: Context | None = None
        self._renamed: dict[str, str] = {}

    @property
    def context(self) -> Context:
        """Raises TaskProblem naming construct, line and why."""
        if self._context is None:
            tree = _parse(self.spec)
            renamed = self._renamed = rename_parameters(function_of(tree, self.spec.name), RESERVED)
            self._context = read(tree, self.spec.name, self._result_name())
            self._context.extents.update(
                {
                    renamed.get(p.name, p.name): renamed_text(p.extent, renamed)
                    for p in self.spec.parameters
                    if p.kind == "array" and p.extent
                }
            )
        return self._context

    def _result_name(self) -> str | None:
        return next((p.name for p in self.spec.parameters if p.role == "result"), None)

    @property
    def notes(self) -> list[str]:
        """What keeps parts of the program from running in parallel, for the reflection."""
        return list(dict.fromkeys(self.context.plan.notes))

    def first(self) -> Draft:
        schedule = Schedule(tuple(Choice() for _ in kernels(self.context.plan.stages)))
        return self.draft(schedule)

    def draft(self, schedule: Schedule) -> Draft:
        context = self.context  # reading it is what fills in the new names
        prototype = renamed_text(self.spec.prototype, self._renamed)
        return Draft(emit_program(context, schedule, prototype), schedule, self._sequential())

    def _sequential(self) -> str:
        """Where every iteration needs the one before; empty where something runs in parallel, and where the
        reason may be what this translator cannot read."""
        found = kernels(self.context.plan.stages)
        if not all(isinstance(stage, SerialStage) for stage in found):
            return ""
        reasons = [why for stage in found if isinstance(stage, SerialStage) for why in stage.why]
        return next(iter(reasons), "") if all(CARRIES in why for why in reasons) else ""

    def moves(self, draft: Draft, evaluation: Evaluation) -> Iterator[Move]:
        """Best first. What a move promises is a guess; what it argues with was measured."""
        if not isinstance(draft.schedule, Schedule):
            return
        measured = measured_kernels(evaluation)
        found: list[tuple[float, int, Offer]] = []
        for position, stage in enumerate(kernels(self.context.plan.stages)):
            numbers = measured.get(stage.name)
            if numbers is None:
                continue
            choice = draft.schedule.choices[position]
            finish = measured.get(f"{stage.name}_finish")
            made = offers(self.context, stage, choice, numbers, finish)
            found += [(offer.gain * numbers.share, position, offer) for offer in made]
        found.sort(key=lambda each: -each[0])
        yield from self._together(draft.schedule, found)
        for _, position, offer in found:
            yield self._move(draft.schedule.change(position, offer.choice), offer)

    def variants(self, draft: Draft) -> Iterator[Variant]:
        if not isinstance(draft.schedule, Schedule):
            return
        for name, schedule in without(draft.schedule):
            yield Variant(self.draft(schedule), "without", name, WITHOUT[name])
        for slug, says, schedule in spoilt(self.context, kernels(self.context.plan.stages), draft.schedule):
            yield Variant(self.draft(schedule), "spoiled", slug, says)

    def _together(self, schedule: Schedule, found: list[tuple[float, int, Offer]]) -> Iterator[Move]:
        """The same step for several kernels at once, ahead of everything that promises less."""
        titles = [offer.title for _, _, offer in found]
        best = found[0][2].title if found else ""
        if titles.count(best) < 2:
            return
        changed: set[int] = set()
        for _, position, offer in found:
            if offer.title == best and position not in changed:
                schedule = schedule.change(position, offer.choice)
                changed.add(position)
        if len(changed) > 1:
            yield self._move(schedule, found[0][2])

    def _move(self, schedule: Schedule, offer: Offer) -> Move:
        return Move(self.draft(schedule), offer.title, offer.reason)


def read(tree: Any, name: str, result: str | None) -> Context:
    """Reads and plans one function of a parsed file."""
    function = read_function(Unit.of(tree), name, result or "result")
    return Context.of(function, plan(function), function.body)


def _parse(spec: TaskSpec) -> Any:
    from sandbox.tasks.c.parse import parse

    return parse(spec.source, filename=f"{spec.name}.c", cancel=Cancellation()).tree

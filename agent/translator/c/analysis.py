"""What keeps the iterations of one loop apart: scalars that are carried, arrays in which they meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.translator.c.accesses import collect
from agent.translator.c.dataflow import arrays_declared, arrays_read, flow, scalars_declared
from agent.translator.c.dependence import Conflict, conflicts, key_of
from agent.translator.c.normalise import ends_early
from agent.translator.c.reductions import Reduction, find_reduction
from agent.translator.c.syntax import (
    Assign,
    Expr,
    For,
    Load,
    Pointer,
    Swap,
    Var,
    constant,
    expressions,
    walk,
    walk_statements,
)
from agent.translator.c.types import Scalar
from sandbox.tasks.c.polynomial import Polynomial

Dims = Mapping[str, tuple[Expr | None, ...]]

#: How a blocker says that each iteration needs the one before; others may be the translator's own limits.
CARRIES = "carries a value from one iteration of"


@dataclass(frozen=True)
class LoopAnalysis:
    """What was found out about a loop. It may run in parallel when `blockers` is empty."""

    loop: For
    reductions: tuple[Reduction, ...] = ()
    atomics: frozenset[str] = frozenset()
    blockers: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    carried: tuple[str, ...] = ()  # scalars that block
    assumed: frozenset[Polynomial] = frozenset()  # to be positive, checked by the host

    @property
    def parallel(self) -> bool:
        return not self.blockers


class LoopAnalyser:
    """Looks at the loops of one function."""

    def __init__(self, dims: Dims, types: Mapping[str, Scalar], same_memory: Mapping[str, frozenset[str]]):
        self.dims = dims
        self.types = types
        self.same_memory = same_memory
        self.around: tuple[For, ...] = ()  # host loops around what is looked at

    def analyse(self, loop: For, live_after: frozenset[str]) -> LoopAnalysis:
        reductions, carried = self.scalars(loop, live_after)
        blockers = [
            f"line {self._line_of(name, loop)}: `{name}` {CARRIES} `{loop.var.name}` to the next"
            for name in carried
        ]
        swaps = [s for s in walk_statements(loop.body) if isinstance(s, Swap)]
        for swap in swaps:
            carried.append(swap.left)
            blockers.append(f"line {swap.line}: `{swap.left}` and `{swap.right}` change places")
        if ends_early(loop):
            blockers.append(f"line {loop.line}: the loop over `{loop.var.name}` may end early")
        accesses = collect((loop,), self.dims, self.around)
        key = key_of(accesses, loop)
        assumed: set[Polynomial] = set()
        met = conflicts(accesses, key, frozenset(), self.dims, self.same_memory)
        if met:
            again: set[Polynomial] = set()
            if not conflicts(accesses, key, frozenset(), self.dims, self.same_memory, again):
                met, assumed = [], again
        atomics: set[str] = set()
        for conflict in met:
            array = conflict.first.array
            if array in atomics or self.same_value(array, loop):
                continue
            if self._atomic(array, loop):
                atomics.add(array)
            else:
                blockers.append(
                    f"line {conflict.first.line}: iterations of `{loop.var.name}` may meet in `{array}`"
                    + (
                        f" (with line {conflict.second.line})"
                        if conflict.second.line != conflict.first.line
                        else ""
                    )
                )
        return LoopAnalysis(
            loop,
            tuple(reductions),
            frozenset(atomics),
            tuple(dict.fromkeys(blockers)),
            tuple(met),
            tuple(carried),
            frozenset(assumed),
        )

    def _line_of(self, name: str, loop: For) -> int:
        for stmt in walk_statements(loop.body):
            if isinstance(stmt, Assign) and isinstance(stmt.target, Var) and stmt.target.name == name:
                return stmt.line
        return loop.line

    def scalars(self, loop: For, live_after: frozenset[str]) -> tuple[list[Reduction], list[str]]:
        """(reductions, scalars that are carried otherwise)."""
        total = flow(loop.body)
        declared = set(scalars_declared(loop.body))
        open_names = sorted(
            n
            for n in total.written
            if n not in declared and n != loop.var.name and (n in total.exposed or n in live_after)
        )
        open_names += sorted(
            s.var.name
            for s in walk_statements(loop.body)
            if isinstance(s, For) and not s.own and s.var.name in live_after and s.var.name not in open_names
        )
        found: list[Reduction] = []
        carried: list[str] = []
        for name in open_names:
            reduction = find_reduction(name, loop, live_after)
            if reduction is None:
                carried.append(name)
            else:
                found.append(reduction)
        companions = {r.companion.name for r in found if r.companion is not None}
        kept = [r for r in found if r.var.name not in companions]
        if loop.down and any(r.companion for r in kept):
            return [], open_names
        return kept, [n for n in carried if n not in companions]

    def _atomic(self, array: str, loop: For) -> bool:
        """Whether every access is the same commutative update, of a type that has one."""
        ops: set[str] = set()
        kind: Scalar | None = None
        for stmt in walk_statements(loop.body):
            for expr in expressions(stmt):
                own = stmt.target if isinstance(stmt, Assign) and stmt.op else None
                for node in walk(expr):
                    if isinstance(node, Load | Pointer) and node.array == array and node is not own:
                        return False
            if isinstance(stmt, Assign) and isinstance(stmt.target, Load) and stmt.target.array == array:
                if not stmt.op or (stmt.target.type.is_integer and stmt.value.type.is_float):
                    return False
                ops.add("+" if stmt.op == "-" else stmt.op)
                kind = stmt.target.type
        if len(ops) != 1 or kind is None or array in arrays_declared(loop.body):
            return False
        return can_be_atomic(ops.pop(), kind)

    def same_value(self, array: str, loop: For) -> bool:
        """Whether every access stores one and the same constant."""
        values: set[Expr] = set()
        for stmt in walk_statements(loop.body):
            if array in arrays_read(expressions(stmt)):
                return False
            if isinstance(stmt, Assign) and isinstance(stmt.target, Load) and stmt.target.array == array:
                values.add(stmt.value)
        return len(values) == 1 and constant(values.pop()) is not None


def can_be_atomic(op: str, kind: Scalar) -> bool:
    if op == "+":
        return kind.is_float or kind.size in (4, 8)
    return op in ("&", "|", "^") and kind.is_integer and kind.size in (4, 8)

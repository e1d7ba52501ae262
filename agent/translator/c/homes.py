"""Where scalars live: on the host, or on the device between kernels."""

from __future__ import annotations

from agent.translator.c.analysis import LoopAnalyser
from agent.translator.c.dataflow import (
    addresses,
    flow,
)
from agent.translator.c.frontend import Function
from agent.translator.c.library import CLASSIFIERS, FUNCTIONS
from agent.translator.c.stage_code import own_names, whole_body
from agent.translator.c.stages import (
    Stage,
    kernels,
)
from agent.translator.c.syntax import (
    AddressOf,
    ArrayDecl,
    Assign,
    Body,
    Call,
    Decl,
    Expr,
    For,
    If,
    Load,
    Pointer,
    Switch,
    Var,
    While,
    contains_loop,
    expressions,
    walk,
    walk_statements,
)


class Homes:
    """The part of planning that knows of every scalar whether host code can compute it."""

    def __init__(self, function: Function, body: Body, forced: set[str], taken: set[str]):
        self.function = function
        self.body = body
        self.taken = taken
        self.kernel_names: set[str] = set()
        self.notes: list[str] = []
        self.types: dict[str, Var] = {v.name: v for v in function.scalars}
        dims = {a.name: a.dims for a in function.arrays.values()} | {
            t.array.name: t.array.dims for t in function.tables
        }
        for stmt in walk_statements(body):
            if isinstance(stmt, Decl):
                self.types[stmt.name] = Var(stmt.name, stmt.type)
            elif isinstance(stmt, For):
                self.types.setdefault(stmt.var.name, stmt.var)
            elif isinstance(stmt, ArrayDecl):
                dims[stmt.name] = stmt.dims
        self.loops = LoopAnalyser(dims, {n: v.type for n, v in self.types.items()}, self._aliases())
        self.device_names = self._device(forced)

    def _aliases(self) -> dict[str, frozenset[str]]:
        """A swapped pointer may stand for any array that the swaps exchange, but for no other pointer's."""
        bases = frozenset(self.function.aliases.values())
        related: dict[str, frozenset[str]] = {}
        for name in self.function.aliases:
            related[name] = bases
            for base in bases:
                related[base] = related.get(base, frozenset()) | {name}
        return related

    # Where scalars live
    def _device(self, forced: set[str]) -> frozenset[str]:
        device = set(forced)
        while True:
            before = len(device)
            self._spread(self.body, False, device)
            if len(device) == before:
                return frozenset(device)

    def _spread(self, body: Body, controlled: bool, device: set[str]) -> None:
        for stmt in body:
            computed = isinstance(stmt, Assign) and (controlled or not self.on_host(stmt.value, device))
            if computed and isinstance(stmt, Assign) and isinstance(stmt.target, Var):
                device.add(stmt.target.name)
            device |= addresses(expressions(stmt))
            head = list(expressions(stmt)) if isinstance(stmt, If | For | While | Switch) else []
            inner = controlled or any(not self.on_host(e, device) for e in head)
            if isinstance(stmt, For) and inner:
                device.add(stmt.var.name)
            if isinstance(stmt, For):
                self._spread(stmt.body, inner or not contains_loop(stmt.body), device)
            elif isinstance(stmt, If):
                self._spread(stmt.then, inner, device)
                self._spread(stmt.other, inner, device)
            elif isinstance(stmt, While):
                inner = inner or not contains_loop(stmt.body)
                self._spread(stmt.body, inner, device)
            elif isinstance(stmt, Switch):
                for _, case in stmt.cases:
                    self._spread(case, True, device)

    def on_host(self, expr: Expr, device: set[str] | frozenset[str] | None = None) -> bool:
        """Whether host code can evaluate the expression."""
        device = self.device_names if device is None else device
        for node in walk(expr):
            if isinstance(node, Load | Pointer | AddressOf):
                return False
            if isinstance(node, Call) and node.function not in FUNCTIONS and node.function not in CLASSIFIERS:
                return False
            if isinstance(node, Var) and node.name in device:
                return False
        return True

    def _crossing(self, stages: list[Stage]) -> dict[str, Var]:
        """Scalars on the device that one kernel writes and another reads."""
        found: dict[str, Var] = {}
        for kernel in kernels(tuple(stages)):
            body = whole_body(kernel)
            total = flow(body)
            declared = own_names(kernel)
            for name in sorted((total.written | total.exposed) - declared):
                if name in self.device_names and (name in total.exposed or name in kernel.live):
                    found[name] = self.types[name]
            for guard in kernel.guards:
                found[guard.flag.name] = guard.flag
        return found

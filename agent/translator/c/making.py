"""Kernels made: what was collected becomes one, a nest becomes a map, a loop with reductions a reduction."""

from __future__ import annotations

from dataclasses import replace

from agent.translator.c.analysis import LoopAnalysis
from agent.translator.c.dataflow import arrays_used, arrays_written, flow, live_before, names_read
from agent.translator.c.homes import Homes
from agent.translator.c.loops import Nest, descend, is_tiny, without_headers
from agent.translator.c.normalise import fresh, sweep
from agent.translator.c.rounding import rounding_matters
from agent.translator.c.stage_code import own_names, whole_body
from agent.translator.c.stages import HostIf, MapStage, ReduceStage, SerialStage, Stage
from agent.translator.c.syntax import (
    Binary,
    Body,
    Decl,
    Expr,
    For,
    Stmt,
    Var,
    add,
    constant,
    contains_loop,
    number,
)
from agent.translator.c.types import INT
from sandbox.tasks.c.polynomial import Polynomial


class Demote(Exception):
    """A scalar thought to live on the host is written by a kernel: plan again with it on the device."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class KernelMaker(Homes):
    """The part of planning that appends kernels; `pending` is scalar code that waits for one to belong to."""

    def _flush(
        self, out: list[Stage], pending: list[Stmt], live: frozenset[str], why: tuple[str, ...] = ()
    ) -> None:
        body = sweep(tuple(pending), live)
        pending.clear()
        if not any(not isinstance(s, Decl) for s in body):
            return
        last = out[-1] if out else None
        if isinstance(last, ReduceStage) and not last.guards and not contains_loop(body):
            joined = replace(last, after=(*last.after, *body), live=live)
            out[-1] = joined
            self._check_home(joined)
            return
        if isinstance(last, SerialStage) and not last.guards:
            longer = replace(last, body=(*last.body, *body), live=live, why=(*last.why, *why))
            out[-1] = longer
            self._check_home(longer)
            return
        stage = SerialStage(self._kernel_name("scalar", body), body, why, live, line=_line(body))
        out.append(stage)
        self._check_home(stage)

    def _flush_readers(self, name: str, out: list[Stage], pending: list[Stmt], live: frozenset[str]) -> None:
        """Kernels read host scalars when they are launched: those that need the old value go first."""
        if name in flow(tuple(pending)).exposed:
            self._flush(out, pending, live)

    def _check_home(self, stage: MapStage | ReduceStage | SerialStage) -> None:
        """Raises Demote where a kernel computes a scalar that later host code would want."""
        body = whole_body(stage)
        own = own_names(stage)
        for name in sorted(flow(body).written - own):
            if name in stage.live and name not in self.device_names:
                raise Demote(name)

    def _kernel_name(self, role: str, body: Body) -> str:
        arrays = sorted(arrays_written(body))
        if role == "map":
            wanted = (
                f"{self.function.name}_{'_'.join(arrays[:2])}" if arrays else f"{self.function.name}_kernel"
            )
        else:
            wanted = f"{self.function.name}_{role}"
        if wanted in self.function.taken:
            wanted += "_kernel"
        name = fresh(self.kernel_names, wanted)
        return name

    def _launchable(self, loop: For) -> bool:
        """Whether the host knows how many iterations there are."""
        return all(self.on_host(e) for e in (loop.lo, loop.bound, loop.step))

    def _map(
        self,
        nest: Nest,
        analysis: LoopAnalysis,
        loop: For,
        live: frozenset[str],
        out: list[Stage],
        pending: list[Stmt],
    ) -> None:
        self._flush(out, pending, live_before((loop,), live))
        stage = MapStage(
            self._kernel_name("map", nest.body),
            nest.dims,
            nest.body,
            analysis.atomics,
            live,
            line=loop.line,
            exact=rounding_matters(self.loops, nest.body),
        )
        self._check_home(stage)
        conditions = sorted(nest.assumed | analysis.assumed, key=str)
        out.append(self._checked(stage, conditions, loop, live) if conditions else stage)

    def _checked(
        self, stage: MapStage, conditions: list[Polynomial], loop: For, live: frozenset[str]
    ) -> Stage:
        """The kernel where rows do not overlap, one thread where they do."""
        test: Expr | None = None
        for condition in conditions:
            value = _as_expression(condition, self.types)
            if constant(value) is None:
                part = Binary(">", value, number(0), INT)
                test = part if test is None else Binary("&&", test, part, INT)
        if test is None:
            return stage
        serial = SerialStage(
            self._kernel_name("overlapping", (loop,)), (loop,), ("rows overlap",), live, line=loop.line
        )
        return HostIf(test, (stage,), (serial,), "Rows that overlap are written in C's order, by one thread.")

    def _atomic_nest(self, loop: For, live: frozenset[str]) -> Nest:
        """Inner loops of the band that may run in parallel as well, updates being atomic."""
        band, _, _ = descend(loop)
        dims = [loop]
        for inner in band[1:]:
            analysis = self.loops.analyse(inner, live)
            names = names_read((inner.lo, inner.bound, inner.step))
            if not analysis.parallel or analysis.reductions or not self._launchable(inner):
                break
            if not names.isdisjoint({d.var.name for d in dims}):
                break
            dims.append(inner)
        while len(dims) > 1 and is_tiny(dims[-1]):
            dims.pop()
        return Nest(tuple(dims), without_headers(loop, dims))

    def _reduce(
        self, loop: For, analysis: LoopAnalysis, live: frozenset[str], out: list[Stage], pending: list[Stmt]
    ) -> None:
        names = {r.var.name for r in analysis.reductions} | {
            r.companion.name for r in analysis.reductions if r.companion
        }
        for name in sorted(names):
            if name not in self.device_names:
                raise Demote(name)
        band, _, _ = descend(loop)
        dims = [loop]
        for inner in band[1:] if not any(r.companion for r in analysis.reductions) else []:
            deeper = self.loops.analyse(inner, live | names)
            same = {r.var.name for r in deeper.reductions} == names and not deeper.blockers
            header = names_read((inner.lo, inner.bound, inner.step))
            if not same or not self._launchable(inner) or not header.isdisjoint({d.var.name for d in dims}):
                break
            dims.append(inner)
        body = without_headers(loop, dims)
        total = flow(tuple(pending))
        main_reads = flow(body).exposed - names
        if not main_reads.isdisjoint(total.written) or not arrays_used(body).isdisjoint(
            arrays_written(tuple(pending))
        ):
            self._flush(out, pending, live_before((loop,), live))
        if contains_loop(tuple(pending)) or not arrays_written(body).isdisjoint(arrays_used(tuple(pending))):
            self._flush(out, pending, live_before((loop,), live))
        before = tuple(pending)
        pending.clear()
        stage = ReduceStage(
            self._kernel_name("_".join(sorted(r.var.name for r in analysis.reductions)), body),
            tuple(dims),
            body,
            analysis.reductions,
            analysis.atomics,
            before,
            (),
            live,
            line=loop.line,
            exact=rounding_matters(self.loops, body),
        )
        self._check_home(stage)
        out.append(stage)


def _line(body: Body) -> int:
    return next((s.line for s in body if getattr(s, "line", 0)), 0)


def _as_expression(poly: Polynomial, types: dict[str, Var]) -> Expr:
    total: Expr = number(0)
    for monomial, factor in poly.terms:
        product: Expr = number(factor)
        for name, power in monomial:
            for _ in range(power):
                var = types.get(name, Var(name, INT))
                product = var if constant(product) == 1 else Binary("*", product, var, var.type)
        total = add(total, product)
    return total

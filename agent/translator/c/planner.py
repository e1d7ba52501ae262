"""A normalised function as stages: which loops become kernels, and what the host does between them."""

from __future__ import annotations

from dataclasses import replace

from agent.translator.c.analysis import LoopAnalysis
from agent.translator.c.dataflow import (
    arrays_used,
    arrays_written,
    flow,
    live_before,
    names_read,
)
from agent.translator.c.elements import promote_elements, sink_arrays
from agent.translator.c.exits import without_breaks
from agent.translator.c.frontend import Function
from agent.translator.c.loops import Nest, distribute, parallel_nest
from agent.translator.c.making import Demote, KernelMaker
from agent.translator.c.normalise import (
    ends_early,
    fresh,
    has_break,
    last_value,
    normalise,
    trip_count,
)
from agent.translator.c.rewrites import first_match, joined_serials, plain_scalar, reading
from agent.translator.c.stage_code import declared_names, guarded
from agent.translator.c.stages import (
    Guard,
    HostAssign,
    HostBreak,
    HostIf,
    HostLoop,
    HostSwap,
    MapStage,
    Plan,
    ReduceStage,
    Scratch,
    SerialStage,
    Stage,
    kernels,
)
from agent.translator.c.syntax import (
    ArrayDecl,
    Assign,
    Binary,
    Body,
    Break,
    Cond,
    Decl,
    For,
    If,
    SameArray,
    Stmt,
    Swap,
    Var,
    While,
    add,
    constant,
    contains_loop,
    expressions,
    map_expressions,
    number,
    substitute,
    walk,
    walk_statements,
    with_blocks,
)
from agent.translator.c.types import INT
from sandbox.errors import TaskProblem
from sandbox.types import Problem


def plan(function: Function) -> Plan:
    """Raises TaskProblem for what has no translation."""
    live: frozenset[str] = frozenset()
    body = sink_arrays(normalise(function.body, live, function.taken, frozenset(function.aliases.values())))
    forced: set[str] = set()
    while True:
        try:
            return _Planner(function, body, forced, set(function.taken)).run(live)
        except Demote as demote:
            if demote.name in forced:
                raise AssertionError(f"{demote.name} was demoted twice") from demote
            parameter = next((v for v in function.scalars if v.name == demote.name), None)
            if parameter is None:
                forced.add(demote.name)
            else:
                copy = Var(fresh(function.taken, parameter.name + "_now"), parameter.type)
                body = _renamed(body, parameter, copy)
                forced.add(copy.name)


def _renamed(body: Body, parameter: Var, copy: Var) -> Body:
    """The body on a copy of a parameter, which kernels may change."""

    def change(stmt: Stmt) -> Stmt:
        stmt = with_blocks(stmt, lambda b: tuple(change(s) for s in b))
        return replace(stmt, var=copy) if isinstance(stmt, For) and stmt.var == parameter else stmt

    changed = tuple(map_expressions(change(s), lambda e: substitute(e, {parameter.name: copy})) for s in body)
    return (Decl(copy.name, copy.type), Assign(copy, parameter), *changed)


class _Planner(KernelMaker):
    def run(self, live: frozenset[str]) -> Plan:
        stages = joined_serials(self.stages(self.body, live, in_loop=False))
        crossing = self._crossing(stages)
        host = frozenset(self.types) - self.device_names
        return Plan(tuple(stages), host, crossing, self.types, self.notes)

    # Statements
    def stages(
        self, body: Body, live_after: frozenset[str], in_loop: bool, first: list[Stmt] | None = None
    ) -> list[Stage]:
        """Stages for a list of statements, after the scalar code `first`."""
        out: list[Stage] = []
        pending: list[Stmt] = list(first or [])
        for position, stmt in enumerate(body):
            rest = body[position + 1 :]
            live = live_before(rest, live_after)
            self._statement(stmt, rest, live, in_loop, out, pending)
        self._flush(out, pending, live_after)
        return out

    def _statement(
        self,
        stmt: Stmt,
        rest: Body,
        live: frozenset[str],
        in_loop: bool,
        out: list[Stage],
        pending: list[Stmt],
    ) -> None:
        match stmt:
            case Decl():
                pass
            case ArrayDecl():
                if not all(self.on_host(d) for d in stmt.dims):
                    raise _unsupported(
                        f"the local array `{stmt.name}`: its length is computed from array elements, "
                        "so the host cannot allocate it",
                        stmt.line,
                    )
                out.append(Scratch(stmt))
            case Assign():
                if isinstance(stmt.target, Var) and stmt.target.name not in self.device_names:
                    self._flush_readers(stmt.target.name, out, pending, live | names_read((stmt.value,)))
                    out.append(HostAssign(stmt))
                else:
                    pending.append(stmt)
            case If():
                self._if(stmt, live, in_loop, out, pending)
            case For():
                self._loop(stmt, live, out, pending)
            case While():
                self._otherwise(stmt, live, out, pending)
            case Swap():
                self._flush(out, pending, live)
                out.append(HostSwap(stmt))
            case Break() if in_loop:
                self._flush(out, pending, live)
                out.append(HostBreak())
            case _:
                pending.append(stmt)

    # Conditions
    def _if(
        self, stmt: If, live: frozenset[str], in_loop: bool, out: list[Stage], pending: list[Stmt]
    ) -> None:
        host_writes = [
            s
            for s in walk_statements((stmt,))
            if isinstance(s, Assign) and isinstance(s.target, Var) and s.target.name not in self.device_names
        ]
        breaks = has_break((*stmt.then, *stmt.other)) and in_loop
        breaks = breaks or any(isinstance(n, SameArray) for n in walk(stmt.test))  # a question for the host
        has_swap = any(isinstance(s, Swap) for s in walk_statements((stmt,)))
        if not contains_loop((stmt,)) and not host_writes and not breaks and not has_swap:
            pending.append(stmt)
            return
        if self.on_host(stmt.test):
            carried: list[Stmt] = []
            if not arrays_written(tuple(pending)) and not contains_loop(tuple(pending)):
                carried, pending[:] = list(pending), []
            self._flush(out, pending, live | flow((stmt,)).exposed)
            then = self.stages(stmt.then, live, in_loop, carried)
            other = self.stages(stmt.other, live, in_loop, carried)
            out.append(HostIf(stmt.test, tuple(then), tuple(other)))
            return
        if breaks or has_swap:
            raise _Serial(f"line {stmt.line}: a condition on computed values decides how the loop goes on")
        flag = Var(fresh(self.taken, "holds"), INT)
        self.types[flag.name] = flag
        self.device_names |= {flag.name}
        pending.append(Assign(flag, stmt.test, line=stmt.line))
        both = live | {flag.name} | flow((stmt,)).exposed
        self._flush(out, pending, both)
        then = self.stages(stmt.then, both, False)
        other = self.stages(stmt.other, both, False)
        out += [guarded(s, Guard(flag, True)) for s in then]
        out += [guarded(s, Guard(flag, False)) for s in other]

    # Loops
    def _loop(self, loop: For, live: frozenset[str], out: list[Stage], pending: list[Stmt]) -> None:
        after: list[Stmt] = []
        if not loop.own and loop.var.name in live and not ends_early(loop):
            ran = Binary(loop.relation, loop.lo, loop.bound, INT)
            known = constant(ran)
            final = last_value(loop) if known != 0 else loop.lo
            after.append(Assign(loop.var, Cond(ran, final, loop.lo, loop.var.type), line=loop.line))
            live -= {loop.var.name}
        searched = first_match(loop, self.taken) if has_break(loop.body) else None
        if searched is not None and self._launchable(loop):
            for stmt in walk_statements(searched):
                if isinstance(stmt, Decl):
                    self.types[stmt.name] = Var(stmt.name, stmt.type)
                    self.device_names |= {stmt.name}
            if not loop.own and loop.var.name in live and loop.var.name not in self.device_names:
                raise Demote(loop.var.name)
            for position, stmt in enumerate(searched):
                rest = searched[position + 1 :]
                self._statement(stmt, rest, live_before(rest, live), False, out, pending)
            return
        made = self._parallel(loop, live, out, pending)
        if not made:
            self._otherwise(loop, live | ({loop.var.name} if after else frozenset()), out, pending)
            if isinstance(out[-1] if out else None, SerialStage) or pending:
                after = [] if pending and pending[-1] == loop else after
        for stmt in after:
            self._statement(stmt, (), live | {loop.var.name}, False, out, pending)

    def _parallel(self, loop: For, live: frozenset[str], out: list[Stage], pending: list[Stmt]) -> bool:
        """Appends kernels for the loop where it can run in parallel."""
        analysis = self.loops.analyse(loop, live)
        if self._launchable(loop) and analysis.parallel and not analysis.reductions and not analysis.atomics:
            pieces = distribute(loop)
            nests = [parallel_nest(self.loops, p, live) for p in pieces]
            deep = [n is not None and len(n.dims) > 1 for n in nests]
            flat = [n is not None and not contains_loop(p.body) for n, p in zip(nests, pieces, strict=True)]
            if len(pieces) > 1 and any(deep) and all(d or f for d, f in zip(deep, flat, strict=True)):
                for nest in nests:
                    assert nest is not None
                    self._map(nest, analysis, loop, live, out, pending)
                return True
            nest = parallel_nest(self.loops, loop, live)
            if nest is None:
                nest = Nest((loop,), loop.body)
            self._map(nest, analysis, loop, live, out, pending)
            return True
        if self._launchable(loop) and analysis.parallel and analysis.reductions:
            self._reduce(loop, analysis, live, out, pending)
            return True
        nest = parallel_nest(self.loops, loop, live) if not analysis.carried else None
        launchable = nest is not None and all(self._launchable(d) for d in nest.dims)
        if nest is not None and launchable and not (analysis.atomics and _data_dependent(analysis)):
            self._map(nest, replace(analysis, atomics=frozenset()), loop, live, out, pending)
            return True
        if analysis.parallel and analysis.atomics and self._launchable(loop):
            promoted = promote_elements(loop, analysis.atomics, set(self.taken))
            if promoted is not None and self._promoted(promoted, live, out, pending):
                return True
            if not _data_dependent(analysis) and self._distributed(loop, analysis, live, out, pending):
                return True
            self._map(self._atomic_nest(loop, live), analysis, loop, live, out, pending)
            return True
        if not analysis.carried and analysis.conflicts and self._launchable(loop):
            arrays = frozenset(c.first.array for c in analysis.conflicts)
            promoted = promote_elements(loop, arrays, set(self.taken))
            if promoted is not None and self._promoted(promoted, live, out, pending):
                return True
        return self._distributed(loop, analysis, live, out, pending)

    def _distributed(
        self, loop: For, analysis: LoopAnalysis, live: frozenset[str], out: list[Stage], pending: list[Stmt]
    ) -> bool:
        """A loop that is not parallel, in pieces that may be: nothing passes back from a later piece."""
        if analysis.carried or ends_early(loop) or not self._launchable(loop):
            return False
        pieces = distribute(loop)
        arrays = {a.array for c in analysis.conflicts for a in (c.first, c.second)}
        for array in arrays:
            if sum(array in arrays_used(p.body) for p in pieces) != 1:
                return False
        pieces = self._joined(pieces, live)
        if len(pieces) < 2:
            return False
        for position, piece in enumerate(pieces):
            self._loop(piece, live_before(tuple(pieces[position + 1 :]), live), out, pending)
        return True

    def _joined(self, pieces: list[For], live: frozenset[str]) -> list[For]:
        """Neighbouring pieces that run in parallel together, and would not run in more dimensions apart."""
        out: list[For] = []
        for piece in pieces:
            nest = parallel_nest(self.loops, piece, live)
            flat = nest is not None and len(nest.dims) == 1
            if out and flat:
                known = {s for s in out[-1].body if isinstance(s, Decl) or plain_scalar(s)}
                both = replace(out[-1], body=(*out[-1].body, *(s for s in piece.body if s not in known)))
                last = parallel_nest(self.loops, out[-1], live)
                analysis = self.loops.analyse(both, live)
                plain = analysis.parallel and not analysis.reductions and not analysis.atomics
                if plain and last is not None and len(last.dims) == 1:
                    out[-1] = both
                    continue
            out.append(piece)
        return out

    def _promoted(self, body: Body, live: frozenset[str], out: list[Stage], pending: list[Stmt]) -> bool:
        """Plans a loop whose elements have become scalars, where that makes it parallel."""
        loop = next(s for s in body if isinstance(s, For))
        after = tuple(body[body.index(loop) + 1 :])
        inner_live = live_before(after, live)
        for stmt in body:
            if isinstance(stmt, Decl):
                self.types[stmt.name] = Var(stmt.name, stmt.type)
                self.device_names |= {stmt.name}
        analysis = self.loops.analyse(loop, inner_live)
        if not analysis.parallel or not analysis.reductions:
            return False
        self.taken |= {s.name for s in body if isinstance(s, Decl)}
        pending += [s for s in body[: body.index(loop)] if not isinstance(s, Decl)]
        self._reduce(loop, analysis, inner_live, out, pending)
        pending += after
        return True

    def _otherwise(
        self, loop: For | While, live: frozenset[str], out: list[Stage], pending: list[Stmt]
    ) -> None:
        """A loop on the host around kernels where something inside is parallel, else one thread."""
        header = (loop.lo, loop.bound, loop.step) if isinstance(loop, For) else (loop.test,)
        header_on_host = all(self.on_host(e) for e in header)
        if header_on_host and contains_loop(loop.body):
            names = set(self.kernel_names)
            types, device = dict(self.types), self.device_names
            try:
                inner = self._host_loop(loop, live)
            except _Serial as serial:
                inner = None
                self.notes.append(str(serial))
            if inner is not None and any(isinstance(s, MapStage | ReduceStage) for s in _kernels(inner)):
                self._flush(out, pending, live_before((loop,), live))
                out += inner
                return
            self.kernel_names, self.types, self.device_names = names, types, device
        self._serial(loop, live, out, pending)

    def _serial(self, loop: For | While, live: frozenset[str], out: list[Stage], pending: list[Stmt]) -> None:
        swap = next((s for s in walk_statements((loop,)) if isinstance(s, Swap)), None)
        if swap is not None:
            message = f"`{swap.left}` and `{swap.right}` change places in a loop that the host cannot run"
            raise _unsupported(message, swap.line)
        why: tuple[str, ...] = ()
        if isinstance(loop, For):
            why = self.loops.analyse(loop, live).blockers
            if not why and not self._launchable(loop):
                why = (f"line {loop.line}: how often the loop runs is computed on the device",)
        else:
            why = (f"line {loop.line}: whether the loop goes on depends on what it computes",)
        self.notes += why
        pending.append(loop)
        for name in sorted(flow((loop,)).written - set(declared_names((loop,)))):
            if name in live and name not in self.device_names:
                raise Demote(name)
        if not (isinstance(loop, For) and _small(loop)):
            self._flush(out, pending, live, why)

    def _host_loop(self, loop: For | While, live: frozenset[str]) -> list[Stage]:
        around = live | flow(loop.body).exposed | names_read(expressions(loop))
        body = loop.body
        before: list[Stage] = []
        if isinstance(loop, For) and self._ends_on_device(loop):
            loop, body, start = self._converging(loop, live)
            around |= flow(body).exposed
            self._flush(before, start, around)
        elif isinstance(loop, While) and has_break(body) and not self._breaks_on_host(body):
            raise _Serial(f"line {loop.line}: the loop ends when computed values say so")
        outer = self.loops.around
        if isinstance(loop, For):
            self.loops.around = (*outer, loop)
        try:
            stages = self.stages(body, around, in_loop=True)
        finally:
            self.loops.around = outer
        if isinstance(loop, For) and loop.var.name in self.device_names:
            raise _Serial(f"line {loop.line}: the host does not know `{loop.var.name}`")
        return [*before, HostLoop(replace(loop, body=()), tuple(stages))]

    def _breaks_on_host(self, body: Body) -> bool:
        return all(self.on_host(s.test) for s in body if isinstance(s, If) and has_break((*s.then, *s.other)))

    def _ends_on_device(self, loop: For) -> bool:
        """Whether computed values decide when the loop ends."""
        early = loop.extra is not None and not self.on_host(loop.extra)
        return early or (has_break(loop.body) and not self._breaks_on_host(loop.body))

    def _converging(self, loop: For, live: frozenset[str]) -> tuple[For, Body, list[Stmt]]:
        """The loop run to its limit, with a flag on the device that turns the rest into nothing.

        Gives the loop on the host, its body, and what comes before.
        """
        counted = loop.var.name in live
        if counted and loop.var.name not in self.device_names:
            raise Demote(loop.var.name)
        done = Var(fresh(self.taken, "done"), INT)
        turn = Var(fresh(self.taken, loop.var.name + "_turn"), loop.var.type) if counted else loop.var
        self.types |= {done.name: done, turn.name: turn}
        body = without_breaks(loop.body, done) or loop.body
        for stmt in walk_statements(body):
            if isinstance(stmt, Decl):
                self.types.setdefault(stmt.name, Var(stmt.name, stmt.type))
                if stmt.name.startswith(done.name):
                    self.device_names |= {stmt.name}
        self.device_names |= {done.name}
        going = Binary("==", done, number(0), INT)
        start: list[Stmt] = [Assign(done, number(0), line=loop.line)]
        inner: Body = body
        if counted:
            start.append(Assign(loop.var, loop.lo, line=loop.line))
            inner = (
                *inner,
                If(going, (Assign(loop.var, add(turn, loop.step), line=loop.line),), line=loop.line),
            )
        if loop.extra is not None:
            inner = (If(loop.extra, inner, (Assign(done, number(1), line=loop.line),), line=loop.line),)
        whole: Body = (If(going, inner, line=loop.line),)
        if counted:
            whole = tuple(reading(s, loop.var, turn) for s in whole)
        return replace(loop, var=turn, extra=None, own=True, body=()), whole, start


class _Serial(Exception):
    """A loop cannot be run by the host; the message says why."""


def _kernels(stages: list[Stage]) -> list[Stage]:
    return list(kernels(tuple(stages)))


def _small(loop: For) -> bool:
    trips = constant(trip_count(loop))
    return trips is not None and trips <= 64 and not contains_loop(loop.body)


def _data_dependent(analysis: LoopAnalysis) -> bool:
    """Whether the atomics hit places that data decide, as in a histogram."""
    return any(
        any(s.startswith("?") for p in (*c.first.index, *c.second.index) for s in p.symbols)
        for c in analysis.conflicts
    )


def _unsupported(message: str, line: int) -> TaskProblem:
    return TaskProblem(Problem(kind="unsupported_construct", message=message, line=line or None))

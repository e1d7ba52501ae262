"""A warp (or a block) for each point, its lanes sharing the inner loops.

    for (c = 0; c < m; c++) s += x[c];      ->      for (c = lane; c < m; c += 32) s += x[c];
                                                    s = warp_sum_float(s);

Scalar code is done by every lane alike, so that all of them know the result; stores outside the inner loops
are lane 0's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from agent.translator.c.analysis import LoopAnalyser
from agent.translator.c.dataflow import (
    arrays_declared,
    arrays_used,
    arrays_written,
    flow,
    live_before,
    names_read,
)
from agent.translator.c.emit import Printer
from agent.translator.c.helpers import HELPERS, better, partial_type
from agent.translator.c.kernels import (
    Context,
    KernelCode,
    Signature,
    index_lines,
    most,
    prepared,
    signature,
    when_nonempty,
)
from agent.translator.c.normalise import trip_count
from agent.translator.c.passes.measured import Measured, Offer, number, sectors_sentence, shown
from agent.translator.c.passes.strides import split_keys, touches, traffic
from agent.translator.c.reductions import Reduction, combine
from agent.translator.c.schedules import Choice
from agent.translator.c.stage_code import own_names, whole_body
from agent.translator.c.stages import MapStage, ReduceStage
from agent.translator.c.syntax import (
    ArrayDecl,
    Assign,
    Body,
    Decl,
    Expr,
    For,
    If,
    Stmt,
    Switch,
    Var,
    While,
    add,
    constant,
    contains_loop,
    expressions,
    mul,
)
from agent.translator.c.syntax import (
    number as literal,
)
from agent.translator.c.types import INT

WARPS_PER_BLOCK = 8


class NotShared(Exception):
    """The body cannot be shared between lanes."""


@dataclass
class _Sharing:
    """Writes one point's code for `width` lanes."""

    context: Context
    printer: Printer
    loops: LoopAnalyser
    width: int
    helpers: list[str] = field(default_factory=list)
    lane: str = "lane"
    shared: list[For] = field(default_factory=list)  # loops whose iterations lanes take in turn
    dirty: set[str] = field(default_factory=set)  # arrays that other lanes may just have written

    def body(self, body: Body, live_after: frozenset[str], indent: int) -> list[str]:
        lines: list[str] = []
        position = 0
        while position < len(body):
            stmt = body[position]
            live = live_before(body[position + 1 :], live_after)
            merged = self.printer._initialised(body, position)
            if merged is not None:
                text, taken = merged
                lines += self._fence(body[position : position + taken]) + text
                position += taken
                continue
            lines += self._statement(stmt, body[:position], live)
            position += 1
        return ["    " * indent + line for line in lines]

    def _statement(self, stmt: Stmt, before: Body, live: frozenset[str]) -> list[str]:
        match stmt:
            case Decl():
                return self.printer.statement(stmt)
            case ArrayDecl():
                raise NotShared
            case Assign() if isinstance(stmt.target, Var):
                return self._fence((stmt,)) + self.printer.statement(stmt)
            case Assign():
                fence = self._fence((stmt,))
                self.dirty |= arrays_written((stmt,))
                return [
                    *fence,
                    f"if ({self.lane} == 0) {{",
                    *("    " + t for t in self.printer.statement(stmt)),
                    "}",
                ]
            case If():
                lines = self._fence((replace(stmt, then=(), other=()),))
                lines.append(f"if ({self.printer.expr(stmt.test)}) {{")
                before_dirty = set(self.dirty)
                lines += self.body(stmt.then, live, 1)
                after_then, self.dirty = self.dirty, before_dirty
                if stmt.other:
                    lines += ["} else {", *self.body(stmt.other, live, 1)]
                self.dirty |= after_then
                return [*lines, "}"]
            case For():
                return self._for(stmt, before, live)
            case While():
                return self._uniform(stmt, live)
            case Switch():
                raise NotShared
            case _:
                return self.printer.statement(stmt)

    def _for(self, loop: For, before: Body, live: frozenset[str]) -> list[str]:
        analysis = self.loops.analyse(loop, live)
        outer_writes = arrays_written(loop.body) - arrays_declared(loop.body)
        trips = constant(_trips(loop))
        if analysis.parallel and not analysis.assumed and (trips is None or trips >= 8):
            plain_step = constant(loop.step) is not None and loop.relation != "!="
            if plain_step and (loop.own or loop.var.name not in live):
                return self._take_turns(loop, analysis.reductions, analysis.atomics, before)
        if contains_loop(loop.body):
            return self._uniform(loop, live)
        if outer_writes:
            raise NotShared
        return self._fence((loop,)) + self.printer.statement(loop)

    def _uniform(self, loop: For | While, live: frozenset[str]) -> list[str]:
        """A loop that every lane goes through, its inner loops shared."""
        head = names_read(expressions(loop))
        lines = self._fence((replace(loop, body=()),))
        if self.dirty:
            lines.append(self._sync())
        outer, self.loops.around = (
            self.loops.around,
            (*self.loops.around, *((loop,) if isinstance(loop, For) else ())),
        )
        inner = self.body(loop.body, live | head | flow(loop.body).exposed, 1)
        self.loops.around = outer
        if self.dirty:
            inner.append("    " + self._sync())
        if isinstance(loop, For):
            return [*lines, f"{self.printer.for_header(loop)} {{", *inner, "}"]
        if loop.after:
            return [*lines, "do {", *inner, f"}} while ({self.printer.expr(loop.test)});"]
        test = "true" if constant(loop.test) else self.printer.expr(loop.test)
        return [*lines, f"while ({test}) {{", *inner, "}"]

    def _take_turns(
        self, loop: For, reductions: tuple[Reduction, ...], atomics: frozenset[str], before: Body
    ) -> list[str]:
        self.shared.append(loop)
        lines = self._fence((loop,))
        closing: list[str] = []
        for r in reductions:
            opened, closed = self._around(r, before)
            lines += opened
            closing += closed
        lane = Var(self.lane, INT)
        start = add(loop.lo, mul(lane, loop.step))
        header = replace(loop, lo=start, step=mul(literal(self.width), loop.step), own=True)
        saved, self.printer.atomics = self.printer.atomics, self.printer.atomics | atomics
        inner = self.printer.body(loop.body, 1)
        self.printer.atomics = saved
        self.dirty |= arrays_written(loop.body) - arrays_declared(loop.body)
        return [*lines, f"{self.printer.for_header(header)} {{", *inner, "}", *closing]

    def _around(self, r: Reduction, before: Body) -> tuple[list[str], list[str]]:
        """Lines before and after a loop whose lanes accumulate apart."""
        name = r.var.name
        if r.op == "any":
            vote = "__any_sync(0xffffffff, " if self.width == 32 else "__syncthreads_or("
            return [], [f"if ({vote}{name} == {r.constant})) {name} = {r.constant};"]
        helper = self._helper(r)
        if r.companion:
            return [], [f"{helper}({name}, {r.companion.name});"]
        if r.op in ("min", "max", "&", "|", "&&", "||"):
            return [], [f"{name} = {helper}({name});"]
        neutral = "1" if r.op == "*" else "0"
        if _starts_at(r.var, before, int(neutral)):
            return [], [f"{name} = {helper}({name});"]
        joined = combine(r, f"{name}_before", f"{helper}({name})")
        kind = r.var.type.name
        return [f"const {kind} {name}_before = {name};", f"{name} = {neutral};"], [f"{name} = {joined};"]

    def _helper(self, r: Reduction) -> str:
        word = {"+": "sum", "*": "product", "&": "and", "|": "or", "^": "xor", "&&": "all", "||": "any"}.get(
            r.op, r.op
        )
        who = "warp" if self.width == 32 else "team"
        name = f"{who}_{word}_{partial_type(r).replace(' ', '_')}"
        if r.companion:
            name += "_at" + ("" if r.strict else "_last")
        HELPERS[name] = _warp_helper(r, name) if self.width == 32 else _block_helper(r, name)
        if name not in self.helpers:
            self.helpers.append(name)
        return name

    def _sync(self) -> str:
        self.dirty.clear()
        return "__syncwarp();" if self.width == 32 else "__syncthreads();"

    def _fence(self, stmts: Body) -> list[str]:
        """Waits for the other lanes where the code uses what they wrote."""
        return [self._sync()] if self.dirty & arrays_used(stmts) else []


def _trips(loop: For) -> Expr:
    return trip_count(loop)


def _starts_at(var: Var, before: Body, value: int) -> bool:
    """Whether the statements before leave the scalar at this value."""
    for stmt in reversed(before):
        if isinstance(stmt, Assign) and stmt.target == var:
            if stmt.op:
                return False
            text = getattr(stmt.value, "text", "")
            try:
                return float(text.rstrip("fF")) == value
            except ValueError:
                return False
        if var.name in flow((stmt,)).written:
            return False
    return False


def _warp_helper(r: Reduction, name: str) -> str:
    kind = partial_type(r)
    if r.companion:
        at = r.companion.type.name
        test = better(r, "value", "place", "other_value", "other_place")
        return f"""// The warp's extreme and its place, in every lane.
__device__ void {name}({kind} &value, {at} &place) {{
    for (int half = 16; half > 0; half /= 2) {{
        const {kind} other_value = __shfl_xor_sync(0xffffffff, value, half);
        const {at} other_place = __shfl_xor_sync(0xffffffff, place, half);
        if ({test}) {{
            value = other_value;
            place = other_place;
        }}
    }}
}}"""
    return f"""// The warp's result, in every lane.
__device__ {kind} {name}({kind} value) {{
    for (int half = 16; half > 0; half /= 2) {{
        value = {combine(r, "value", "__shfl_xor_sync(0xffffffff, value, half)")};
    }}
    return value;
}}"""


def _block_helper(r: Reduction, name: str) -> str:
    if r.companion:
        raise NotShared
    kind = partial_type(r)
    return f"""// The block's result, in every thread: shuffles within warps, shared memory between them.
__device__ {kind} {name}({kind} value) {{
    __shared__ {kind} warps[32];
    for (int half = 16; half > 0; half /= 2) {{
        value = {combine(r, "value", "__shfl_xor_sync(0xffffffff, value, half)")};
    }}
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warps[0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp) {{
        value = {combine(r, "value", "warps[warp]")};
    }}
    __syncthreads();
    return value;
}}"""


def _shared_code(
    context: Context, stage: MapStage | ReduceStage, width: int, own: frozenset[str] = frozenset()
) -> tuple[Signature, list[str], _Sharing]:
    """(signature, the point's lines, what sharing found out). `own`: scalars that outlive a point.

    Raises NotShared.
    """
    given = signature(context, whole_body(stage), stage)
    body = prepared(context, stage.body, {*own_names(stage), *given.fetched, *own})
    printer = context.printer(body, stage.atomics, stage.exact)
    types = {n: v.type for n, v in context.plan.types.items()}
    loops = LoopAnalyser(context.dims, types, {})
    loops.around = stage.dims
    sharing = _Sharing(context, printer, loops, width, lane=context.free("lane")[0])
    lines = sharing.body(body, own, 0)
    if not sharing.shared:
        raise NotShared
    return given, lines, sharing


def sharing_of(context: Context, stage: ReduceStage) -> _Sharing:
    """Raises NotShared."""
    return _shared_code(context, stage, 32, accumulators(stage))[2]


def accumulators(stage: ReduceStage) -> frozenset[str]:
    names = {r.var.name for r in stage.reductions}
    return frozenset(names | {r.companion.name for r in stage.reductions if r.companion})


def shared_points(context: Context, stage: ReduceStage) -> tuple[list[str], str, list[str]]:
    """(a point's lines, the lane's name, helpers) for a reduction with a warp per point."""
    _, lines, sharing = _shared_code(context, stage, 32, accumulators(stage))
    return lines, sharing.lane, sharing.helpers


def rows_kernel(context: Context, stage: MapStage, choice: Choice) -> KernelCode:
    """`choice.rows` threads for each point of the dims."""
    width = choice.rows
    given, lines, sharing = _shared_code(context, stage, width)
    head = list(given.prologue)
    outside: list[str] = []
    order = list(reversed(range(len(stage.dims))))  # the innermost dim along the grid's x
    grid: list[str] = []
    printer = context.host_printer()
    for axis, dim in zip("xyz", order, strict=False):
        loop = stage.dims[dim]
        trips = printer.expr(most(loop, stage.dims))
        if axis == "x" and width == 32:
            position = f"blockIdx.x * {WARPS_PER_BLOCK} + threadIdx.y"
            grid.append(f"blocks_for({trips}, {WARPS_PER_BLOCK})")
        else:
            position = f"blockIdx.{axis}"
            grid.append(f"(int)({trips})")
        defined, test = index_lines(printer, loop, position)
        head += defined
        if axis == "x" and width == 32:
            outside.append(test)
    if outside:
        head.append(f"if ({' || '.join(outside)}) return;")
    head.append(f"const int {sharing.lane} = threadIdx.x;")
    names = ", ".join(f"`{d.var.name}`" for d in stage.dims)
    who = "A warp" if width == 32 else f"A block of {width} threads"
    text = [
        f"// {who} for each {names} (line {stage.line}): its lanes share the inner loops.",
        f"__global__ void {stage.name}({given.text()}) {{",
        *("    " + line for line in head),
        *("    " + line for line in lines),
        "}",
    ]
    block = f"32, {WARPS_PER_BLOCK}" if width == 32 else str(width)
    launch = when_nonempty(
        context,
        stage.dims,
        [
            f"const dim3 block({block});",
            f"const dim3 grid({', '.join(grid)});",
            f"{stage.name}<<<grid, block>>>({given.call()});",
        ],
    )
    return KernelCode("\n".join(text), launch, [], sharing.helpers)


def offers(context: Context, stage: MapStage, choice: Choice, measured: Measured) -> Iterator[Offer]:
    """A warp per point where threads stand rows apart, or where there are too few of them."""
    if choice.rows or choice.tile or len(stage.dims) > 3 or not contains_loop(stage.body):
        return
    try:
        _, _, sharing = _shared_code(context, stage, 32)
    except NotShared:
        return
    accesses, keys, found = touches(context, stage)
    order = choice.order or tuple(range(len(stage.dims)))
    now = traffic(found, split_keys(accesses, keys[order[0]]))
    shared_keys = [k for k, loop in accesses.loops.items() if any(loop.var == s.var for s in sharing.shared)]
    inner = [t for t in found if t.depth > 0]
    shared_cost = min((traffic(inner, split_keys(accesses, k)) for k in shared_keys), default=now)
    loop = sharing.shared[0]
    cause = "consecutive threads are a row apart."
    reason = sectors_sentence(measured, cause)
    if reason is not None and shared_cost < 0.9 * now:
        advice = f" Lanes that share the loop over `{shown(loop.var.name)}` read neighbours."
        yield Offer(replace(choice, rows=32), "Give each row to a warp", reason + advice, 35.0)
    elif measured.instructions_per_warp > 500 and measured.warps < 1056 and shared_cost <= 4 * now:
        busy = (
            f"Only {number(measured.warps)} warp{'s' if measured.warps > 1 else ''} at work, "
            f"{number(measured.instructions_per_warp)} instructions each: "
            f"a thread does all of the loop over `{shown(loop.var.name)}` alone."
        )
        yield Offer(replace(choice, rows=32), "Share the inner loop among a warp", busy, 12.0)

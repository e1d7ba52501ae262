"""A loop that every thread makes over the same data, staged through shared memory.

for (j = 0; j < n; j++) f(x[i], x[j]);   ->   for each 256 elements: load them together, use them 256 times
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent.translator.c.accesses import collect
from agent.translator.c.dataflow import arrays_written, flow, names_read
from agent.translator.c.kernels import (
    Context,
    KernelCode,
    most,
    plain,
    prepared,
    signature,
    when_nonempty,
)
from agent.translator.c.normalise import ends_early
from agent.translator.c.passes.measured import Measured, Offer, number, shown
from agent.translator.c.passes.strides import flat_index
from agent.translator.c.schedules import Choice
from agent.translator.c.stage_code import own_names, whole_body
from agent.translator.c.stages import MapStage
from agent.translator.c.syntax import (
    Assign,
    Body,
    Decl,
    Expr,
    For,
    Load,
    Var,
    While,
    all_expressions,
    children,
    contains_loop,
    expressions,
    walk_statements,
)

THREADS = 256


@dataclass(frozen=True)
class Staged:
    """The loop, and loads that no other loop indexes: load -> (elements per turn, offset)."""

    loop: For
    before: Body
    after: Body
    loads: dict[Load, tuple[int, int]]


def match(context: Context, stage: MapStage) -> Staged | None:
    if len(stage.dims) != 1 or stage.atomics or not plain(stage.dims[0]):
        return None
    loops = [s for s in stage.body if isinstance(s, For)]
    if len(loops) != 1 or any(isinstance(s, While) for s in stage.body):
        return None
    loop = loops[0]
    at = stage.body.index(loop)
    before, after = stage.body[:at], stage.body[at + 1 :]
    outer = {stage.dims[0].var.name} | flow(before).written
    if not plain(loop) or ends_early(loop) or contains_loop(loop.body) or contains_loop(before):
        return None
    if not names_read((loop.lo, loop.bound)).isdisjoint(outer) or arrays_written((*before, loop)):
        return None
    if any(not isinstance(s, Decl | Assign) for s in before):
        return None
    loads: dict[Load, tuple[int, int]] = {}
    for node in dict.fromkeys(e for e in all_expressions(loop.body) if isinstance(e, Load)):
        found = _per_turn(context, stage, loop, node)
        if found is not None and node.array not in arrays_written(stage.body):
            loads[node] = found
    return Staged(loop, before, after, loads) if loads and len({n.array for n in loads}) <= 8 else None


def _per_turn(context: Context, stage: MapStage, loop: For, load: Load) -> tuple[int, int] | None:
    """(s, c) where the flat subscript is s * turn + c with 0 <= c < s, the loop starting at 0."""
    if not names_read(load.index) <= {loop.var.name}:
        return None
    nest = (replace(loop, body=(Assign(Var("element", load.type), load),)),)
    flat = flat_index(context, collect(nest, context.dims).found[0])
    key = f"#0{loop.var.name}"
    stride, offset = flat.coefficient(key).as_constant, flat.without(key).as_constant
    if flat.degree(key) != 1 or stride is None or offset is None or not 0 <= offset < stride <= 8:
        return None
    return stride, offset


def staged_kernel(context: Context, stage: MapStage, choice: Choice) -> KernelCode:
    """256 threads; the loop in chunks of 256 turns."""
    found = match(context, stage)
    assert found is not None, "only matched nests get this choice"
    loop, dim = found.loop, stage.dims[0]
    given = signature(context, whole_body(stage), stage)
    body = prepared(context, stage.body, {*own_names(stage), *given.fetched})
    at = next(i for i, s in enumerate(body) if isinstance(s, For) and s.var == loop.var)
    before, inner, after = body[:at], body[at], body[at + 1 :]
    assert isinstance(inner, For)
    first, part, turns, inside = context.free("first", "part", "turns", "inside")
    strides: dict[str, int] = {}
    for load, (stride, _) in found.loads.items():
        strides[load.array] = stride
    tiles = dict(zip(strides, context.free(*(f"{a}_tile" for a in strides)), strict=True))
    printer = context.printer(body, exact=stage.exact)
    changed = flow((inner,)).written | flow(after).written
    printer.changing = frozenset(changed)

    def from_tile(load: Load) -> str | None:
        if load not in found.loads:
            return None
        stride, offset = found.loads[load]
        index = part if stride == 1 else f"{stride} * {part}" + (f" + {offset}" if offset else "")
        return f"{tiles[load.array]}[{index}]"

    i, j = dim.var, loop.var
    lo, bound = printer.expr(dim.lo), printer.expr(dim.bound, 9)
    last = bound if dim.relation == "<=" else f"{bound} - 1"
    place = f"blockIdx.x * {THREADS} + threadIdx.x"
    place = place if lo == "0" else f"{lo} + {place}"
    lines = [*given.prologue]
    for array, tile in tiles.items():
        lines.append(f"__shared__ {context.elements[array].name} {tile}[{strides[array] * THREADS}];")
    relation = "<" if dim.relation == "!=" else dim.relation
    lines += [
        f"const bool {inside} = {place} {relation} {bound};",
        f"const {i.type.name} {i.name} = {inside} ? {place} : {last};  // spare threads help to load",
        *printer.body(before, 0),
        f"for ({j.type.name} {first} = {printer.expr(loop.lo)}; {first} {_relation(loop)} "
        f"{printer.expr(loop.bound, 8)}; {first} += {THREADS}) {{",
    ]
    end = printer.expr(loop.bound, 9) + (" + 1" if loop.relation == "<=" else "")
    lines.append(f"    const int {turns} = min({THREADS}, (int)({end} - {first}));")
    for array, tile in tiles.items():
        if strides[array] == 1:
            lines.append(
                f"    if (threadIdx.x < {turns}) {tile}[threadIdx.x] = {array}[{first} + threadIdx.x];"
            )
        else:
            stride = strides[array]
            lines += [
                f"    for (int {part} = threadIdx.x; {part} < {stride} * {turns}; {part} += {THREADS}) {{",
                f"        {tile}[{part}] = {array}[{stride} * {first} + {part}];",
                "    }",
            ]
    printer.load = from_tile
    lines += [
        "    __syncthreads();",
        f"    for (int {part} = 0; {part} < {turns}; ++{part}) {{",
        f"        const {j.type.name} {j.name} = {first} + {part};"
        if _uses(inner.body, found, j.name)
        else "",
        *printer.body(inner.body, 2),
        "    }",
        "    __syncthreads();",
        "}",
    ]
    printer.load = None
    lines = [line for line in lines if line]
    lines += [f"if ({inside}) {{", *printer.body(after, 1), "}"]
    names = ", ".join(f"`{a}`" for a in tiles)
    text = [
        f"// One thread for each `{i.name}` (line {stage.line}); {names} pass through shared memory.",
        f"__global__ void {stage.name}({given.text()}) {{",
        *("    " + line for line in lines),
        "}",
    ]
    host = context.host_printer()
    launch = [
        f"const dim3 grid(blocks_for({host.expr(most(dim, stage.dims))}, {THREADS}));",
        f"{stage.name}<<<grid, {THREADS}>>>({given.call()});",
    ]
    return KernelCode("\n".join(text), when_nonempty(context, stage.dims, launch))


def _relation(loop: For) -> str:
    return "<" if loop.relation == "!=" else loop.relation


def _uses(body: Body, found: Staged, name: str) -> bool:
    """Whether the loop's variable is used other than in staged loads."""

    def uses(expr: Expr) -> bool:
        if isinstance(expr, Load) and expr in found.loads:
            return False
        if isinstance(expr, Var) and expr.name == name:
            return True
        return any(uses(c) for c in children(expr))

    return any(uses(e) for s in walk_statements(body) for e in expressions(s))


def offers(context: Context, stage: MapStage, choice: Choice, measured: Measured) -> Iterator[Offer]:
    if choice.rows or choice.tile or choice.staged or measured.reread < 8:
        return
    found = match(context, stage)
    line = measured.worst_load()
    if found is None or line is None:
        return
    reason = (
        f"Each sector is asked for {number(measured.reread)} times, most by line {line[0].line}: all warps "
        f"walk over `{shown(found.loop.var.name)}` by themselves. Threads of a block can load each part once."
    )
    yield Offer(Choice(staged=True), "Stage the inner loop's data in shared memory", reason, 14.0)

"""Loads that run across the threads' direction, turned round in a tile of shared memory.

    b[j * n + i] = a[i * m + j];

Whichever loop runs along a warp, one side is scattered. A block loads 32 x 32 elements along the one
direction and uses them along the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agent.translator.c.dataflow import arrays_written, names_read
from agent.translator.c.kernels import Context, KernelCode, most, plain, prepared, signature, when_nonempty
from agent.translator.c.passes.bounds import plus, within
from agent.translator.c.passes.measured import Measured, Offer, number, sectors_sentence, shown
from agent.translator.c.passes.strides import Touch, split_keys, touches
from agent.translator.c.schedules import Choice
from agent.translator.c.stage_code import own_names, whole_body
from agent.translator.c.stages import MapStage
from agent.translator.c.syntax import Assign, For, Load, contains_loop, expressions, walk, walk_statements

EDGE, ROWS = 32, 8


def match(context: Context, stage: MapStage) -> tuple[For, For, list[Load]] | None:
    """(the loop along the stores, the loop along the loads, the loads to turn round)."""
    if len(stage.dims) != 2 or stage.atomics or contains_loop(stage.body):
        return None
    variables = {d.var.name for d in stage.dims}
    if not all(plain(d) and names_read((d.lo, d.bound)).isdisjoint(variables) for d in stage.dims):
        return None
    accesses, keys, found = touches(context, stage)
    if any(len(split_keys(accesses, k)) != 1 for k in keys):
        return None
    stores = [t for t in found if t.access.write]
    for across, along in ((0, 1), (1, 0)):
        if not stores or any(t.stride(keys[across]) != 1 for t in stores):
            continue
        turned = _loads(context, stage, found, keys[along], keys[across])
        if turned:
            return stage.dims[across], stage.dims[along], turned
    return None


def _loads(context: Context, stage: MapStage, found: list[Touch], along: str, across: str) -> list[Load]:
    """Loads of arrays that are only read, contiguous along the other loop, and done by every thread."""
    written = arrays_written(stage.body)
    arrays = {
        t.access.array
        for t in found
        if not t.access.write and t.stride(along) == 1 and t.depends(across) and t.stride(across) != 1
    } - written
    others = {t.access.array for t in found if t.access.array in arrays and t.stride(along) != 1}
    names = {d.var.name for d in stage.dims}
    loads: list[Load] = []
    for stmt in stage.body:
        if not isinstance(stmt, Assign):
            continue
        for expr in expressions(stmt):
            for node in walk(expr):
                if not isinstance(node, Load) or node.array not in arrays - others or node in loads:
                    continue
                if names_read(node.index) <= names | set(context.plan.host):
                    loads.append(node)
    everywhere = {n for s in walk_statements(stage.body) for e in expressions(s) for n in walk(e)}
    every = [n for n in everywhere if isinstance(n, Load) and n.array in {x.array for x in loads}]
    return loads if set(every) == set(loads) and len(loads) <= 4 else []


def transposed_kernel(context: Context, stage: MapStage, choice: Choice) -> KernelCode:
    """Blocks of 32 x 8 threads over tiles of 32 x 32 points."""
    found = match(context, stage)
    assert found is not None, "only matched nests get this choice"
    out, into, loads = found
    given = signature(context, whole_body(stage), stage)
    body = prepared(context, stage.body, {*own_names(stage), *given.fetched})
    part = context.free("part")[0]
    tiles = context.free(*(f"{load.array}_tile" for load in loads))
    plain_printer = context.printer(stage.body)
    printer = context.printer(body, exact=stage.exact)
    text_of = dict(zip(loads, tiles, strict=True))

    def from_tile(load: Load) -> str | None:
        return f"{text_of[load]}[threadIdx.x][{part}]" if load in text_of else None

    printer.load = from_tile
    u, v = out.var, into.var
    pad = " + 1" if choice.pad else ""
    tests = [f"{d.var.name} {within(plain_printer.expr(d.bound, 8), d)}" for d in (out, into)]
    test = " && ".join(tests)
    lines = [*given.prologue]
    lines += [f"__shared__ {load.type.name} {tile}[{EDGE}][{EDGE}{pad}];" for load, tile in text_of.items()]
    lines += [
        f"const int first_{u.name} = {plus(plain_printer.expr(out.lo), f'blockIdx.x * {EDGE}')};",
        f"const int first_{v.name} = {plus(plain_printer.expr(into.lo), f'blockIdx.y * {EDGE}')};",
        f"for (int {part} = threadIdx.y; {part} < {EDGE}; {part} += {ROWS}) {{",
        f"    const {u.type.name} {u.name} = first_{u.name} + {part};",
        f"    const {v.type.name} {v.name} = first_{v.name} + threadIdx.x;",
        f"    if ({test}) {{",
        *(
            f"        {tile}[{part}][threadIdx.x] = {plain_printer.element(load)};"
            for load, tile in text_of.items()
        ),
        "    }",
        "}",
        "__syncthreads();",
        f"for (int {part} = threadIdx.y; {part} < {EDGE}; {part} += {ROWS}) {{",
        f"    const {u.type.name} {u.name} = first_{u.name} + threadIdx.x;",
        f"    const {v.type.name} {v.name} = first_{v.name} + {part};",
        f"    if ({test}) {{",
        *printer.body(body, 2),
        "    }",
        "}",
    ]
    names = " and ".join(f"`{load.array}`" for load in loads)
    text = [
        f"// A block for {EDGE} x {EDGE} points of `{u.name}` and `{v.name}` (line {stage.line}): "
        f"{names} loaded along `{v.name}`, used along `{u.name}`.",
        f"__global__ void {stage.name}({given.text()}) {{",
        *("    " + line for line in lines),
        "}",
    ]
    host = context.host_printer()
    grid = ", ".join(f"blocks_for({host.expr(most(d, stage.dims))}, {EDGE})" for d in (out, into))
    launch = [
        f"const dim3 block({EDGE}, {ROWS});",
        f"const dim3 grid({grid});",
        f"{stage.name}<<<grid, block>>>({given.call()});",
    ]
    return KernelCode("\n".join(text), when_nonempty(context, stage.dims, launch))


def offers(context: Context, stage: MapStage, choice: Choice, measured: Measured) -> Iterator[Offer]:
    """The tile where one side is scattered; then padding where the tile's columns lie in one bank."""
    if choice.rows or (choice.tile and not choice.turned):
        return
    found = match(context, stage)
    if found is None:
        return
    out, into, _ = found
    if not choice.turned:
        reason = sectors_sentence(
            measured,
            f"loads are contiguous along `{shown(into.var.name)}`, stores along `{shown(out.var.name)}`.",
        )
        if reason is not None:
            reason += " A tile in shared memory serves both."
            yield Offer(Choice(tile=EDGE, turned=True), "Turn a tile round in shared memory", reason, 38.0)
        return
    conflicts = measured.kernel.shared_load_bank_conflicts + measured.kernel.shared_store_bank_conflicts
    if conflicts and not choice.pad:
        line = max(
            measured.kernel.lines, key=lambda x: x.shared_load_bank_conflicts + x.shared_store_bank_conflicts
        )
        reason = (
            f"Line {line.line} makes {number(conflicts)} extra passes through shared memory: "
            "a column of the tile lies in one bank. One more column spreads it."
        )
        yield Offer(replace(choice, pad=True), "Pad the tile by one column", reason, 45.0)

"""More than one point per thread: wide loads along x, several rows along y.

y[i] = a * x[i] + y[i];     ->     four consecutive elements, loaded and stored as one float4
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from agent.translator.c.dataflow import arrays_declared, arrays_written
from agent.translator.c.kernels import (
    Context,
    KernelCode,
    axes,
    comment_of,
    index_lines,
    map_kernel,
    most,
    plain,
    prepared,
    product,
    shared_axis,
    signature,
    thread_position,
    when_nonempty,
)
from agent.translator.c.passes.measured import Measured, Offer, number, shown
from agent.translator.c.passes.strides import Touch, split_keys, touches
from agent.translator.c.schedules import Choice, default_block
from agent.translator.c.stage_code import own_names, whole_body
from agent.translator.c.stages import MapStage
from agent.translator.c.syntax import Assign, Load, While, contains_loop, walk_statements

#: 16 bytes of each element type.
VECTORS = {
    "float": "float4",
    "int": "int4",
    "unsigned int": "uint4",
    "double": "double2",
    "long": "longlong2",
}


# Wide loads ------------------------------------------------------------------------------------------------
def vector_arrays(context: Context, stage: MapStage) -> dict[str, str] | None:
    """Arrays touched at [i] and nowhere else, and their vector types; None where others are touched."""
    if len(stage.dims) != 1 or stage.atomics or contains_loop(stage.body) or not plain(stage.dims[0]):
        return None
    accesses, keys, found = touches(context, stage)
    if not found or split_keys(accesses, keys[0]) != (keys[0],) or stage.dims[0].var.type.size != 4:
        return None
    arrays: dict[str, str] = {}
    for touch in found:
        kind = VECTORS.get(context.elements[touch.access.array].name)
        simple = touch.stride(keys[0]) == 1 and not touch.flat.without(keys[0]).terms
        if kind is None or not simple:
            return None
        arrays[touch.access.array] = kind
    widths = {context.elements[a].size for a in arrays}
    return arrays if len(widths) == 1 and not arrays_declared(stage.body) else None


def vector_kernel(context: Context, stage: MapStage, choice: Choice) -> KernelCode:
    """16 bytes of elements per thread as one vector; the direct kernel for odd addresses."""
    arrays = vector_arrays(context, stage)
    assert arrays is not None, "only matched nests get this choice"
    direct = map_kernel(context, replace(stage, name=f"{stage.name}_single"), Choice())
    dim = stage.dims[0]
    width = 16 // context.elements[next(iter(arrays))].size
    given = signature(context, whole_body(stage), stage)
    body = prepared(context, stage.body, {*own_names(stage), *given.fetched})
    written = arrays_written(stage.body)
    first, part = context.free("first", "part")
    fours = dict(zip(arrays, context.free(*(f"{a}_part" for a in arrays)), strict=True))
    printer = context.printer(body, exact=stage.exact)
    bound = printer.expr(dim.bound, 8)
    relation = "<" if dim.relation == "!=" else dim.relation
    i = dim.var
    lines = [*given.prologue, f"const int {first} = {width} * (blockIdx.x * blockDim.x + threadIdx.x);"]
    lines.append(f"if ({first} + {width - 1} {relation} {bound}) {{")
    for array, kind in arrays.items():
        element = context.elements[array].name
        lines.append(f"    __align__(16) {element} {fours[array]}[{width}];")
        if _read_first(context, stage, array):
            lines.append(
                f"    *reinterpret_cast<{kind} *>({fours[array]}) = "
                f"*reinterpret_cast<const {kind} *>({array} + {first});"
            )

    def from_vector(load: Load) -> str | None:
        return f"{fours[load.array]}[{part}]" if load.array in fours else None

    printer.load = from_vector
    lines_four = printer.body(body, 2)
    lines += ["    #pragma unroll", f"    for (int {part} = 0; {part} < {width}; ++{part}) {{"]
    if any(_mentions(line, i.name) for line in lines_four):
        lines.append(f"        const {i.type.name} {i.name} = {first} + {part};")
    lines += [*lines_four, "    }"]
    for array, kind in arrays.items():
        if array in written:
            lines.append(
                f"    *reinterpret_cast<{kind} *>({array} + {first}) = "
                f"*reinterpret_cast<const {kind} *>({fours[array]});"
            )
    printer.load = None
    lines += ["} else {"]
    lines += [f"    for ({i.type.name} {i.name} = {first}; {i.name} {relation} {bound}; ++{i.name}) {{"]
    lines += [*printer.body(body, 2), "    }", "}"]
    text = [
        f"// One thread for {width} consecutive `{i.name}` (line {stage.line}).",
        f"__global__ void {stage.name}({given.text()}) {{",
        *("    " + line for line in lines),
        "}",
    ]
    host = context.host_printer()
    trips = host.expr(most(dim, stage.dims))
    addresses = " | ".join(f"(size_t){a}" for a in arrays)
    launch = when_nonempty(
        context,
        stage.dims,
        [
            f"if ((({addresses}) & 15) == 0) {{  // every array starts at a vector's boundary",
            f"    {stage.name}<<<blocks_for({trips}, {256 * width}), 256>>>({given.call()});",
            "} else {",
            *("    " + line for line in direct.launch[1:-1]),
            "}",
        ],
    )
    return KernelCode("\n".join([direct.text, "", *text]), launch)


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def _read_first(context: Context, stage: MapStage, array: str) -> bool:
    """Whether old elements matter: loaded, or not surely written."""
    _, _, found = touches(context, stage)
    reads = any(t.access.array == array and (not t.access.write or t.access.update) for t in found)
    surely = any(
        isinstance(s, Assign) and isinstance(s.target, Load) and s.target.array == array for s in stage.body
    )
    return reads or not surely


# Several rows ----------------------------------------------------------------------------------------------
def shares_rows(context: Context, stage: MapStage, choice: Choice) -> bool:
    """Whether neighbouring points along y load some of the same elements."""
    if len(stage.dims) < 2 or stage.atomics or any(isinstance(s, While) for s in walk_statements(stage.body)):
        return False
    placed = axes(stage.dims, choice.order)
    if len(placed) < 2 or len(placed[1]) != 1 or not plain(stage.dims[placed[1][0]]):
        return False
    accesses, keys, found = touches(context, stage)
    key = keys[placed[1][0]]
    loads = [t for t in found if not t.access.write and "?" not in str(t.flat)]
    if split_keys(accesses, key) != (key,):
        return False
    return any(not t.depends(key) for t in loads) or _offsets(loads, key)


def _offsets(loads: list[Touch], key: str) -> bool:
    by_array: dict[tuple[str, str], set[str]] = {}
    for touch in loads:
        step = touch.flat.coefficient(key)
        by_array.setdefault((touch.access.array, str(step)), set()).add(str(touch.flat))
        for other in loads:
            apart = touch.flat - other.flat
            if other.access.array == touch.access.array and apart.terms and apart in (step, step * 2):
                return True
    return False


def coarse_kernel(context: Context, stage: MapStage, choice: Choice) -> KernelCode:
    """`choice.per_thread` consecutive points along y for each thread."""
    each = choice.per_thread
    given = signature(context, whole_body(stage), stage)
    body = prepared(context, stage.body, {*own_names(stage), *given.fetched})
    printer = context.printer(body, stage.atomics, stage.exact)
    placed = axes(stage.dims, choice.order)
    block = choice.block or default_block(min(len(stage.dims), 3))
    lines = [*given.prologue]
    outside: list[str] = []
    row = stage.dims[placed[1][0]]
    for axis, group in zip("xyz", placed, strict=False):
        if axis == "y":
            continue
        if len(group) > 1:
            defined, tests = shared_axis(context, stage.dims, group, axis)
        else:
            loop = stage.dims[group[0]]
            defined, test = index_lines(printer, loop, thread_position(axis, loop))
            tests = [test]
        lines += defined
        outside += tests
    lines.append(f"if ({' || '.join(outside)}) return;")
    first, part = context.free("first", "part")
    start = f"{each} * (blockIdx.y * blockDim.y + threadIdx.y)"
    lo = printer.expr(row.lo)
    start = start if lo == "0" else f"{lo} + {start}"
    relation, bound = ("<" if row.relation == "!=" else row.relation), printer.expr(row.bound, 8)
    i = row.var
    lines += [
        f"const {i.type.name} {first} = {start};",
        f"if ({first} + {each - 1} {relation} {bound}) {{",
        "    #pragma unroll",
        f"    for (int {part} = 0; {part} < {each}; ++{part}) {{",
        f"        const {i.type.name} {i.name} = {first} + {part};",
        *printer.body(body, 2),
        "    }",
        "} else {",
        f"    for ({i.type.name} {i.name} = {first}; {i.name} {relation} {bound}; ++{i.name}) {{",
        *printer.body(body, 2),
        "    }",
        "}",
    ]
    text = [
        f"{comment_of(stage)} Each thread does {each} consecutive `{i.name}`, which share loads.",
        f"__global__ void {stage.name}({given.text()}) {{",
        *("    " + line for line in lines),
        "}",
    ]
    grid = ", ".join(
        f"blocks_for({product(context, [stage.dims[d] for d in group], stage.dims)}, "
        f"{size * (each if axis == 'y' else 1)})"
        for axis, group, size in zip("xyz", placed, block, strict=False)
    )
    launch = [
        f"const dim3 block({', '.join(str(b) for b in block)});",
        f"const dim3 grid({grid});",
        f"{stage.name}<<<grid, block>>>({given.call()});",
    ]
    return KernelCode("\n".join(text), when_nonempty(context, stage.dims, launch))


def offers(context: Context, stage: MapStage, choice: Choice, measured: Measured) -> Iterator[Offer]:
    if choice.rows or choice.tile or choice.staged or choice.private:
        return
    if choice == Choice() and vector_arrays(context, stage) is not None:
        line = measured.busiest()
        flop = measured.kernel.flop.fp32 + measured.kernel.flop.fp64
        per_point = measured.instructions_per_warp
        where = line.line if line else stage.line
        useful = flop / max(1, measured.warps * measured.kernel.launches * 32)
        reason = (
            f"{number(per_point)} instructions per element, most on line {where}, for {number(useful)} FLOP: "
            "addresses and bounds are part of the cost, and one vector shares them."
        )
        yield Offer(Choice(vector=16), "Load and store 16 bytes at once", reason, 3.0)
    if choice.per_thread < 8 and measured.reread > 1.5 and shares_rows(context, stage, choice):
        placed = axes(stage.dims, choice.order)
        name = shown(stage.dims[placed[1][0]].var.name)
        worst = measured.worst_load()
        where = worst[0].line if worst else stage.line
        reason = (
            f"Each sector is asked for {number(measured.reread)} times, most by line {where}. "
            f"Neighbouring `{name}` load the same elements: a thread that does several keeps them."
        )
        more = choice.per_thread * 4 if choice.per_thread == 1 else choice.per_thread * 2
        yield Offer(replace(choice, per_thread=more), f"Give each thread {more} rows", reason, 9.0)

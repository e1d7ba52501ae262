"""Reductions over a whole nest: a partial result per block, then one block that joins them.

Two kernels and no atomics, so that two runs add in the same order and agree bit for bit.
"""

from __future__ import annotations

from dataclasses import replace

from agent.translator.c.dataflow import flow
from agent.translator.c.helpers import NONE, better, block_reduce, helper_name, partial_type
from agent.translator.c.kernels import (
    Buffer,
    Context,
    KernelCode,
    comment_of,
    index_lines,
    nonempty,
    plain,
    prepared,
    product,
    signature,
    stored_scalars,
)
from agent.translator.c.normalise import trip_count
from agent.translator.c.passes.rows import shared_points
from agent.translator.c.reductions import Reduction, combine, identity
from agent.translator.c.schedules import Choice
from agent.translator.c.stages import ReduceStage
from agent.translator.c.syntax import Assign, Body, For, constant

MAX_BLOCKS = 1024


def reduce_kernel(context: Context, stage: ReduceStage, choice: Choice) -> KernelCode:
    """A grid-stride loop in front of a tree (or shuffles), then the same over the blocks' partial results."""
    threads = choice.block[0] if choice.block else 256
    helpers: list[str] = []
    main, main_call = _main(context, stage, choice, threads, helpers)
    finish, finish_call = _finish(context, stage, choice, helpers)
    blocks = MAX_BLOCKS
    types = [partial_type(r) for r in stage.reductions]
    types += [r.companion.type.name for r in stage.reductions if r.companion]
    buffers = [Buffer(name, kind, str(blocks)) for name, kind in zip(buffer_names(stage), types, strict=True)]
    total = product(context, stage.dims, stage.dims)
    test = nonempty(context, stage.dims)
    per_block = threads // 32 if choice.rows else threads * choice.per_thread
    need = f"blocks_for({total}, {per_block})"
    count = f"const int blocks = min({need}, {MAX_BLOCKS});"
    if test:
        count = f"const int blocks = {test} ? min({need}, {MAX_BLOCKS}) : 0;"
    launch = [
        "{",
        f"    {count}",
        f"    if (blocks > 0) {stage.name}<<<blocks, {threads}>>>({main_call});",
        f"    {stage.name}_finish<<<1, {FINISH_THREADS}>>>({finish_call});",
        "}",
    ]
    return KernelCode(f"{main}\n\n{finish}", launch, buffers, helpers)


FINISH_THREADS = 256


def _main(
    context: Context, stage: ReduceStage, choice: Choice, threads: int, helpers: list[str]
) -> tuple[str, str]:
    names = accumulated(stage)
    nest: Body = stage.body
    for dim in reversed(stage.dims):
        nest = (replace(dim, body=nest),)
    given = signature(context, nest, stage, own=names)
    body = prepared(context, stage.body, {*names, *(d.var.name for d in stage.dims), *given.fetched})
    printer = context.printer(body, stage.atomics, stage.exact)
    lines = list(given.prologue)
    for r in stage.reductions:
        lines.append(f"{partial_type(r)} {r.var.name} = {identity(r)};")
        if r.companion:
            lines.append(f"{r.companion.type.name} {r.companion.name} = {NONE};")
    if choice.rows:
        points, lane, more = shared_points(context, stage)
        helpers += [h for h in more if h not in helpers]
        lines += warp_stride(context, stage.dims[0], points, lane)
        lines += _only_lane_zero(stage, lane)
    else:
        lines += grid_stride(context, stage.dims, printer.body(body, 1))
    lines += _block_results(stage, choice, threads, helpers)
    partials = [f"{partial_type(r)} *__restrict__ {r.var.name}_partials" for r in stage.reductions]
    partials += [
        f"{r.companion.type.name} *__restrict__ {r.companion.name}_partials"
        for r in stage.reductions
        if r.companion
    ]
    parameters = ", ".join([*given.parameters, *partials])
    text = [comment_of(stage), f"__global__ void {stage.name}({parameters}) {{"]
    text += ["    " + line for line in lines]
    text.append("}")
    buffers = buffer_names(stage)
    return "\n".join(text), ", ".join([*given.arguments, *buffers])


def buffer_names(stage: ReduceStage) -> list[str]:
    """Of the blocks' partial results: values first, then positions."""
    names = [r.var.name for r in stage.reductions] + [
        r.companion.name for r in stage.reductions if r.companion
    ]
    return [f"{stage.name}_partials"] if len(names) == 1 else [f"{stage.name}_{n}_partials" for n in names]


def accumulated(stage: ReduceStage) -> set[str]:
    """The scalars that the reductions are about."""
    names = {r.var.name for r in stage.reductions}
    return names | {r.companion.name for r in stage.reductions if r.companion}


def grid_stride(context: Context, dims: tuple[For, ...], inner: list[str]) -> list[str]:
    """A loop over all points, a grid's width apart."""
    printer = context.host_printer()
    if len(dims) == 1 and plain(dims[0]):
        loop = dims[0]
        kind, name = loop.var.type.name, loop.var.name
        lo = printer.expr(loop.lo)
        start = "blockIdx.x * blockDim.x + threadIdx.x"
        if constant(loop.lo) != 0:
            start = f"{lo} + {start}"
        relation = "<" if loop.relation == "!=" else loop.relation
        header = (
            f"for ({kind} {name} = {start}; {name} {relation} {printer.expr(loop.bound, 8)}; "
            f"{name} += gridDim.x * blockDim.x) {{"
        )
        return [header, *inner, "}"]
    total = product(context, dims, dims)
    lines = [
        f"const long long points = {total};",
        "for (long long point = blockIdx.x * blockDim.x + threadIdx.x; point < points; "
        "point += gridDim.x * blockDim.x) {",
    ]
    rest = "point"
    for position, dim in reversed(list(enumerate(dims))):
        trips = printer.expr(trip_count(dim), 11)
        if position == 0:
            defined, _ = index_lines(printer, dim, f"(int)({rest})" if rest != "point" else "(int)point")
        else:
            inner_rest = f"({rest})" if "/" in rest else rest
            defined, _ = index_lines(printer, dim, f"(int)({inner_rest} % {trips})")
            rest = f"{inner_rest} / {trips}"
        lines += ["    " + line for line in defined]
    return [*lines, *inner, "}"]


def warp_stride(context: Context, loop: For, points: list[str], lane: str) -> list[str]:
    """A loop over points, a warp for each."""
    printer = context.host_printer()
    defined, _ = index_lines(printer, loop, "point")
    return [
        f"const int {lane} = threadIdx.x % 32;",
        f"const int points = {printer.expr(trip_count(loop))};",
        "for (int point = (blockIdx.x * blockDim.x + threadIdx.x) / 32; point < points; "
        "point += gridDim.x * blockDim.x / 32) {",
        *("    " + line for line in defined),
        *("    " + line for line in points),
        "}",
    ]


def _only_lane_zero(stage: ReduceStage, lane: str) -> list[str]:
    """Every lane of a warp holds the warp's result: one of them hands it on."""
    lines = [f"if ({lane} != 0) {{"]
    for r in stage.reductions:
        lines.append(f"    {r.var.name} = {identity(r)};")
        if r.companion:
            lines.append(f"    {r.companion.name} = {NONE};")
    return [*lines, "}"]


def _block_results(stage: ReduceStage, choice: Choice, threads: int, helpers: list[str]) -> list[str]:
    lines: list[str] = []
    for r in stage.reductions:
        lines += block_reduce(r, choice, helpers)
    lines.append("if (threadIdx.x == 0) {")
    for r in stage.reductions:
        lines.append(f"    {r.var.name}_partials[blockIdx.x] = {r.var.name};")
        if r.companion:
            lines.append(f"    {r.companion.name}_partials[blockIdx.x] = {r.companion.name};")
    lines.append("}")
    return lines


def _finish(context: Context, stage: ReduceStage, choice: Choice, helpers: list[str]) -> tuple[str, str]:
    """The second kernel: joins the blocks' results and runs the scalar code around them."""
    names = accumulated(stage)
    marks: list[Assign] = []
    for r in stage.reductions:
        marks.append(Assign(r.var, r.var, "+"))
        if r.companion:
            marks.append(Assign(r.companion, r.companion, "+"))
    scalar_body = (*stage.before, *marks, *stage.after)
    stores = stored_scalars(context, scalar_body, stage)
    given = signature(context, scalar_body, stage, stores=stores)
    lines = list(given.prologue)
    for r in stage.reductions:
        lines.append(f"{partial_type(r)} {r.var.name}_total = {identity(r)};")
        if r.companion:
            lines.append(f"{r.companion.type.name} {r.companion.name}_total = {NONE};")
    lines.append("for (int block = threadIdx.x; block < blocks; block += blockDim.x) {")
    for r in stage.reductions:
        value, part = f"{r.var.name}_total", f"{r.var.name}_partials[block]"
        if r.companion:
            place, part_at = f"{r.companion.name}_total", f"{r.companion.name}_partials[block]"
            lines += [
                f"    if ({better(r, value, place, part, part_at)}) {{",
                f"        {value} = {part};",
                f"        {place} = {part_at};",
                "    }",
            ]
        else:
            lines.append(f"    {value} = {combine(r, value, part)};")
    lines.append("}")
    for r in stage.reductions:
        name = helper_name(r, choice.shuffle)
        value = f"{r.var.name}_total"
        if r.companion:
            lines.append(f"{name}({value}, {r.companion.name}_total);")
        else:
            lines.append(f"{value} = {name}({value});")
    lines.append("if (threadIdx.x == 0) {")
    printer = context.printer(scalar_body, exact=stage.exact)
    printer.changing = frozenset(names) | flow(stage.after).written
    ready = prepared(context, scalar_body, given.fetched)
    inner: list[str] = []
    cut = [i for i, s in enumerate(ready) if s in marks]
    inner += [line[4:] for line in printer.body(ready[: cut[0]])]
    for r in stage.reductions:
        inner += _join(r)
    inner += [line[4:] for line in printer.body(ready[cut[-1] + 1 :])]
    inner += [f"scalars->{n} = {n};" for n in stores]
    lines += ["    " + line for line in inner]
    lines.append("}")
    partials = ["int blocks"]
    partials += [f"const {partial_type(r)} *__restrict__ {r.var.name}_partials" for r in stage.reductions]
    partials += [
        f"const {r.companion.type.name} *__restrict__ {r.companion.name}_partials"
        for r in stage.reductions
        if r.companion
    ]
    arguments = ["blocks", *buffer_names(stage)]
    done = ", ".join(f"`{n}`" for n in sorted(names))
    text = [
        f"// One block joins the blocks' partial results into {done}.",
        f"__global__ void {stage.name}_finish({', '.join([*given.parameters, *partials])}) {{",
        *("    " + line for line in lines),
        "}",
    ]
    return "\n".join(text), ", ".join([*given.arguments, *arguments])


def _join(r: Reduction) -> list[str]:
    """The scalar's value before the loop, joined with the total."""
    name, total = r.var.name, f"{r.var.name}_total"
    if r.companion:
        place = r.companion.name
        relation = (">" if r.op == "max" else "<") + ("" if r.strict else "=")
        return [
            f"if ({place}_total != {NONE} && {total} {relation} {name}) {{",
            f"    {name} = {total};",
            f"    {place} = {place}_total;",
            "}",
        ]
    if r.op == "any":
        hit = f"!{total}" if r.constant == "0" else total
        return [f"if ({hit}) {name} = {r.constant};"]
    if r.op in ("+", "*", "&", "|", "^"):
        return [f"{name} {r.op}= {total};"]
    return [f"{name} = {combine(r, name, total)};"]

"""Reductions over a whole nest: a partial result per block, then one block that joins them.

Two kernels and no atomics, so that two runs add in the same order and agree bit for bit.
"""

from __future__ import annotations

from dataclasses import replace

from agent.translator.c.dataflow import flow
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
from agent.translator.c.reductions import Reduction, combine, identity
from agent.translator.c.schedules import Choice
from agent.translator.c.stages import ReduceStage
from agent.translator.c.syntax import Assign, Body, For, constant

MAX_BLOCKS = 1024
NONE = "-1"  # a position that was never set


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
    per_block = threads * choice.per_thread
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


def partial_type(reduction: Reduction) -> str:
    return "int" if reduction.op == "any" else reduction.var.type.name


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
    lines += grid_stride(context, stage.dims, printer.body(body, 1))
    lines += _block_results(stage, choice, threads, helpers)
    partials = [f"{partial_type(r)} *__restrict__ {r.var.name}_partials" for r in stage.reductions]
    partials += [
        f"{r.companion.type.name} *__restrict__ {r.companion.name}_partials" for r in stage.reductions if r.companion
    ]
    parameters = ", ".join([*given.parameters, *partials])
    text = [comment_of(stage), f"__global__ void {stage.name}({parameters}) {{"]
    text += ["    " + line for line in lines]
    text.append("}")
    buffers = buffer_names(stage)
    return "\n".join(text), ", ".join([*given.arguments, *buffers])


def buffer_names(stage: ReduceStage) -> list[str]:
    """Of the blocks' partial results: values first, then positions."""
    names = [r.var.name for r in stage.reductions] + [r.companion.name for r in stage.reductions if r.companion]
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


def block_reduce(r: Reduction, choice: Choice, helpers: list[str]) -> list[str]:
    """Lines that leave the block's result in thread 0's variable."""
    name = helper_name(r, choice.shuffle)
    if name not in helpers:
        helpers.append(name)
    HELPERS[name] = helper_text(r, name, choice.shuffle)
    if r.companion:
        return [f"{name}({r.var.name}, {r.companion.name});"]
    return [f"{r.var.name} = {name}({r.var.name});"]


#: Text of every helper that was asked for, by name.
HELPERS: dict[str, str] = {}


def helper_name(r: Reduction, shuffle: bool) -> str:
    word = {"+": "sum", "*": "product", "&": "and", "|": "or", "^": "xor", "&&": "all", "||": "any"}.get(r.op, r.op)
    if r.op == "any":
        word = "all" if r.constant == "0" else "any"
    kind = partial_type(r).replace(" ", "_")
    if r.companion:
        word += "_at" + ("" if r.strict else "_last")
        kind += "_" + r.companion.type.name.replace(" ", "_")
    return f"block_{word}_{kind}" + ("_shuffled" if shuffle else "")


def helper_text(r: Reduction, name: str, shuffle: bool) -> str:
    if r.companion:
        return _pair_helper(r, name, shuffle)
    kind = partial_type(r)
    if not shuffle:
        return f"""// The block's result, in thread 0: a tree in shared memory.
__device__ {kind} {name}({kind} value) {{
    __shared__ {kind} shared[1024];
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {{
        if (threadIdx.x < half) {{
            shared[threadIdx.x] = {combine(r, "shared[threadIdx.x]", "shared[threadIdx.x + half]")};
        }}
        __syncthreads();
    }}
    const {kind} result = shared[0];
    __syncthreads();
    return result;
}}"""
    return f"""// The block's result, in thread 0: lanes pass values down, then the first warp joins the warps' results.
__device__ {kind} {name}({kind} value) {{
    __shared__ {kind} warps[32];
    for (int half = 16; half > 0; half /= 2) {{
        value = {combine(r, "value", "__shfl_down_sync(0xffffffff, value, half)")};
    }}
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {{
        value = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : {identity(r)};
        for (int half = 16; half > 0; half /= 2) {{
            value = {combine(r, "value", "__shfl_down_sync(0xffffffff, value, half)")};
        }}
    }}
    __syncthreads();
    return value;
}}"""


def better(r: Reduction, value: str, at: str, other_value: str, other_at: str) -> str:
    """Whether the other pair replaces this one: as the sequential loop would have it."""
    assert r.companion is not None
    relation = ">" if r.op == "max" else "<"
    order = "<" if r.strict else ">"
    return (
        f"{other_at} != {NONE} && ({at} == {NONE} || {other_value} {relation} {value} || "
        f"({other_value} == {value} && {other_at} {order} {at}))"
    )


def _pair_helper(r: Reduction, name: str, shuffle: bool) -> str:
    assert r.companion is not None
    kind, at = partial_type(r), r.companion.type.name
    if not shuffle:
        test = better(r, "values[threadIdx.x]", "places[threadIdx.x]", "values[other]", "places[other]")
        return f"""// The block's extreme and its place, in thread 0: a tree in shared memory.
__device__ void {name}({kind} &value, {at} &place) {{
    __shared__ {kind} values[1024];
    __shared__ {at} places[1024];
    values[threadIdx.x] = value;
    places[threadIdx.x] = place;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {{
        const int other = threadIdx.x + half;
        if (threadIdx.x < half && ({test})) {{
            values[threadIdx.x] = values[other];
            places[threadIdx.x] = places[other];
        }}
        __syncthreads();
    }}
    value = values[0];
    place = places[0];
    __syncthreads();
}}"""
    test = better(r, "value", "place", "other_value", "other_place")
    step = f"""for (int half = 16; half > 0; half /= 2) {{
        const {kind} other_value = __shfl_down_sync(0xffffffff, value, half);
        const {at} other_place = __shfl_down_sync(0xffffffff, place, half);
        if ({test}) {{
            value = other_value;
            place = other_place;
        }}
    }}"""
    inner = step.replace("\n", "\n    ")
    return f"""// The block's extreme and its place, in thread 0: lanes pass pairs down, then the first warp joins the warps'.
__device__ void {name}({kind} &value, {at} &place) {{
    __shared__ {kind} values[32];
    __shared__ {at} places[32];
    {step}
    if (threadIdx.x % 32 == 0) {{
        values[threadIdx.x / 32] = value;
        places[threadIdx.x / 32] = place;
    }}
    __syncthreads();
    if (threadIdx.x < 32) {{
        const bool there = threadIdx.x < blockDim.x / 32;
        value = there ? values[threadIdx.x] : {identity(r)};
        place = there ? places[threadIdx.x] : {NONE};
        {inner}
    }}
    __syncthreads();
}}"""


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



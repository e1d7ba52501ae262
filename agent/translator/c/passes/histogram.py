"""Counters of its own for each block, in shared memory, added up at the end.

atomicAdd(&bins[x[i]], 1);   ->   atomicAdd(&block_bins[x[i]], 1);  ...  atomicAdd(&bins[b], block_bins[b]);
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agent.translator.c.emit import atomic_update
from agent.translator.c.kernels import (
    Context,
    KernelCode,
    map_kernel,
    prepared,
    product,
    signature,
    when_nonempty,
)
from agent.translator.c.passes.measured import Measured, Offer, number
from agent.translator.c.reduce import grid_stride
from agent.translator.c.schedules import Choice
from agent.translator.c.stage_code import own_names, whole_body
from agent.translator.c.stages import MapStage
from agent.translator.c.syntax import Assign, Load, walk_statements

THREADS, MAX_BLOCKS, MAX_BYTES = 256, 264, 48 * 1024


def match(context: Context, stage: MapStage) -> tuple[str, str] | None:
    """(the one array of counters, its length as host text)."""
    if len(stage.atomics) != 1 or stage.guards:
        return None
    array = next(iter(stage.atomics))
    length = context.extents.get(array)
    updates = [
        s
        for s in walk_statements(stage.body)
        if isinstance(s, Assign) and isinstance(s.target, Load) and s.target.array == array
    ]
    if length is None or any(s.op not in ("+", "-") for s in updates):
        return None
    return array, length


def private_kernel(context: Context, stage: MapStage, choice: Choice) -> KernelCode:
    """Beside the direct kernel, for arrays of counters that are too long for shared memory."""
    found = match(context, stage)
    assert found is not None, "only matched nests get this choice"
    array, length = found
    kind = context.elements[array]
    direct = map_kernel(context, replace(stage, name=f"{stage.name}_global"), Choice())
    mine, bin_name, bins = context.free(f"block_{array}", "bin", "bins")
    given = signature(context, whole_body(stage), stage)
    body = prepared(context, stage.body, {*own_names(stage), *given.fetched})
    printer = context.printer(body, stage.atomics, stage.exact)
    printer.names = {array: mine}
    known = length.isdigit()
    small = known and int(length) * kind.size <= MAX_BYTES
    parameters = list(given.parameters) + ([] if known else [f"int {bins}"])
    count = length if known else bins
    walk = f"for (int {bin_name} = threadIdx.x; {bin_name} < {count}; {bin_name} += blockDim.x)"
    flush = atomic_update(f"{array}[{bin_name}]", kind, "+", f"{mine}[{bin_name}]")
    shared = (
        f"__shared__ {kind.name} {mine}[{length}];" if small else f"extern __shared__ {kind.name} {mine}[];"
    )
    lines = [
        *given.prologue,
        shared,
        f"{walk} {mine}[{bin_name}] = 0;",
        "__syncthreads();",
        *grid_stride(context, stage.dims, printer.body(body, 1)),
        "__syncthreads();",
        f"{walk} {{",
        f"    if ({mine}[{bin_name}] != 0) {flush}",
        "}",
    ]
    text = [
        f"// Each block counts in shared memory, then adds its counts to `{array}` (line {stage.line}).",
        f"__global__ void {stage.name}({', '.join(parameters)}) {{",
        *("    " + line for line in lines),
        "}",
    ]
    arguments = ", ".join([*given.arguments, *([] if known else [length])])
    blocks = f"min(blocks_for({product(context, stage.dims, stage.dims)}, {THREADS * 8}), {MAX_BLOCKS})"
    if small:
        launch = when_nonempty(
            context,
            stage.dims,
            [f"const int blocks = {blocks};", f"{stage.name}<<<blocks, {THREADS}>>>({arguments});"],
        )
        return KernelCode("\n".join(text), launch)
    start = when_nonempty(
        context,
        stage.dims,
        [f"const int blocks = {blocks};", f"{stage.name}<<<blocks, {THREADS}, shared_bytes>>>({arguments});"],
    )
    launch = [
        "{",
        f"    const size_t shared_bytes = (size_t)({length}) * sizeof({kind.name});",
        f"    if (shared_bytes <= {MAX_BYTES}) {{",
        *("        " + line for line in start),
        "    } else {",
        *("        " + line for line in direct.launch),
        "    }",
        "}",
    ]
    return KernelCode("\n".join([direct.text, "", *text]), launch)


def offers(context: Context, stage: MapStage, choice: Choice, measured: Measured) -> Iterator[Offer]:
    if choice.private or not measured.kernel.atomics or match(context, stage) is None:
        return
    line = max(measured.kernel.lines, key=lambda x: x.atomics)
    reason = (
        f"Line {line.line} makes {number(measured.kernel.atomics)} atomic requests to global memory. "
        "Counters of its own for each block, in shared memory, leave one per counter and block."
    )
    yield Offer(Choice(private=True), "Count in shared memory first", reason, 20.0)

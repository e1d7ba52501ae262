"""The whole CUDA file for one plan and one schedule."""

from __future__ import annotations

from agent.translator.pytorch.emit import Body
from agent.translator.pytorch.emit_map import can_vectorise, emit_map
from agent.translator.pytorch.emit_matmul import emit_matmul
from agent.translator.pytorch.emit_rows import emit_rows
from agent.translator.pytorch.helpers import sources
from agent.translator.pytorch.ir import C_TYPES, Value
from agent.translator.pytorch.plan import Kernel, Plan
from agent.translator.pytorch.schedule import Schedule, is_cached, row_mode
from sandbox.tasks.base import TaskSpec


def write_source(spec: TaskSpec, plan: Plan, schedule: Schedule, lines: dict[str, int | None]) -> str:
    """`lines`: the line of the user's file behind each origin, where known."""
    kernels, launches, helpers = [], [], set()
    for kernel in plan.kernels:
        body = Body(plan, kernel)
        configuration = _emit(body, plan, schedule)
        helpers |= body.helpers
        arrays = [(b, v, "const ") for b, v in body.reads.items()]
        arrays += [(body.array(v), v, "") for v in kernel.outputs]
        passed = ", ".join(plan.buffers[id(v)] for _, v, _ in arrays)
        parameters = ", ".join(f"{const}{C_TYPES[v.dtype]} *__restrict__ {b}" for b, v, const in arrays)
        head = f"__global__ void {kernel.name}({parameters}) {{"
        kernels.append("\n".join([_comment(kernel, plan, schedule, lines), head, *body.lines, "}\n"]))
        launches.append(f"    {kernel.name}<<<{configuration}>>>({passed});")
    return "\n".join(
        [
            f"// {spec.name}, translated by Kernelwright from PyTorch for the sizes it was given.",
            "#include <cuda_runtime.h>\n#include <math.h>\n",
            *sources(helpers),
            *kernels,
            *_launch(spec, plan, launches),
            "",
        ]
    )


def _emit(body: Body, plan: Plan, schedule: Schedule) -> str:
    kernel = body.kernel
    if not kernel.reduces:
        return emit_map(body, plan, schedule)
    if kernel.product is not None and schedule.tile:
        return emit_matmul(body, plan, schedule)
    return emit_rows(body, plan, schedule)


def _comment(kernel: Kernel, plan: Plan, schedule: Schedule, lines: dict[str, int | None]) -> str:
    ops = {v.origin: lines.get(v.origin) for v in [*kernel.reduces, *kernel.outputs]}
    known = sorted({line for line in ops.values() if line is not None})
    where = f" (line{'s' if len(known) > 1 else ''} {', '.join(map(str, known))})" if known else ""
    if not kernel.reduces:
        how = (
            "four elements a thread"
            if schedule.vector == 4 and can_vectorise(plan, kernel)
            else "an element a thread"
        )
        return f"// {', '.join(ops)}{where}: {kernel.rows} elements, {how}."
    if kernel.product is not None and schedule.tile:
        batch, m, n = kernel.product.shape
        product = f"{batch} x " if batch > 1 else ""
        return f"// {', '.join(ops)}{where}: {product}{m} x {n} results over {kernel.length}, in tiles."
    mode = row_mode(kernel, schedule)
    cached = ", kept in registers between passes" if is_cached(kernel, schedule) else ""
    return f"// {', '.join(ops)}{where}: {kernel.rows} rows of {kernel.length}, a {mode} a row{cached}."


def _launch(spec: TaskSpec, plan: Plan, launches: list[str]) -> list[str]:
    written = [f"{spec.prototype} {{"]
    for value in plan.scratch:
        name, type_ = plan.buffers[id(value)], C_TYPES[value.dtype]
        written += [f"    {type_} *{name};", f"    cudaMalloc(&{name}, {value.numel} * sizeof({type_}));"]
    written += launches
    written += [_copy(name, value, plan) for name, value in plan.copies]
    written += [f"    cudaFree({plan.buffers[id(value)]});" for value in plan.scratch]
    return [*written, "}"]


def _copy(name: str, value: Value, plan: Plan) -> str:
    size = f"{value.numel} * sizeof({C_TYPES[value.dtype]})"
    return f"    cudaMemcpyAsync({name}, {plan.buffers[id(value)]}, {size}, cudaMemcpyDeviceToDevice);"

"""Elementwise kernels: one thread an element, or four neighbouring elements a thread."""

from __future__ import annotations

from collections.abc import Iterator

from agent.translator.pytorch.emit import Body
from agent.translator.pytorch.index import Ix, flatten, render, variable
from agent.translator.pytorch.ir import C_TYPES, Source, Value, accesses
from agent.translator.pytorch.plan import Kernel, Plan, output_coordinates
from agent.translator.pytorch.schedule import Schedule

_BYTES = {"float32": 4, "int32": 4}  # what moves as four at once in 16 bytes
_VECTOR = {"float32": "float4", "int32": "int4"}


def emit_map(body: Body, plan: Plan, schedule: Schedule) -> str:
    """Writes the body; returns the launch configuration's grid and block."""
    kernel = body.kernel
    width = schedule.vector if can_vectorise(plan, kernel) else 1
    count = kernel.rows // width
    body.line("const int i = blockIdx.x * blockDim.x + threadIdx.x;")
    body.line(f"if (i >= {count}) return;")
    if width == 1:
        at = variable("i", count)
        for value in kernel.per_row:
            body.store(value, output_coordinates(kernel, value, at, None))
    else:
        _four(body, plan, kernel)
    return f"{-(-count // schedule.threads)}, {schedule.threads}"


def _four(body: Body, plan: Plan, kernel: Kernel) -> None:
    at = variable("i", kernel.rows // 4) * 4 + variable("j", 4)
    for value, address in vector_loads(plan, kernel):
        buffer, type_ = body.array(value), C_TYPES[value.dtype]
        body.reads.setdefault(buffer, value)
        local = body.name(f"{buffer}_4")
        body.line(f"alignas(16) {type_} {local}[4];")
        vector = _VECTOR[value.dtype]
        body.line(
            f"*reinterpret_cast<{vector} *>({local}) = "
            f"*reinterpret_cast<const {vector} *>({buffer} + {render(address)});"
        )
        body.vectors[(buffer, address)] = local
    results = []
    for value in kernel.per_row:
        results.append(body.name(f"{body.array(value)}_4"))
        body.line(f"alignas(16) {C_TYPES[value.dtype]} {results[-1]}[4];")
    body.line("#pragma unroll")
    with body.block("for (int j = 0; j < 4; ++j)"):
        for value, local in zip(kernel.per_row, results, strict=True):
            text = body.element(value, output_coordinates(kernel, value, at, None))
            body.line(f"{local}[j] = {text};")
    for value, local in zip(kernel.per_row, results, strict=True):
        vector = _VECTOR[value.dtype]
        body.line(
            f"*reinterpret_cast<{vector} *>({body.array(value)} + i * 4) = "
            f"*reinterpret_cast<{vector} *>({local});"
        )


def can_vectorise(plan: Plan, kernel: Kernel) -> bool:
    """Four elements a thread: results of 4 bytes, a multiple of four, at least one array read in fours."""
    if kernel.reduces or kernel.rows % 4 or any(v.dtype not in _BYTES for v in kernel.per_row):
        return False
    return any(True for _ in vector_loads(plan, kernel))


def vector_loads(plan: Plan, kernel: Kernel) -> Iterator[tuple[Value, Ix]]:
    """Arrays that four neighbouring elements read as 16 aligned bytes, with the address of the first."""
    at = variable("i", kernel.rows // 4) * 4 + variable("j", 4)
    mine = {id(v) for v in kernel.outputs}
    seen = set()
    for value in kernel.per_row:
        place = output_coordinates(kernel, value, at, None)
        for access in accesses(value, place, lambda v: id(v) in plan.buffers and id(v) not in mine):
            source = access.value
            if id(source) not in plan.buffers or source.dtype not in _BYTES:
                continue
            if not isinstance(source, Source) and id(source) in mine:
                continue
            address = flatten(access.at, source.shape)
            base = address - variable("j", 4)
            if address.coefficient("j") == 1 and base.multiple_of(4) and (id(source), base) not in seen:
                seen.add((id(source), base))
                yield source, base

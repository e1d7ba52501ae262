"""The corpus and its shortest way through the translator: parsed, planned, emitted; no judge."""

from __future__ import annotations

import re
from pathlib import Path

from agent.translator.c.kernels import Context
from agent.translator.c.program import emit_program
from agent.translator.c.schedules import Choice, Schedule
from agent.translator.c.stages import Kernel, MapStage, ReduceStage, kernels
from agent.translator.c.translator import read
from sandbox.cancellation import Cancellation
from sandbox.tasks.c.parse import parse

CORPUS = Path(__file__).parent / "corpus"


def context_of(source: str, name: str) -> Context:
    return read(parse(source, filename=f"{name}.c", cancel=Cancellation()).tree, name, "result")


def corpus(name: str) -> Context:
    return context_of((CORPUS / f"{name}.c").read_text(), name)


def prototype(context: Context) -> str:
    function = context.function
    parameters = [f"{v.type.name} {v.name}" for v in function.scalars]
    parameters += [f"{a.type.name} *{a.name}" for a in function.arrays.values()]
    return f'extern "C" void launch({", ".join(parameters)})'


def direct(context: Context) -> str:
    """The CUDA source of the direct version."""
    schedule = Schedule(tuple(Choice() for _ in kernels(context.plan.stages)))
    return emit_program(context, schedule, prototype(context))


def kind(kernel: Kernel) -> str:
    """`map2`, `reduce1`, `serial`; a + where updates are atomic."""
    match kernel:
        case MapStage():
            return f"map{len(kernel.dims)}" + ("+" if kernel.atomics else "")
        case ReduceStage():
            return f"reduce{len(kernel.dims)}" + ("+" if kernel.atomics else "")
        case _:
            return "serial"


def kinds(context: Context) -> str:
    return " ".join(kind(k) for k in kernels(context.plan.stages))


def body_of(source: str, kernel: str) -> str:
    """The text of one kernel of a CUDA source."""
    match = re.search(rf"__global__ void {kernel}\(.*?^}}", source, re.S | re.M)
    assert match is not None, f"no kernel {kernel}"
    return match[0]

"""A whole CUDA file from a plan and a schedule."""

from __future__ import annotations

import dataclasses
import re

from agent.translator.c.emit import Printer
from agent.translator.c.frontend import DeviceFunction
from agent.translator.c.helpers import HELPERS
from agent.translator.c.kernels import Context, KernelCode, tidy
from agent.translator.c.passes.catalogue import emit_kernel
from agent.translator.c.schedules import Schedule
from agent.translator.c.scope import Table
from agent.translator.c.stage_code import own_names
from agent.translator.c.stages import (
    HostAssign,
    HostBreak,
    HostIf,
    HostLoop,
    HostSwap,
    Kernel,
    MapStage,
    ReduceStage,
    Scratch,
    SerialStage,
    Stage,
    kernels,
)
from agent.translator.c.syntax import For, Num, Var, all_expressions, constant


def emit_program(context: Context, schedule: Schedule, prototype: str) -> str:
    """The CUDA source. Equal schedules give equal sources."""
    return _Program(context, schedule, prototype).text()


def short_names(context: Context, stage: Kernel, code: KernelCode) -> KernelCode:
    """Names that were numbered to be unique in the function, as C had them where the kernel has no other."""
    text = code.text
    for name in sorted(own_names(stage)):
        base, _, suffix = name.rpartition("_")
        if not base or not suffix.isdigit() or name in context.plan.device or _mentions(text, base):
            continue
        text = re.sub(rf"\b{re.escape(name)}\b", base, text)
    return dataclasses.replace(code, text=text)


class _Program:
    def __init__(self, context: Context, schedule: Schedule, prototype: str):
        self.context = context
        self.prototype = prototype.rstrip(";")
        found = kernels(context.plan.stages)
        self.codes = {
            stage.name: short_names(context, stage, emit_kernel(context, stage, choice))
            for stage, choice in zip(found, schedule.choices, strict=True)
        }
        self.order = [stage.name for stage in found]
        self.released: list[str] = []

    def text(self) -> str:
        parts = [self._head()]
        parts += [self._table(t) for t in self.context.function.tables]
        if self.context.plan.device:
            fields = [f"    {v.type.name} {n};" for n, v in self.context.plan.device.items()]
            parts.append(
                "// Scalars that one kernel computes and another reads.\nstruct Scalars {\n"
                + "\n".join(fields)
                + "\n};"
            )
        parts += [self._helper(h) for h in self.context.function.helpers]
        names = dict.fromkeys(h for n in self.order for h in self.codes[n].helpers)
        parts += [HELPERS[name] for name in names]
        parts += [self.codes[name].text for name in self.order]
        launch = self._launch()
        if any("blocks_for(" in line for line in launch):
            parts.append(
                "static int blocks_for(long long items, int per_block) {\n"
                "    return (int)((items + per_block - 1) / per_block);\n}"
            )
        parts.append("\n".join(launch))
        return "\n\n".join(parts) + "\n"

    def _head(self) -> str:
        used = self._names()
        headers = ["#include <cuda_runtime.h>"]
        if used & {"FLT_MAX", "FLT_MIN", "FLT_EPSILON", "DBL_MAX", "DBL_MIN", "DBL_EPSILON"}:
            headers.append("#include <cfloat>")
        code = "".join(c.text for c in self.codes.values()) + "".join(
            HELPERS[h] for c in self.codes.values() for h in c.helpers
        )
        if any(n.endswith(("_MAX", "_MIN")) and not n.startswith(("FLT", "DBL")) for n in used) or any(
            w in code for w in ("INT_M", "LONG_M", "CHAR_M", "SHRT_M")
        ):
            headers.append("#include <climits>")
        headers.append("#include <cmath>")
        if any(n.startswith(("INT", "UINT", "SIZE")) and "_M" in n for n in used):
            headers.append("#include <cstdint>")
        notes = [f"// {self.context.function.name}, translated from C."]
        if len(self.context.function.arrays) > 1:
            notes.append("// Arrays are taken not to overlap.")
        return "\n".join([*notes, *headers])

    def _names(self) -> set[str]:
        bodies = [s.body for s in kernels(self.context.plan.stages)] + [
            h.body for h in self.context.function.helpers
        ]
        return {e.text for b in bodies for e in all_expressions(b) if isinstance(e, Num)}

    def _table(self, table: object) -> str:
        assert isinstance(table, Table)
        printer = Printer({}, frozenset())
        dims = "".join(f"[{printer.expr(d)}]" for d in table.array.dims if d is not None)
        return f"__constant__ {table.array.type.name} {table.array.name}{dims} = {table.init};"

    def _helper(self, helper: object) -> str:
        assert isinstance(helper, DeviceFunction)
        parameters = ", ".join(f"{p.type.name} {p.name}" for p in helper.parameters)
        printer = self.context.printer(helper.body)
        lines = printer.body(tidy(helper.body))
        return "\n".join([f"__device__ {helper.type.name} {helper.name}({parameters}) {{", *lines, "}"])

    # Host code
    def _launch(self) -> list[str]:
        lines = [self.prototype + " {"]
        inside: list[str] = []
        host = self._host_scalars()
        inside += [f"{v.type.name} {v.name};" for v in host]
        for alias, base in self.context.function.aliases.items():
            if base in self.context.function.arrays:
                inside.append(f"{self._pointer(alias)}{alias} = {self._unconst(alias, base)};")
        buffers = [b for name in self.order for b in self.codes[name].buffers]
        if self.context.plan.device:
            inside += ["Scalars *scalars;", "cudaMalloc(&scalars, sizeof(Scalars));"]
            inside.append("cudaMemset(scalars, 0, sizeof(Scalars));")
            self.released.append("scalars")
        for buffer in buffers:
            inside += [
                f"{buffer.type} *{buffer.name};",
                f"cudaMalloc(&{buffer.name}, {buffer.count} * sizeof({buffer.type}));",
            ]
            self.released.append(buffer.name)
        inside += self._stages(self.context.plan.stages)
        inside += [f"cudaFree({name});" for name in reversed(self.released)]
        lines += ["    " + line for line in _merge_declarations(inside)]
        lines.append("}")
        return lines

    def _pointer(self, name: str) -> str:
        return f"{self.context.elements[name].name} *"

    def _unconst(self, alias: str, base: str) -> str:
        return f"({self.context.elements[alias].name} *){base}"

    def _host_scalars(self) -> list[Var]:
        """Scalars that host code computes."""
        given = {v.name for v in self.context.function.scalars}
        found: dict[str, Var] = {}

        def visit(stages: tuple[Stage, ...]) -> None:
            for stage in stages:
                match stage:
                    case HostAssign():
                        assert isinstance(stage.assign.target, Var)
                        found[stage.assign.target.name] = stage.assign.target
                    case HostIf():
                        visit(stage.then)
                        visit(stage.other)
                    case HostLoop():
                        header = stage.header
                        if isinstance(header, For) and not header.own:
                            found[header.var.name] = header.var
                        visit(stage.body)
                    case _:
                        pass

        visit(self.context.plan.stages)
        return [v for n, v in found.items() if n not in given]

    def _stages(self, stages: tuple[Stage, ...]) -> list[str]:
        printer = self.context.host_printer()
        lines: list[str] = []
        owned: list[str] = []
        top = stages is self.context.plan.stages
        for stage in stages:
            match stage:
                case MapStage() | ReduceStage() | SerialStage():
                    lines += self.codes[stage.name].launch
                case Scratch():
                    lines += self._scratch(stage, self.released if top else owned)
                case HostAssign():
                    lines += printer.assign(stage.assign)
                case HostBreak():
                    lines.append("break;")
                case HostSwap():
                    left, right = stage.swap.left, stage.swap.right
                    kind = self._pointer(left)
                    const = "const " if self._is_const(left) else ""
                    spare = self.context.free("other")[0]
                    lines += [
                        "{",
                        f"    {const}{kind}{spare} = {left};",
                        f"    {left} = {right};",
                        f"    {right} = {spare};",
                        "}",
                    ]
                case HostIf():
                    then = self._stages(stage.then)
                    other = self._stages(stage.other)
                    if not then and not other:
                        continue
                    note = [f"// {stage.note}"] if stage.note else []
                    lines += [*note, f"if ({printer.expr(stage.test)}) {{", *("    " + line for line in then)]
                    if other:
                        lines += ["} else {", *("    " + line for line in other)]
                    lines.append("}")
                case HostLoop():
                    body = ["    " + line for line in self._stages(stage.body)]
                    header = stage.header
                    if isinstance(header, For):
                        lines += [f"{printer.for_header(header)} {{", *body, "}"]
                    elif header.after:
                        lines += ["do {", *body, f"}} while ({printer.expr(header.test)});"]
                    else:
                        lines += [f"while ({printer.expr(header.test)}) {{", *body, "}"]
        return lines + [f"cudaFree({name});" for name in reversed(owned)]

    def _is_const(self, name: str) -> bool:
        return f"const {self.context.elements[name].name} *{name}" in self.prototype

    def _scratch(self, stage: Scratch, released: list[str]) -> list[str]:
        array = stage.array
        printer = self.context.host_printer()
        count = " * ".join(printer.expr(d, 10) for d in array.dims)
        aliases = [a for a, b in self.context.function.aliases.items() if b == array.name]
        if all(constant(d) is not None for d in array.dims):
            total = 1
            for dim in array.dims:
                total *= constant(dim) or 0
            count = str(total)
        size = f"{count} * sizeof({array.type.name})"
        lines = [f"{array.type.name} *{array.name};", f"cudaMalloc(&{array.name}, {size});"]
        if array.zeroed:
            lines.append(f"cudaMemset({array.name}, 0, {size});")
        lines += [f"{self._pointer(a)}{a} = {array.name};" for a in aliases]
        released.append(array.name)
        return lines


def _merge_declarations(lines: list[str]) -> list[str]:
    """`int m;` and a later `m = n / 2;` at the same level become one line."""
    out = list(lines)
    for line in lines:
        words = line.rstrip(";").rsplit(" ", 1)
        if len(words) != 2 or not line.endswith(";") or "=" in line or "(" in line or "*" in line:
            continue
        kind, name = words
        uses = [i for i, text in enumerate(out) if text is not line and _mentions(text, name)]
        if uses and out[uses[0]].startswith(f"{name} = "):
            out[uses[0]] = f"{kind} {out[uses[0]]}"
            out.remove(line)
    return out


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None

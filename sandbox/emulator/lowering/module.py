"""From PTX texts to LLVM IR text and the description that the runtime reads.

The description is lines of words, embedded in the shared object as `kw_description`:

    kernel MODULE NAME SYMBOL PARAMETER_BYTES STATIC_SHARED DYNAMIC_OFFSET LOCAL_BYTES BYTE_SHARED
    variable MODULE NAME SPACE BYTES ALIGN SLOT|- HEX|-
    address MODULE NAME OFFSET TARGET_NAME TARGET_OFFSET
    site KIND LINE OPCODE
    cost SITE LINE INSTRUCTIONS FLOP16 FLOP32 FLOP64
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.emulator.lowering.builder import ModuleContext
from sandbox.emulator.lowering.function import FunctionLowering, function_symbol
from sandbox.emulator.lowering.layout import Layout
from sandbox.ptx.model import Function, Instruction, Module, PtxError
from sandbox.ptx.parser import parse, type_bytes


@dataclass(frozen=True)
class LoweredText:
    ir: str
    description: str


def lower_modules(texts: Sequence[str]) -> LoweredText:
    """Lowers PTX modules. Raises PtxError naming instruction and line."""
    context = ModuleContext()
    functions: list[str] = []
    description: list[str] = []
    for index, text in enumerate(texts):
        module = parse(text)
        layout = Layout(module)
        for function in module.functions.values():
            functions.append(FunctionLowering(context, index, module, function, layout).lower())
            if function.entry:
                description.append(_kernel_line(index, function, layout))
        description.extend(_variable_lines(context, index, module))
    description += context.sites + context.site_lines
    slots = max(1, len(context.address_slots))
    blob = "\n".join(description) + "\n"
    ir = "\n".join(
        [
            f"@kw_addresses = global [{slots} x i64] zeroinitializer",
            f'@kw_description = constant [{len(blob) + 1} x i8] c"{_escaped(blob)}\\00"',
            *functions,
            *context.declarations.values(),
            # Frames are as large as the PTX makes them: probes see to it that none steps over a guard page.
            'attributes #0 = { nounwind "frame-pointer"="none" "probe-stack"="inline-asm" }',
        ]
    )
    return LoweredText(ir, blob)


def _kernel_line(index: int, function: Function, layout: Layout) -> str:
    static = layout.static_bytes[function.name]
    symbol = function_symbol(index, function.name).strip('"')
    words = [
        *("kernel", index, function.name, symbol, function.parameter_bytes, static),
        *(layout.dynamic_offset, layout.local_bytes(function), int(_narrow_shared(layout.source))),
    ]
    return " ".join(map(str, words))


def _narrow_shared(module: Module) -> bool:
    """Whether the module accesses shared memory in pieces below 4 bytes: races are then tracked by byte."""
    for function in module.functions.values():
        for item in function.body:
            if isinstance(item, Instruction) and item.parts[0] in ("ld", "st", "atom", "red"):
                spaces = {part.partition("::")[0] for part in item.parts}
                if not spaces & {"global", "local", "const", "param"} and type_bytes(item.parts[-1]) < 4:
                    return True
    return False


def _variable_lines(context: ModuleContext, index: int, module: Module) -> list[str]:
    lines = []
    for variable in module.variables:
        if variable.space not in ("global", "const"):
            continue
        if variable.external:
            raise PtxError(f"unsupported: external variable {variable.name}")
        slot = context.address_slots.get(f"{index} {variable.name}", "-")
        data = variable.data.hex() if variable.data and any(variable.data) else "-"
        words = (index, variable.name, variable.space, variable.size, variable.align, slot, data)
        lines.append(f"variable {' '.join(map(str, words))}")
        for offset, symbol in variable.addresses:
            lines.append(f"address {index} {variable.name} {offset} {symbol.name} {symbol.offset}")
    return lines


def _escaped(text: str) -> str:
    return text.replace("\\", "\\5C").replace('"', "\\22").replace("\n", "\\0A")

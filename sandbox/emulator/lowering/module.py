"""From PTX texts to LLVM IR text and the description that the runtime reads.

The description is lines of words, embedded in the shared object as `kw_description`:

    mode checked|plain
    kernel MODULE NAME SYMBOL PARAMETER_BYTES STATIC_SHARED DYNAMIC_OFFSET LOCAL_BYTES BYTE_SHARED RESERVED
    variable MODULE NAME SPACE BYTES ALIGN SLOT|- HEX|- EXTERNAL
    address MODULE NAME OFFSET TARGET_NAME TARGET_OFFSET
    function MODULE NAME ADDRESS
    file NAME
    site KIND PLACE OPCODE
    cost SITE PLACE INSTRUCTIONS FLOP16 FLOP32 FLOP64

A place is a line in one of the files (sandbox/ptx/model.py).
Variables are those of all modules, whatever is lowered: who loads several objects of one text sees the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sandbox.emulator.lowering.builder import ModuleContext
from sandbox.emulator.lowering.calls import function_symbol
from sandbox.emulator.lowering.function import FunctionLowering
from sandbox.emulator.lowering.layout import Layout
from sandbox.emulator.lowering.program import Place, Program
from sandbox.ptx.model import Files, Instruction, PtxError
from sandbox.ptx.parser import parse
from sandbox.ptx.words import is_type, type_bytes


@dataclass(frozen=True)
class LoweredText:
    ir: str
    description: str


def lower_modules(
    texts: Sequence[str],
    kernels: Sequence[tuple[int, str]] | None = None,
    *,
    mode: str = "checked",
    vector_bits: int = 0,
) -> LoweredText:
    """Lowers kernels (module index, name) of PTX modules with the functions that they can call; None: all.

    Mode "checked" checks and counts every access; "plain" does neither. `vector_bits` is the width of the
    vector registers that code may be written for; 0 writes for any CPU. Raises PtxError naming instruction,
    function and line.
    """
    context = ModuleContext(mode, vector_bits)
    files = Files()
    program = Program([parse(text, files) for text in texts])
    places = program.reached(program.kernels() if kernels is None else kernels)
    layout = Layout(program, places)
    functions = [_lowered(context, program, place, layout) for place in places]
    description = [f"mode {mode}"]
    description += [_kernel_line(place, program, layout) for place in places if place.function.entry]
    for index in range(len(program.modules)):
        description += [*_variable_lines(context, program, index), *_function_lines(program, index)]
    description += [f"file {' '.join(name.split())}" for name in files.names]
    description += context.sites + context.site_lines
    slots = max(1, len(context.address_slots))
    blob = "\n".join(description) + "\n"
    ir = "\n".join(
        [
            f"@kw_addresses = global [{slots} x i64] zeroinitializer",
            f'@kw_description = constant [{len(blob) + 1} x i8] c"{_escaped(blob)}\\00"',
            *context.constants,
            *functions,
            *context.helpers.values(),
            *context.declarations.values(),
            "attributes #1 = { nounwind noinline }",
            '!0 = !{!"branch_weights", i32 1000, i32 1}',
            # Frames are as large as the PTX makes them: probes see to it that none steps over a guard page.
            'attributes #0 = { nounwind "frame-pointer"="none" "probe-stack"="inline-asm" }',
        ]
    )
    return LoweredText(ir, blob)


def _lowered(context: ModuleContext, program: Program, place: Place, layout: Layout) -> str:
    try:
        return FunctionLowering(context, program, place, layout).lower()
    except PtxError as error:
        raise error.inside(place.function.name) from error


def _kernel_line(place: Place, program: Program, layout: Layout) -> str:
    function = place.function
    symbol = function_symbol(place).strip('"')
    words = [
        *("kernel", place.module, function.name, symbol, function.parameter_bytes),
        *(layout.static_bytes[place.key], layout.dynamic_offset, layout.local_bytes(place)),
        *(int(any(map(_narrow_shared, program.reached([place.key])))), layout.reserved_shared),
    ]
    return " ".join(map(str, words))


def _narrow_shared(place: Place) -> bool:
    """Whether it may access shared memory in pieces below 4 bytes: races are then tracked by byte."""
    for item in place.function.body:
        if isinstance(item, Instruction) and item.parts[0] in ("ld", "st", "atom", "red"):
            spaces = {part.partition("::")[0] for part in item.parts}
            narrow = is_type(item.parts[-1]) and type_bytes(item.parts[-1]) < 4
            if narrow and not spaces & {"global", "local", "const", "param"}:
                return True
    return False


def _variable_lines(context: ModuleContext, program: Program, index: int) -> Iterator[str]:
    for variable in program.modules[index].variables:
        if variable.space not in ("global", "const"):
            continue
        slot = context.address_slots.get(f"{index} {variable.name}", "-")
        data = variable.data.hex() if variable.data and any(variable.data) else "-"
        words = (index, variable.name, variable.space, variable.size, variable.align, slot, data)
        yield f"variable {' '.join(map(str, words))} {int(variable.external)}"
        for offset, symbol in variable.addresses:
            yield f"address {index} {variable.name} {offset} {symbol.name} {symbol.offset}"


def _function_lines(program: Program, index: int) -> Iterator[str]:
    """Functions whose address an initialiser holds."""
    symbols = {s.name for variable in program.modules[index].variables for _, s in variable.addresses}
    for name in sorted(symbols):
        address = program.address(index, name)
        if address is not None:
            yield f"function {index} {name} {address}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\5C").replace('"', "\\22").replace("\n", "\\0A")

"""What a program's runtime needs to know of each kernel of a module before any of them is lowered.

A scan of the text, not a parse: modules may be large, and most of their kernels are never launched. Registers
and stack are in the machine code, which the runtime has beside the PTX; here they are 0.
"""

from __future__ import annotations

import re

from sandbox.ptx import PtxError, parameter_layout
from sandbox.ptx.parser import type_bytes
from sandbox.recorder.launchable import Kernel, launch_bounds
from sandbox.targets import Target

_SHARED = re.compile(
    r"\.shared\s+(?:\.align\s+\d+\s+)?\.(?P<type>[a-z]\d+)\s+(?P<name>[\w$]+)(?P<dims>(?:\[\d*\])*)"
)
_FUNCTION = re.compile(r"^[ \t]*(?:\.(?:visible|weak|extern)[ \t]+)*\.(?P<kind>entry|func)\b", re.M)
_NAME = re.compile(r"\.entry\s+(?P<name>[\w$]+)")


def kernels_in(ptx: str, target: Target) -> list[Kernel]:
    """In the order of the text. Empty where it cannot be read: lowering will say why."""
    try:
        layout = parameter_layout(ptx)
    except PtxError:
        return []
    shared = _static_shared(ptx)
    bounds = launch_bounds([ptx])
    return [
        Kernel(
            symbol=symbol,
            registers=0,
            shared_bytes=shared.get(symbol, 0),
            local_bytes=0,
            max_threads=min(bounds.get(symbol, 1024), target.max_threads_per_block),
            parameters=parameters,
        )
        for symbol, parameters in layout.items()
    ]


def _static_shared(ptx: str) -> dict[str, int]:
    """Bytes of each kernel: its own variables, and those of the module that it or a device function names."""
    starts = [match.start() for match in _FUNCTION.finditer(ptx)]
    if not starts:
        return {}
    pieces = [ptx[begin:end] for begin, end in zip(starts, [*starts[1:], len(ptx)], strict=True)]
    outer = _variables(ptx[: starts[0]])
    functions = [piece for piece in pieces if not _NAME.search(piece)]
    of_functions = sum(sum(_variables(piece).values()) for piece in functions)
    common = {name for name in outer if any(name in piece for piece in functions)}
    result = {}
    for piece in pieces:
        if match := _NAME.search(piece):
            named = {name for name in outer if name in common or name in piece}
            own = sum(_variables(piece).values()) + of_functions
            result[match["name"]] = own + sum(outer[name] for name in named)
    return result


def _variables(text: str) -> dict[str, int]:
    found = {}
    for match in _SHARED.finditer(text):
        count = 1
        for extent in re.findall(r"\[(\d*)\]", match["dims"]):
            count *= int(extent or 0)
        try:
            found[match["name"]] = count * type_bytes(match["type"])
        except PtxError:
            continue
    return found

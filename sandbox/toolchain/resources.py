"""What ptxas -v says about every kernel: ptxas alone, for other tools of a compilation quote the source."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sandbox.types import CompiledKernel

_ENTRY = re.compile(r"^ptxas info\s*: Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"^ptxas info\s*: Function properties for (\S+)")
_FRAME = re.compile(r"^\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"^ptxas info\s*: Used (\d+) registers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")


def kernels(log: str, names: Mapping[str, str]) -> list[CompiledKernel]:
    """One per entry function, in ptxas's order. `names`: mangled -> demangled, without parameters."""
    found: dict[str, CompiledKernel] = {}
    entry = described = ""
    frame = (0, 0, 0)
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry = match[1]
        elif match := _PROPERTIES.search(line):
            described = match[1]
        elif (match := _FRAME.search(line)) and described == entry:
            frame = (int(match[1]), int(match[2]), int(match[3]))
        elif (match := _USED.search(line)) and entry:
            shared = _SHARED.search(line)
            found[entry] = CompiledKernel(
                name=names.get(entry, entry),
                symbol=entry,
                registers=int(match[1]),
                shared_bytes=int(shared[1]) if shared else 0,
                local_bytes=frame[0],
                spill_store_bytes=frame[1],
                spill_load_bytes=frame[2],
            )
            entry, frame = "", (0, 0, 0)
    return list(found.values())

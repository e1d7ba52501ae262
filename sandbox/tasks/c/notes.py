"""What was inferred, in sentences a user can correct."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.tasks.base import Inputs
from sandbox.tasks.c.formals import Formal
from sandbox.tasks.c.infer import Inferred
from sandbox.tasks.c.probe import Access, Probed

_ACCESS: dict[Access, str] = {
    "read": "read",
    "write": "written, never read before",
    "read_write": "read and written",
}


def notes(
    formals: Sequence[Formal],
    inferred: Inferred,
    probed: Probed,
    inputs: Inputs,
    *,
    bits: str | None,
    widened: bool,
) -> list[str]:
    found = []
    if inferred.sizes:
        at = ", ".join(f"{name} = {probed.legal[0].sizes[name]}" for name in inferred.sizes)
        chosen = "" if inputs.sizes else ", as large as the emulator's budget allows"
        found.append(f"sizes: {at}{chosen}")
    for formal in formals:
        if formal.is_array and not formal.is_result:
            facts = inferred.arrays[formal.name]
            found.append(
                f"{formal.name}: {facts.extent_text} elements, {_ACCESS[probed.access[formal.name]]}"
            )
    for source in dict.fromkeys(use.source for use in inferred.index_uses):
        targets = ", ".join(dict.fromkeys(u.array for u in inferred.index_uses if u.source == source))
        guarded = all(use.guarded for use in inferred.index_uses if use.source == source)
        kept = "checked by your program, so some lie outside" if guarded else "so they stay inside"
        kept += "; each place is named once" if inferred.is_scatter(source) and not guarded else ""
        found.append(f"{source}: its values are indices into {targets}, {kept}")
    for name in inferred.row_starts:
        found.append(f"{name}: says where rows begin, so it ascends from 0; 8 elements to a row on average")
    found += inferred.notes
    if bits is not None:
        found.append(f"compared with your program in its own precision, for {bits} looks at bits")
    elif not widened:
        found.append("compared with your program in its own precision: it does not compile in a wider one")
    kinds = {sized.kind for sized in probed.legal}
    if "empty" not in kinds and inferred.sizes:
        found.append("size 0 is not tried: your program does not support it")
    return found

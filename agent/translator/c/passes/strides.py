"""How far apart consecutive threads would touch memory, for each loop that could be theirs."""

from __future__ import annotations

from dataclasses import dataclass

from agent.translator.c.accesses import Access, Accesses, collect
from agent.translator.c.affine import Reader
from agent.translator.c.kernels import Context
from agent.translator.c.stage_code import whole_body
from agent.translator.c.stages import MapStage, ReduceStage
from sandbox.tasks.c.polynomial import Polynomial


@dataclass(frozen=True)
class Touch:
    """One access of a kernel: its flat subscript and the loops around it."""

    access: Access
    flat: Polynomial
    depth: int  # loops inside the dims

    def stride(self, key: str) -> int | None:
        """Elements between neighbours along a loop: 0, 1, -1 ...; None for far or unknown."""
        if self.flat.degree(key) > 1 or any(s.startswith("?") for s in self.flat.symbols):
            return None
        return self.flat.coefficient(key).as_constant

    def depends(self, key: str) -> bool:
        return self.flat.degree(key) > 0


def touches(context: Context, stage: MapStage | ReduceStage) -> tuple[Accesses, list[str], list[Touch]]:
    """(all accesses, the keys of the stage's dims in order, the accesses in flat form)."""
    accesses = collect(whole_body(stage), context.dims)
    keys = list(accesses.loops)[: len(stage.dims)]
    found = [
        Touch(a, flat_index(context, a), len(a.keys) - len(stage.dims))
        for a in accesses.found
        if len(a.keys) >= len(stage.dims)
    ]
    return accesses, keys, found


def flat_index(context: Context, access: Access) -> Polynomial:
    index = access.index
    if len(index) == 1:
        return index[0]
    reader = Reader(frozenset(), frozenset(), {})
    dims = context.dims[access.array]
    total = Polynomial()
    for level, part in enumerate(index):
        extent = dims[level]
        total = total * reader.read(extent) + part if level and extent is not None else total + part
    return total


def split_keys(accesses: Accesses, key: str) -> tuple[str, ...]:
    return accesses.parts.get(key, (key,))


def scatter(touch: Touch, keys: tuple[str, ...]) -> float:
    """Sectors that 32 threads along a loop would move, as multiples of the few that they need."""
    if len(keys) != 1:
        return 8.0 if any(touch.depends(k) for k in keys) else 0.25
    if not touch.depends(keys[0]) and not any(s.startswith("?") for s in touch.flat.symbols):
        return 0.25
    stride = touch.stride(keys[0])
    if stride is None:
        return 8.0
    return float(min(8, max(1, abs(stride))))


def traffic(touch_list: list[Touch], keys: tuple[str, ...]) -> float:
    """Of all accesses, inner loops weighing more."""
    return sum(scatter(t, keys) * 10.0 ** min(t.depth, 3) for t in touch_list)

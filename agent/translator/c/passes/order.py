"""Which loop runs along a warp.

i = blockIdx.x ...; j = blockIdx.y ...      ->      j = blockIdx.x ...; i = blockIdx.y ...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agent.translator.c.kernels import Context, axes
from agent.translator.c.passes.measured import Measured, Offer, sectors_sentence, shown
from agent.translator.c.passes.strides import split_keys, touches, traffic
from agent.translator.c.schedules import Choice
from agent.translator.c.stages import MapStage


def offers(context: Context, stage: MapStage, choice: Choice, measured: Measured) -> Iterator[Offer]:
    """The loop whose neighbours lie closest in memory, along threadIdx.x."""
    if len(stage.dims) < 2 or choice.rows or choice.tile:
        return
    accesses, keys, found = touches(context, stage)
    now = axes(stage.dims, choice.order)[0][0]
    found = [t for t in found if not any(s.startswith("?") for s in t.flat.symbols)]
    costs = {d: traffic(found, split_keys(accesses, keys[d])) for d in range(len(stage.dims))}
    best = min(costs, key=lambda d: (costs[d], -d))
    if best != now and costs[best] < 0.9 * costs[now]:
        others = [d for d in reversed(range(len(stage.dims))) if d != best]
        name, old = shown(stage.dims[best].var.name), shown(stage.dims[now].var.name)
        cause = f"consecutive threads take consecutive `{old}`, which lie far apart."
        reason = sectors_sentence(measured, cause)
        if reason is None:
            return
        reason += f" Along `{name}` they lie side by side."
        yield Offer(replace(choice, order=(best, *others)), f"Let threads run along `{name}`", reason, 40.0)

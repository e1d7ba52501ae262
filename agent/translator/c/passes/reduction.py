"""Better whole-nest reductions: shuffles for the tree, more elements per thread, a warp per point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agent.translator.c.kernels import Context
from agent.translator.c.passes.measured import Measured, Offer, number, sectors_sentence, shown
from agent.translator.c.passes.rows import NotShared, sharing_of
from agent.translator.c.passes.strides import split_keys, touches, traffic
from agent.translator.c.schedules import Choice
from agent.translator.c.stages import ReduceStage
from agent.translator.c.syntax import contains_loop


def offers(
    context: Context, stage: ReduceStage, choice: Choice, measured: Measured, finish: Measured | None
) -> Iterator[Offer]:
    """`finish`: the numbers of the second kernel."""
    kernel = measured.kernel
    if not choice.shuffle and kernel.barriers_per_thread > 3:
        line = max(kernel.lines, key=lambda x: x.barriers)
        reason = (
            f"{number(kernel.barriers_per_thread)} barriers per thread, most on line {line.line}: the tree "
            "in shared memory waits at every level. Lanes of a warp can pass values without waiting."
        )
        yield Offer(replace(choice, shuffle=True), "Reduce with warp shuffles", reason, 12.0)
    if choice.per_thread < 16 and kernel.grid[0] > 4 and not contains_loop(stage.body):
        reason = (
            f"A warp spends {number(measured.instructions_per_warp)} instructions on {choice.per_thread} "
            f"element{'s' if choice.per_thread > 1 else ''} per thread, most of them to join results. "
            "More elements per thread share that cost."
        )
        more = choice.per_thread * 4
        yield Offer(replace(choice, per_thread=more), f"Give each thread {more} elements", reason, 8.0)
    yield from _shared_rows(context, stage, choice, measured)


def _shared_rows(context: Context, stage: ReduceStage, choice: Choice, measured: Measured) -> Iterator[Offer]:
    if choice.rows or len(stage.dims) != 1 or not contains_loop(stage.body):
        return
    try:
        sharing = sharing_of(context, stage)
    except NotShared:
        return
    accesses, keys, found = touches(context, stage)
    inner = [t for t in found if t.depth > 0]
    names = [k for k, loop in accesses.loops.items() if any(loop.var == s.var for s in sharing.shared)]
    now = traffic(inner, split_keys(accesses, keys[0]))
    then = min((traffic(inner, split_keys(accesses, k)) for k in names), default=now)
    reason = sectors_sentence(measured, "consecutive threads are a row apart.")
    if reason is not None and then < 0.9 * now:
        loop = shown(sharing.shared[0].var.name)
        reason += f" Lanes that share the loop over `{loop}` read neighbours."
        yield Offer(replace(choice, rows=32), "Give each row to a warp", reason, 30.0)
